import t from "tap";
import {
  describeSpread,
  mannWhitneyP,
  median,
  medianInterval,
  quantile,
  ratioOfMediansInterval,
} from "../../bench/harness/statistics.js";
import { createRandom } from "../../core/random.js";

const VALUES = [7.0, 1.5, 3.25, 9.75, 2.0, 8.5, 4.0, 6.125];

t.test("quantiles are numpy's", (t) => {
  const known = [
    [0, 1.5],
    [0.1, 1.85],
    [0.25, 2.9375],
    [0.5, 5.0625],
    [0.75, 7.375],
    [0.9, 8.875],
    [1, 9.75],
  ] as const;
  for (const [p, expected] of known) t.ok(Math.abs(quantile(VALUES, p) - expected) < 1e-12, `quantile ${p}`);
  t.equal(median([3]), 3);
  t.equal(median([4, 1, 2]), 2);
  t.end();
});

t.test("the spread holds quartiles, MAD and extremes, and leaves its input alone", (t) => {
  const values = [...VALUES];
  t.strictSame(describeSpread(values), {
    count: 8,
    median: 5.0625,
    lowerQuartile: 2.9375,
    upperQuartile: 7.375,
    mad: 2.5,
    minimum: 1.5,
    maximum: 9.75,
  });
  t.strictSame(values, VALUES);
  t.end();
});

t.test("no values, or values that are no numbers, are an error and not a figure", (t) => {
  t.throws(() => median([]), /no values/);
  t.throws(() => median([1, Number.NaN]), /not a finite number/);
  t.throws(() => mannWhitneyP([], [1]), /no values/);
  t.throws(() => ratioOfMediansInterval([1], [Number.POSITIVE_INFINITY]), /not a finite number/);
  t.end();
});

t.test("the median's interval takes the ranks that the binomial gives, and tells its real coverage", (t) => {
  // Ranks and coverages from scipy.stats.binom.
  const known = [
    [1, 1, 0],
    [5, 1, 0.9375],
    [6, 1, 0.96875],
    [9, 2, 0.9609375],
    [11, 2, 0.98828125],
    [15, 4, 0.96484375],
  ] as const;
  for (const [count, rank, confidence] of known) {
    const values = Array.from({ length: count }, (_, i) => count - i);
    const interval = medianInterval(values);
    t.equal(interval.low, rank, `${count} values, low`);
    t.equal(interval.high, count + 1 - rank, `${count} values, high`);
    t.ok(Math.abs(interval.confidence - confidence) < 1e-12, `${count} values, coverage`);
  }
  t.end();
});

t.test("the median's interval covers the median of a skewed distribution as often as it says", (t) => {
  const random = createRandom(7);
  let covered = 0;
  for (let i = 0; i < 4000; i++) {
    const { low, high } = medianInterval(Array.from({ length: 11 }, () => Math.exp(random.normal())));
    if (low <= 1 && high >= 1) covered++;
  }
  t.ok(Math.abs(covered / 4000 - 0.988) < 0.01, `covered ${covered / 4000}, expected 0.988`);
  t.end();
});

t.test("Mann-Whitney agrees with scipy.stats.mannwhitneyu", (t) => {
  const exact = mannWhitneyP([12.1, 9.8, 11.4, 10.2, 13.7, 10.9, 9.1], [8.2, 9.5, 8.8, 7.9, 10.1, 9.0]);
  t.ok(Math.abs(exact - 0.008158508158508158) < 1e-12, `exact: ${exact}`);
  const apart = mannWhitneyP([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]);
  t.ok(Math.abs(apart - 2 / 252) < 1e-12, `no overlap: ${apart}`);
  const ties = mannWhitneyP([1, 2, 2, 3, 4, 5, 5, 6], [2, 3, 5, 7, 8, 8, 9, 9]);
  t.ok(Math.abs(ties - 0.04424768266831614) < 1e-6, `ties: ${ties}`);
  t.equal(mannWhitneyP([1, 1, 1], [1, 1, 1]), 1);
  t.equal(mannWhitneyP([1, 4], [2, 3]), 1);
  t.end();
});

t.test("the bootstrap interval is repeatable, holds the true ratio, and shrinks to it without noise", (t) => {
  const random = createRandom(3);
  const around = (centre: number): number[] => Array.from({ length: 25 }, () => centre * (1 + 0.05 * random.normal()));
  const a = around(140);
  const b = around(100);
  const interval = ratioOfMediansInterval(a, b);
  t.strictSame(ratioOfMediansInterval(a, b), interval);
  t.ok(interval.low < 1.4 && interval.high > 1.4, `${interval.low} to ${interval.high}`);
  t.ok(interval.low > 1.25 && interval.high < 1.55, "and is no wider than the noise explains");
  t.strictSame(ratioOfMediansInterval([3, 3, 3], [2, 2]), { low: 1.5, high: 1.5, confidence: 0.99 });
  t.end();
});
