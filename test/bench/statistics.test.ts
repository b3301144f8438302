import t from "tap";
import { describeSpread, median, medianInterval, quantile } from "../../bench/harness/statistics.js";
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

t.test("the spread holds quartiles and extremes, and leaves its input alone", (t) => {
  const values = [...VALUES];
  t.strictSame(describeSpread(values), {
    count: 8,
    median: 5.0625,
    lowerQuartile: 2.9375,
    upperQuartile: 7.375,
    minimum: 1.5,
    maximum: 9.75,
  });
  t.strictSame(values, VALUES);
  t.end();
});

t.test("no values, or values that are no numbers, are an error and not a figure", (t) => {
  t.throws(() => median([]), /no values/);
  t.throws(() => median([1, Number.NaN]), /not a finite number/);
  t.throws(() => medianInterval([]), /no values/);
  t.throws(() => describeSpread([Number.POSITIVE_INFINITY]), /not a finite number/);
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
