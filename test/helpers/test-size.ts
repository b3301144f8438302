const size = process.env.TEST_SIZE ?? "ci";
if (size !== "ci" && size !== "full") throw new Error(`TEST_SIZE: expected ci or full, got "${size}"`);

/** `npm run test:long` runs every test that asks here in its full size; elsewhere a size that a commit can wait for is used. */
export const isFullSize = size === "full";

/** A count for each of the two sizes. */
export function sized(ci: number, full: number): number {
  return isFullSize ? full : ci;
}
