import t from "tap";
import { createRandom } from "../../../core/random.js";
import { capabilityOf, D2_OF_TWO, limitsOf } from "../../../core/statistics/capability.js";
import { checkFigures } from "../../../core/statistics/check-figures.js";
import { histogramOf } from "../../../core/statistics/histogram.js";
import { sortNumbers } from "../../../core/statistics/number-sort.js";
import { RunningValues } from "../../../core/statistics/running-values.js";
import { SortedValues } from "../../../core/statistics/sorted-values.js";

const NO_LIMITS = { lower: null, upper: null };
const running = (values: ArrayLike<number>, mostBuckets = 200): RunningValues => {
  const all = new RunningValues();
  for (const [at, value] of Array.from(values).entries()) all.add(value, at, false, mostBuckets);
  return all;
};
const sorted = (values: ArrayLike<number>): SortedValues => {
  const all = new SortedValues();
  for (const value of Array.from(values)) all.add(value);
  return all;
};
const figuresOf = (values: ArrayLike<number>, limits: Parameters<typeof checkFigures>[2]) =>
  checkFigures(running(values), sorted(values), limits);
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
    const all = running(values).all();
    t.ok(near(all.mean, mean, 8), `${name}: mean`);
    // The values themselves are rounded to doubles: NumAcc4's have nine digits after the point.
    t.ok(near(all.standardDeviation, deviation, digits), `${name}: standard deviation`);
  }
});

t.test(
  "NIST's control chart for individual values (e-Handbook, 6.3.2.2): moving range and control limits",
  async (t) => {
    // https://www.itl.nist.gov/div898/handbook/pmc/section3/pmc322.htm: flowrates of ten batches, and the limits that it prints.
    const flowrates = Float64Array.of(49.6, 47.6, 49.9, 51.3, 47.8, 51.2, 52.6, 52.4, 53.6, 52.1);
    const range = running(flowrates).meanMovingRange;
    const { mean } = running(flowrates).all();
    t.ok(near(range, 1.8778, 4), "mean moving range");
    t.ok(near(mean, 50.81, 12), "mean");
    t.ok(near(mean + (3 * range) / D2_OF_TWO, 55.8041, 4), "upper control limit");
    t.ok(near(mean - (3 * range) / D2_OF_TWO, 45.8159, 4), "lower control limit");
    const { cp, cpk } = figuresOf(flowrates, { lower: 45.8159, upper: 55.8041 });
    t.ok(near(cp, 1, 4) && near(cpk, 1, 4), "limits three of these standard deviations away: Cp and Cpk are 1");
  },
);

t.test(
  "NIST's example of capability (e-Handbook, 6.1.6): limits 8 and 20, mean 16, standard deviation 2",
  async (t) => {
    // https://www.itl.nist.gov/div898/handbook/pmc/section1/pmc16.htm
    const { index, centred } = capabilityOf(16, 2, { lower: 8, upper: 20 });
    t.equal(index, 1);
    t.ok(near(centred, 0.6667, 4));
    t.ok(near(capabilityOf(16, 2, { lower: 8, upper: null }).centred, 1.3333, 4), "Cpl");
    t.ok(near(capabilityOf(16, 2, { lower: null, upper: 20 }).centred, 0.6667, 4), "Cpu");
  },
);

