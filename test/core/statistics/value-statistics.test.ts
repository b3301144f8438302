import t from "tap";
import { createRandom } from "../../../core/random.js";
import { capabilityOf, D2_OF_TWO, limitsOf } from "../../../core/statistics/capability.js";
import { bucketOf, checkFigures, trendOf } from "../../../core/statistics/check-figures.js";
import { histogramOf } from "../../../core/statistics/histogram.js";
import {
  meanMovingRangeOf,
  meanOf,
  quantileOf,
  rangeOf,
  standardDeviationOf,
} from "../../../core/statistics/value-statistics.js";

const NO_LIMITS = { lower: null, upper: null };
const near = (found: number | null, expected: number, digits: number): boolean =>
  found !== null && Math.abs(found - expected) <= 0.5 * 10 ** -digits;

t.test("NIST's reference data sets for mean and standard deviation", async (t) => {
  // https://www.itl.nist.gov/div898/strd/univ/: one value, then pairs around it. The last two lose digits in naive sums.
  const pairs = (first: number, low: number, high: number, n: number) =>
    Float64Array.from({ length: n }, (_, at) => (at === 0 ? first : at % 2 === 1 ? low : high));
  const sets = [
    {
      name: "NumAcc1",
      values: Float64Array.of(10000001, 10000003, 10000002),
      mean: 10000002,
      deviation: 1,
      digits: 15,
    },
    { name: "NumAcc2", values: pairs(1.2, 1.1, 1.3, 1001), mean: 1.2, deviation: 0.1, digits: 14 },
    {
      name: "NumAcc3",
      values: pairs(1000000.2, 1000000.1, 1000000.3, 1001),
      mean: 1000000.2,
      deviation: 0.1,
      digits: 9,
    },
    {
      name: "NumAcc4",
      values: pairs(10000000.2, 10000000.1, 10000000.3, 1001),
      mean: 10000000.2,
      deviation: 0.1,
      digits: 8,
    },
  ];
  for (const { name, values, mean, deviation, digits } of sets) {
    t.ok(near(meanOf(values), mean, 8), `${name}: mean`);
    // The values themselves are rounded to doubles: NumAcc4's have nine digits after the point.
    t.ok(near(standardDeviationOf(values, meanOf(values)), deviation, digits), `${name}: standard deviation`);
  }
});

t.test(
  "NIST's control chart for individual values (e-Handbook, 6.3.2.2): moving range and control limits",
  async (t) => {
    const flowrates = Float64Array.of(49.6, 47.6, 49.9, 51.3, 47.8, 51.2, 52.6, 52.4, 53.6, 52.1);
    const range = meanMovingRangeOf(flowrates);
    const mean = meanOf(flowrates);
    t.ok(near(range, 1.8778, 4), "mean moving range");
    t.ok(near(mean, 50.81, 12), "mean");
    t.ok(near(mean + (3 * range) / D2_OF_TWO, 55.8041, 4), "upper control limit");
    t.ok(near(mean - (3 * range) / D2_OF_TWO, 45.8159, 4), "lower control limit");
    const { cp, cpk } = checkFigures(flowrates.slice(), { lower: 45.8159, upper: 55.8041 });
    t.ok(near(cp, 1, 4) && near(cpk, 1, 4), "limits three of these standard deviations away: Cp and Cpk are 1");
  },
);

t.test(
  "NIST's example of capability (e-Handbook, 6.1.6): limits 8 and 20, mean 16, standard deviation 2",
  async (t) => {
    const { index, centred } = capabilityOf(16, 2, { lower: 8, upper: 20 });
    t.equal(index, 1);
    t.ok(near(centred, 0.6667, 4));
    t.ok(near(capabilityOf(16, 2, { lower: 8, upper: null }).centred, 1.3333, 4), "Cpl");
    t.ok(near(capabilityOf(16, 2, { lower: null, upper: 20 }).centred, 0.6667, 4), "Cpu");
  },
);

t.test("the R package SixSigma: 20 bottles of a winery, limits 740 and 760 (ss.data.ca)", async (t) => {
  // Cano, Moguerza and Redchuk, Six Sigma with R (2012), chapter 7. The package's own tests (test-ss-ca-cp.R, test-ss-ca-cpk.R) hold
  // these numbers. They take the standard deviation of all values, so they are Pp and Ppk here.
  const volumes = Float64Array.of(
    ...[755.81, 750.54, 751.05, 749.52, 749.21, 748.38, 748.11, 753.07, 749.56, 750.08],
    ...[747.16, 747.53, 749.22, 746.76, 747.64, 750.46, 749.27, 750.33, 750.26, 751.29],
  );
  const { pp, ppk } = checkFigures(volumes, { lower: 740, upper: 760 });
  t.ok(near(pp, 1.58413633507089, 13), `${pp}`);
  t.ok(near(ppk, 1.54651309711296, 13), `${ppk}`);
});

