import { lowerBound } from "../lower-bound.js";
import { sortNumbers } from "./number-sort.js";

/** New values are held in parts, so that nothing is copied while they come. The first parts are small: there may be 10,000 checks. */
const FIRST_PART = 8;
const LARGEST_PART = 16_384;

/**
 * Values in ascending order, for quantiles and histograms. Values can be added at any time: they are sorted when somebody asks, and
 * merged with those that are sorted already.
 */
export class SortedValues {
  #sorted = new Float64Array(0);
  #sortedCount = 0;
  /** Those that are not sorted yet. All parts are full but the last one. */
  readonly #parts: Float64Array<ArrayBuffer>[] = [];
  #last = new Float64Array(0);
  #lastCount = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Memory that it takes. */
  get bytes(): number {
    return this.#parts.reduce((sum, { byteLength }) => sum + byteLength, this.#sorted.byteLength);
  }

  add(value: number): void {
    if (this.#lastCount === this.#last.length) {
      this.#last = new Float64Array(Math.min(LARGEST_PART, Math.max(FIRST_PART, 2 * this.#last.length)));
      this.#parts.push(this.#last);
      this.#lastCount = 0;
    }
    this.#last[this.#lastCount++] = value;
    this.#count++;
  }

  /**
   * The quantile q of the values x(0) … x(n−1), linear between the two at (n − 1) q. It is what numpy calls `linear`, and Hyndman and
   * Fan (1996) type 7. The median is the quantile 0.5. NaN without values.
   *
   * @param share 0 to 1
   */
  quantile(share: number): number {
    this.#sort();
    const last = this.#count - 1;
    if (last < 0) return Number.NaN;
    const place = last * share;
    const low = Math.min(last, Math.floor(place));
    const below = this.#sorted[low] as number;
    if (low === place || low === last) return below;
    return below + ((this.#sorted[low + 1] as number) - below) * (place - low);
  }

  /** How many values are less than the bound. */
  countBelow(bound: number): number {
    this.#sort();
    return this.#placeOf(bound, this.#count);
  }

  /** The place of the first of these values that is not less than the bound. */
  #placeOf(bound: number, count: number): number {
    return lowerBound(0, count, (at) => (this.#sorted[at] as number) < bound);
  }

  #sort(): void {
    const count = this.#count - this.#sortedCount;
    if (count === 0) return;
    const isFirst = this.#sortedCount === 0;
    const taken = this.#takeAdded(isFirst ? withRoom(count) : count);
    const added = sortNumbers(taken.subarray(0, count));
    if (isFirst) this.#sorted = taken;
    else this.#merge(added);
    this.#sortedCount = this.#count;
  }

  #merge(added: Float64Array): void {
    if (this.#sorted.length < this.#count) {
      const larger = new Float64Array(withRoom(this.#count));
      larger.set(this.#sorted.subarray(0, this.#sortedCount));
      this.#sorted = larger;
    }
    // Each value goes to its place from the end, and those that are larger make room for it.
    let end = this.#sortedCount;
    for (let left = added.length; left > 0; left--) {
      const value = added[left - 1] as number;
      const place = this.#placeOf(value, end);
      if (place < end) this.#sorted.copyWithin(place + left, place, end);
      this.#sorted[place + left - 1] = value;
      end = place;
    }
  }

  /** What has been added since it was sorted, at the beginning of so much room. */
  #takeAdded(room: number): Float64Array<ArrayBuffer> {
    const added = new Float64Array(room);
    let end = 0;
    for (const part of this.#parts) {
      added.set(part === this.#last ? part.subarray(0, this.#lastCount) : part, end);
      end += part.length;
    }
    this.#parts.length = 0;
    this.#last = new Float64Array(0);
    this.#lastCount = 0;
    return added;
  }
}

/** Room for so many values and some more, so that the next ones need no copy of all. */
function withRoom(count: number): number {
  return Math.ceil(count * 1.06);
}
