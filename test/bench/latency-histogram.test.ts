import t from "tap";
import { bucketUpperNs, LatencyHistogram, mergeLatencies } from "../../bench/harness/latency-histogram.js";
import { createRandom } from "../../core/random.js";

t.test("an empty histogram summarises to zeros", (t) => {
  t.strictSame(new LatencyHistogram().summarize(), { count: 0, p50Us: 0, p90Us: 0, p99Us: 0, p999Us: 0, maximumUs: 0 });
  t.end();
});

t.test("every magnitude is told to better than 0.8 %, never better than it was, and its maximum exactly", (t) => {
  for (let exponent = 0; exponent < 43; exponent++) {
    for (const ns of [2 ** exponent, 2 ** exponent + 1, Math.floor(1.7 * 2 ** exponent), 2 ** (exponent + 1) - 1]) {
      const histogram = new LatencyHistogram();
      histogram.record(ns);
      histogram.record(2 ** 43 - 1);
      const told = histogram.percentileNs(0.5);
      if (told < ns || told > ns * 1.008) t.fail(`${ns} ns was told as ${told}`);
      const single = new LatencyHistogram();
      single.record(ns);
      if (single.percentileNs(1) !== ns) t.fail(`the only value ${ns} was told as ${single.percentileNs(1)}`);
    }
  }
  t.pass("all powers of two up to 2.4 hours");
  t.end();
});

t.test("buckets tile the numbers without gap or overlap", (t) => {
  for (let index = 1; index < 4000; index++) {
    const histogram = new LatencyHistogram();
    histogram.record(bucketUpperNs(index - 1) + 1);
    histogram.record(bucketUpperNs(index));
    const { buckets } = histogram.toData();
    if (buckets.length !== 1 || buckets[0]?.[0] !== index) t.fail(`bucket ${index}: ${JSON.stringify(buckets)}`);
  }
  t.pass("4,000 buckets");
  t.end();
});

t.test("percentiles follow the sorted values", (t) => {
  const random = createRandom(11);
  const values = Array.from({ length: 20_000 }, () => Math.round(50_000 * Math.exp(random.normal())));
  const histogram = new LatencyHistogram();
  for (const value of values) histogram.record(value);
  values.sort((a, b) => a - b);
  for (const p of [0.001, 0.5, 0.9, 0.99, 0.999, 1]) {
    const exact = values[Math.ceil(p * values.length) - 1] as number;
    const told = histogram.percentileNs(p);
    t.ok(told >= exact && told <= exact * 1.008, `p ${p}: ${told} for ${exact}`);
  }
  t.end();
});

t.test("merged parts equal the whole, also through JSON", (t) => {
  const random = createRandom(5);
  const whole = new LatencyHistogram();
  const parts = [new LatencyHistogram(), new LatencyHistogram(), new LatencyHistogram()];
  for (let i = 0; i < 3000; i++) {
    const ns = random.integer(0, 10 ** random.integer(1, 10));
    whole.record(ns);
    parts[i % 3]?.record(ns);
  }
  const merged = mergeLatencies(parts.map((part) => JSON.parse(JSON.stringify(part.toData()))));
  t.strictSame(merged.toData(), whole.toData());
  t.equal(merged.summarize().count, 3000);
  t.end();
});

t.test("a latency below zero counts as zero, one beyond the range as its end", (t) => {
  const histogram = new LatencyHistogram();
  histogram.record(-5);
  histogram.record(1e15, 2);
  t.equal(histogram.percentileNs(0.1), 0);
  t.equal(histogram.summarize().count, 3);
  t.equal(histogram.percentileNs(1), 2 ** 43 - 1);
  t.end();
});
