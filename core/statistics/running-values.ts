/**
 * Figures of values that come one after the other. One more value can be added at any time. The result depends on the values and their
 * order only, not on when somebody asks in between.
 *
 * - mean m and Σ (x − m)² of a bucket: Welford (1962). Those of two buckets together: Chan, Golub and LeVeque (1979). Both lose no
 *   digits to a large mean.
 * - standard deviation s = √(Σ (x − m)² / (n − 1))
 * - mean moving range MR = Σ |x(i) − x(i−1)| / (n − 1), over successive values; the sum is compensated (Kahan, 1965)
 *
 * No sum overflows into a wrong number: where one exceeds the largest double, the result is infinite or NaN. Callers show that as null.
 */

/** Some successive values. */
export class ValueBucket {
  count = 0;
  mean = 0;
  minimum = Number.POSITIVE_INFINITY;
  maximum = Number.NEGATIVE_INFINITY;
  /** How many of their checks failed. */
  failed = 0;
  /** When the run of the first value ended, and that of the last one. */
  fromUs = 0;
  toUs = 0;
  /** Σ (x − m)² */
  #squares = 0;

  /** With n − 1. NaN for fewer than two values. */
  get standardDeviation(): number {
    return this.count < 2 ? Number.NaN : Math.sqrt(this.#squares / (this.count - 1));
  }

  add(value: number, timeUs: number, isFailed: boolean): void {
    if (this.count === 0) this.fromUs = timeUs;
    this.toUs = timeUs;
    this.count++;
    const distance = value - this.mean;
    this.mean += distance / this.count;
    this.#squares += distance * (value - this.mean);
    if (value < this.minimum) this.minimum = value;
    if (value > this.maximum) this.maximum = value;
    if (isFailed) this.failed++;
  }

  /** Adds the values of the bucket that comes after this one. */
  append(next: ValueBucket): void {
    const count = this.count + next.count;
    if (this.count === 0) {
      this.fromUs = next.fromUs;
      this.mean = next.mean;
      this.#squares = next.#squares;
    } else {
      const distance = next.mean - this.mean;
      this.mean += distance * (next.count / count);
      this.#squares += next.#squares + distance * distance * ((this.count * next.count) / count);
    }
    this.count = count;
    this.toUs = next.toUs;
    this.minimum = Math.min(this.minimum, next.minimum);
    this.maximum = Math.max(this.maximum, next.maximum);
    this.failed += next.failed;
  }
}

export class RunningValues {
  /** Buckets of the same count, a power of two; the last one can have fewer values. */
  readonly #buckets: ValueBucket[] = [];
  #bucketCount = 1;
  #last = new ValueBucket();
  #previous = Number.NaN;
  #ranges = 0;
  #lost = 0;

  /** The values in their order. */
  get buckets(): readonly ValueBucket[] {
    return this.#buckets;
  }

  /** Mean of the ranges of two successive values. NaN for fewer than two values. */
  get meanMovingRange(): number {
    return this.#ranges / (this.all().count - 1);
  }

  /** All values in one bucket. */
  all(): ValueBucket {
    const all = new ValueBucket();
    for (const bucket of this.#buckets) all.append(bucket);
    return all;
  }

  /** @param mostBuckets before there are more, two become one */
  add(value: number, timeUs: number, isFailed: boolean, mostBuckets: number): void {
    if (this.#last.count === this.#bucketCount) this.limit(mostBuckets - 1);
    if (this.#last.count === this.#bucketCount || this.#buckets.length === 0) {
      this.#last = new ValueBucket();
      this.#buckets.push(this.#last);
    }
    this.#last.add(value, timeUs, isFailed);
    if (!Number.isNaN(this.#previous)) this.#addRange(Math.abs(value - this.#previous));
    this.#previous = value;
  }

  /** Makes larger buckets until there are at most so many. */
  limit(mostBuckets: number): void {
    const buckets = this.#buckets;
    while (buckets.length > mostBuckets && buckets.length > 1) {
      const pairs = Math.ceil(buckets.length / 2);
      for (let at = 0; at < pairs; at++) {
        const [first, second] = [buckets[2 * at] as ValueBucket, buckets[2 * at + 1]];
        if (second !== undefined) first.append(second);
        buckets[at] = first;
      }
      buckets.length = pairs;
      this.#bucketCount *= 2;
      this.#last = buckets[pairs - 1] as ValueBucket;
    }
  }

  #addRange(range: number): void {
    const added = range - this.#lost;
    const next = this.#ranges + added;
    this.#lost = next - this.#ranges - added;
    this.#ranges = next;
  }
}
