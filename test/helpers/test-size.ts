const size = process.env.TEST_SIZE ?? "ci";
if (size !== "ci" && size !== "full") throw new Error(`TEST_SIZE: expected ci or full, got "${size}"`);

/** True in `npm run test:long`. `npm test` uses smaller sizes, so that a commit does not wait long. */
export const isFullSize = size === "full";

/** Options of a test that runs only in full size. */
export const longOnly = { skip: isFullSize ? false : "only in full size" };

/** A count for each of the two sizes. */
export function sized(ci: number, full: number): number {
  return isFullSize ? full : ci;
}
