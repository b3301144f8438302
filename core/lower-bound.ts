/** The first place from `low` on, below `high`, that is not below what is searched; `high` if all are. Places are in order: a binary search. */
export function lowerBound(low: number, high: number, isBelow: (place: number) => boolean): number {
  let [first, end] = [low, high];
  while (first < end) {
    const middle = (first + end) >>> 1;
    if (isBelow(middle)) first = middle + 1;
    else end = middle;
  }
  return first;
}