t.test("SAS/QC: the inner diameters of 20 jet engines (data set Jets), one by one", async (t) => {
  // SAS/QC User's Guide, SHEWHART procedure, IRCHART statement, "Saving Control Limits" prints _MEAN_, _R_ and the limits
  // (support.sas.com/documentation/cdl/en/qcug/67522/HTML/default/qcug_shewhart_sect103.htm; the data: sample library, SHWIR1). SAS takes
  // d2 = 2 / √π, and this service 1.128, as NIST and AIAG do. The AIAG SPC manual has no example that can be read freely.
  const diameters = Float64Array.of(
    ...[78.4, 80.1, 84.4, 79.1, 80.4, 83.5, 73.8, 83.5, 75.0, 76.8],
    ...[70.5, 80.3, 82.4, 79.4, 86.4, 90.5, 77.7, 82.5, 79.9, 83.2],
  );
  const values = running(diameters);
  const { mean } = values.all();
  const range = values.meanMovingRange;
  t.ok(near(mean, 80.39, 10), `mean ${mean}`);
  t.ok(near(range, 5.32632, 5), `mean moving range ${range}`);
  const reach = (3 * range * Math.sqrt(Math.PI)) / 2;
  t.ok(near(mean - reach, 66.229, 4) && near(mean + reach, 94.551, 4), `${mean - reach} to ${mean + reach}`);
  t.ok(near(reach / 3, 4.72032, 5), "standard deviation from part to part");
  const { cp } = figuresOf(diameters, { lower: mean - reach, upper: mean + reach });
  t.ok(near(cp, (1.128 * Math.sqrt(Math.PI)) / 2, 12), "limits three of SAS's standard deviations away");
});

t.test("the R package SixSigma: 20 bottles of a winery, limits 740 and 760 (ss.data.ca)", async (t) => {
  // Cano, Moguerza and Redchuk, Six Sigma with R (2012), chapter 7. The package's own tests (test-ss-ca-cp.R, test-ss-ca-cpk.R) hold
  // these numbers. They take the standard deviation of all values, so they are Pp and Ppk here.
  const volumes = Float64Array.of(
    ...[755.81, 750.54, 751.05, 749.52, 749.21, 748.38, 748.11, 753.07, 749.56, 750.08],
    ...[747.16, 747.53, 749.22, 746.76, 747.64, 750.46, 749.27, 750.33, 750.26, 751.29],
  );
  const { pp, ppk } = figuresOf(volumes, { lower: 740, upper: 760 });
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
    Object.values(figuresOf(new Float64Array(0), limits)).filter((value) => value !== null),
    [],
  );
  const one = figuresOf(Float64Array.of(0.3), limits);
  t.match(one, { mean: 0.3, minimum: 0.3, maximum: 0.3, median: 0.3, standard_deviation: null, cp: null, ppk: null });
  t.same(one.histogram?.counts, [0, 0, 1, 0, 0]);
  // Their sum divided by their count is not 0.1.
  const equal = figuresOf(new Float64Array(7).fill(0.1), limits);
  t.match(equal, { mean: 0.1, standard_deviation: 0, median: 0.1, cp: null, cpk: null, pp: null, ppk: null });
  t.same(equal.histogram?.counts, [0, 0, 7, 0, 0]);
});

t.test("numbers at the end of what a double holds become null, never infinite and never NaN", async (t) => {
  const huge = figuresOf(Float64Array.of(1.7e308, -1.7e308, 1.7e308), { lower: -1e308, upper: 1e308 });
  const text = JSON.stringify(huge);
  t.equal(text.includes("null"), true);
  for (const value of Object.values(huge))
    t.ok(value === null || typeof value !== "number" || Number.isFinite(value), text);
  const tiny = figuresOf(Float64Array.of(1e16, 1e16 + 2), NO_LIMITS);
  t.equal(tiny.histogram, null, "no edges fit between two neighbouring doubles");
});

