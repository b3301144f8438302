const size = process.env.TEST_SIZE ?? "ci";
if (size !== "ci" && size !== "full") throw new Error(`TEST_SIZE: expected ci or full, got "${size}"`);

/** `npm run test:long` runs every test that asks here in its full size; elsewhere a size that a commit can wait for is used. */
export const isFullSize = size === "full";

/** Options of a test that a commit does without: the runner counts those, and does not list them. */
export const longOnly = { skip: isFullSize ? false : "only in full size" };

/** A count for each of the two sizes. */
export function sized(ci: number, full: number): number {
  return isFullSize ? full : ci;
}