t.test("no capability without limits, without spread, and with limits that are crossed", async (t) => {
  const none = { index: null, centred: null };
  t.same(capabilityOf(1, 1, NO_LIMITS), none);
  t.same(capabilityOf(1, 0, { lower: 0, upper: 2 }), none);
  t.same(capabilityOf(1, Number.NaN, { lower: 0, upper: 2 }), none);
  t.same(capabilityOf(1, 1, { lower: 2, upper: 0 }), none);
  t.same(limitsOf(10, 0.5), { lower: 9.5, upper: 10.5 });
  t.same(limitsOf(null, 0.5), { lower: 0.5, upper: null }, "without nominal value: the least value that passes");
  t.same(limitsOf(10, null), NO_LIMITS);
  t.same(limitsOf(1e308, 1e308), { lower: 0, upper: null }, "what JSON has no number for is null");
});

t.test("no values, one value, all equal", async (t) => {
  const limits = { lower: 0, upper: 1 };
  t.same(
    Object.values(checkFigures(new Float64Array(0), limits)).filter((value) => value !== null),
    [],
  );
  const one = checkFigures(Float64Array.of(0.3), limits);
  t.match(one, { mean: 0.3, minimum: 0.3, maximum: 0.3, median: 0.3, standard_deviation: null, cp: null, ppk: null });
  t.same(one.histogram?.counts, [0, 0, 1, 0, 0]);
  // Their sum divided by their count is not 0.1.
  const equal = checkFigures(new Float64Array(7).fill(0.1), limits);
  t.match(equal, { mean: 0.1, standard_deviation: 0, median: 0.1, cp: null, cpk: null, pp: null, ppk: null });
  t.same(equal.histogram?.counts, [0, 0, 7, 0, 0]);
});

t.test("numbers at the end of what a double holds become null, never infinite and never NaN", async (t) => {
  const huge = checkFigures(Float64Array.of(1.7e308, -1.7e308, 1.7e308), { lower: -1e308, upper: 1e308 });
  const text = JSON.stringify(huge);
  t.equal(text.includes("null"), true);
  for (const value of Object.values(huge))
    t.ok(value === null || typeof value !== "number" || Number.isFinite(value), text);
  const tiny = checkFigures(Float64Array.of(1e16, 1e16 + 2), NO_LIMITS);
  t.equal(tiny.histogram, null, "no edges fit between two neighbouring doubles");
});

t.test("quantiles are those of the sorted values, whatever their order", async (t) => {
  const random = createRandom(36);
  for (let round = 0; round < 300; round++) {
    const n = random.integer(1, 400);
    const kinds = [() => random.normal(), () => random.integer(0, 3), (at: number) => at, (at: number) => -at];
    const kind = random.pick(kinds);
    const values = Float64Array.from({ length: n }, (_, at) => kind(at));
    const sorted = values.slice().sort();
    const share = random.pick([0, 0.25, 0.5, 0.75, 0.9, 0.99, 1, random.next()]);
    const place = (n - 1) * share;
    const low = sorted[Math.floor(place)]!;
    const expected = low + (sorted[Math.ceil(place)]! - low) * (place - Math.floor(place));
    t.equal(quantileOf(values, share), expected, `round ${round}`);
    t.same(values.sort(), sorted, "no value is lost");
  }
});

t.test("a histogram counts each value once, between its edges", async (t) => {
  const random = createRandom(37);
  for (let round = 0; round < 200; round++) {
    const scale = 10 ** random.integer(-6, 6);
    const digits = random.integer(1, 4);
    const values = Float64Array.from({ length: random.integer(1, 500) }, () =>
      Number((random.normal() * scale).toPrecision(digits)),
    );
    const range = rangeOf(values);
    const spread = quantileOf(values, 0.75) - quantileOf(values, 0.25);
    const { edges = [], counts = [] } = histogramOf(values, range, spread) ?? {};
    t.ok(counts.length >= 5 && counts.length <= 50, `${counts.length} bins`);
    const expected = counts.map(
      (_, at) =>
        values.filter(
          (value) =>
            value >= edges[at]! && (value < edges[at + 1]! || (at === counts.length - 1 && value === edges[at + 1])),
        ).length,
    );
    t.same(counts, expected, `round ${round}`);
  }
});

t.test("trend buckets share out the values evenly, in their order", async (t) => {
  for (const [n, buckets] of [
    [1, 1],
    [7, 3],
    [1000, 200],
    [1001, 200],
  ] as const) {
    const values = Float64Array.from({ length: n }, (_, at) => at);
    const trend = trendOf(values, buckets);
    t.equal(
      trend.reduce((sum, { count }) => sum + count, 0),
      n,
    );
    t.ok(trend.every(({ count }) => count >= Math.floor(n / buckets) && count <= Math.ceil(n / buckets)));
    for (const at of values) {
      const { minimum, maximum } = trend[bucketOf(at, n, buckets)]!;
      t.ok(minimum <= at && at <= maximum, `${at} of ${n}`);
    }
  }
});