t.test("quantiles are those of the sorted values, whatever their order, and while values come", async (t) => {
  const random = createRandom(36);
  for (let round = 0; round < 300; round++) {
    const n = random.integer(1, 400);
    const kinds = [() => random.normal(), () => random.integer(0, 3), (at: number) => at, (at: number) => -at];
    const kind = random.pick(kinds);
    const values = Float64Array.from({ length: n }, (_, at) => kind(at));
    const found = new SortedValues();
    const often = random.pick([0.01, 0.1, 1]);
    for (const [at, value] of values.entries()) {
      found.add(value);
      if (at < n - 1 && !random.chance(often)) continue;
      const expected = values.slice(0, at + 1).sort();
      const share = random.pick([0, 0.25, 0.5, 0.75, 0.9, 0.99, 1, random.next()]);
      const place = at * share;
      const low = expected[Math.floor(place)]!;
      const quantile = low + (expected[Math.ceil(place)]! - low) * (place - Math.floor(place));
      if (found.quantile(share) !== quantile) t.fail(`seed 36, round ${round}: quantile ${share} of ${at + 1} values`);
      const bound = random.pick(expected as unknown as number[]);
      const below = expected.filter((one) => one < bound).length;
      if (found.countBelow(bound) !== below) t.fail(`seed 36, round ${round}: values below ${bound}`);
    }
    t.equal(found.count, n);
  }
  t.ok(Number.isNaN(new SortedValues().quantile(0.5)));
});

t.test("many numbers are sorted as few are", async (t) => {
  const random = createRandom(39);
  const kinds = [
    () => random.normal() * 10 ** random.integer(-300, 300),
    () => 10 + Math.round(random.normal() * 1e4) / 1e4,
    () => random.pick([0, -0, 1, -1, 5e-324, -5e-324, 1.7e308, -1.7e308]),
    () => -random.next(),
  ];
  for (const [kind, next] of kinds.entries()) {
    const numbers = Float64Array.from({ length: random.integer(5_000, 30_000) }, next);
    const expected = numbers.slice().sort();
    const found = sortNumbers(numbers);
    t.ok(
      found.every((number, at) => Object.is(number, expected[at])),
      `seed 39, kind ${kind}`,
    );
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
    const { edges = [], counts = [] } = histogramOf(sorted(values), running(values).all()) ?? {};
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

t.test("buckets hold a power of two of successive values, and the last one what is left", async (t) => {
  for (const [n, most, size] of [
    ...[[1, 200, 1] as const, [200, 200, 1] as const, [201, 200, 2] as const, [401, 200, 4] as const],
    ...[[7, 3, 4] as const, [1_000, 10, 128] as const],
  ]) {
    const { buckets } = running(
      Float64Array.from({ length: n }, (_, at) => at),
      most,
    );
    t.ok(buckets.length <= most && buckets.length === Math.ceil(n / size), `${n} values in ${buckets.length} buckets`);
    for (const [nth, { count, mean, minimum, maximum, fromUs, toUs }] of buckets.entries()) {
      const [first, last] = [nth * size, Math.min(n, (nth + 1) * size) - 1];
      t.same([count, mean, minimum, maximum], [last - first + 1, (first + last) / 2, first, last], `bucket ${nth}`);
      t.same([fromUs, toUs], [first, last], "when its first and its last value were");
    }
  }
});

t.test("fewer buckets are allowed later: the values stay in their order", async (t) => {
  const random = createRandom(38);
  for (let round = 0; round < 100; round++) {
    const values = Array.from({ length: random.integer(1, 600) }, () => 1e3 + random.normal());
    const all = new RunningValues();
    let most = 200;
    for (const [at, value] of values.entries()) {
      if (random.chance(0.01)) {
        most = random.integer(10, most);
        all.limit(most);
      }
      all.add(value, at, value > 1e3, most);
    }
    t.ok(all.buckets.length <= most);
    let next = 0;
    for (const { count, mean, minimum, maximum, failed, fromUs, toUs } of all.buckets) {
      const part = values.slice(next, next + count);
      t.same([fromUs, toUs], [next, next + count - 1]);
      t.same([minimum, maximum], [Math.min(...part), Math.max(...part)]);
      t.equal(failed, part.filter((value) => value > 1e3).length);
      t.ok(near(mean, part.reduce((sum, value) => sum + value, 0) / count, 11), `seed 38, round ${round}`);
      next += count;
    }
    t.equal(next, values.length);
  }
});
