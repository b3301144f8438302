import { setTimeout } from "node:timers/promises";

const LOOK_MS = 20;
const WAIT_MS = 60_000;

/**
 * Looks until it is so, with a step between two looks.
 * @param what that is waited for, for the error
 * @throws Error if it is not so within a minute
 */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  step: () => unknown = () => setTimeout(LOOK_MS),
): Promise<void> {
  const endMs = performance.now() + WAIT_MS;
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`still waiting: ${what}`);
    await step();
  }
}
