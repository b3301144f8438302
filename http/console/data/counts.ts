/** A page of one entry of a list of runs, which is ordered by creation, newest first. */
interface OneRun {
  readonly total: number;
  readonly runs: readonly { readonly created_at: string }[];
}

/**
 * How many runs of a list were created at `sinceMs` or later. A few looks at single entries find the place where the list passes that time.
 * @param guess where it may be: near to it the search takes fewest looks
 */
export async function countSince(
  look: (offset: number) => Promise<OneRun>,
  sinceMs: number,
  guess: number,
): Promise<number> {
  let total = Number.POSITIVE_INFINITY;
  const isSince = async (offset: number): Promise<boolean> => {
    if (offset >= total) return false;
    const page = await look(offset);
    total = page.total;
    const [run] = page.runs;
    return run !== undefined && Date.parse(run.created_at) >= sinceMs;
  };
  let low = 0;
  let high = guess;
  let stride = 1;
  while (await isSince(high)) {
    low = high + 1;
    high += stride;
    stride *= 2;
  }
  // A shorter way down from the guess, if that is where it is.
  if (high > low && (await isSince(high - 1))) low = high;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (await isSince(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
