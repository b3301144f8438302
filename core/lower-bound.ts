/** Binary search: the first place from `low` on for which `isBelow` is false, at most `high`. It must be true for all places before that one. */
export function lowerBound(low: number, high: number, isBelow: (place: number) => boolean): number {
  let [first, end] = [low, high];
  while (first < end) {
    const middle = (first + end) >>> 1;
    if (isBelow(middle)) first = middle + 1;
    else end = middle;
  }
  return first;
}
