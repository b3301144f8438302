import t, { type Test } from "tap";
import { createRandom, type Random } from "../../../../core/random.js";
import {
  boundThreshold,
  type DistanceSums,
  sumsAround,
} from "../../../../workers/artefacts/filter/outlier-threshold.js";

/** Around the mean, or around a guess of it that is off by some deviations. */
function sumsOf(distances: readonly number[], offDeviations = 0): DistanceSums {
  const counted = distances.filter((d) => d > 0);
  const sum = counted.reduce((total, d) => total + d, 0);
  const mean = counted.length > 0 ? sum / counted.length : 0;
  const deviation = Math.sqrt(counted.reduce((total, d) => total + (d - mean) ** 2, 0) / Math.max(1, counted.length));
  const around = mean + offDeviations * deviation;
  const squares = counted.reduce((total, d) => total + (d - around) ** 2, 0);
  const spread = counted.reduce((total, d) => total + d * Math.abs(d - around), 0);
  return { points: distances.length, counted: counted.length, open: 0, sum, around, squares, spread };
}

/** As the filter defines it, in the order of its sums. */
function threshold(distances: readonly number[]): { mean: number; threshold: number } {
  let sum = 0;
  for (const d of distances) if (d > 0) sum += d;
  const mean = sum / distances.length;
  let squares = 0;
  for (const d of distances) if (d > 0) squares += (d - mean) * (d - mean);
  return { mean, threshold: mean + 2 * Math.sqrt(squares / (distances.length - 1)) };
}

function inParts(random: Random, distances: readonly number[], count: number): DistanceSums[] {
  const ends = Array.from({ length: count - 1 }, () => random.integer(0, distances.length)).sort((a, b) => a - b);
  return [...ends, distances.length].map((end, nth) => {
    const part = distances.slice(ends[nth - 1] ?? 0, end);
    const sums = sumsOf(part, random.pick([0, -0.12, 0.1]));
    return sumsAround(sums.counted > 0 ? sums.sum / sums.counted : 0, sums) ?? sumsOf(part);
  });
}

t.test("the threshold of whatever distances these may stand for lies within the bounds", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_125);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  for (let nth = 0; nth < 400; nth++) {
    const points = random.integer(2_000, 4_000);
    const spread = random.pick([0, 1e-9, 1e-5, 1e-3, 0.1, 0.5]);
    const farShare = random.pick([0, 0.001, 0.05]);
    const zeroShare = random.pick([0, 0, 0, 0.01, 0.9]);
    const error = random.pick([0, 1e-14, 3e-7, 1e-4]);
    const distances = Array.from({ length: points }, () => {
      if (random.chance(zeroShare)) return 0;
      const d = 0.2 * (1 + spread * random.normal()) + (random.chance(farShare) ? 5 * random.next() : 0);
      return Math.max(1e-3, d);
    });
    // In order, the parts have different means.
    const inOrder = random.chance(0.5) ? distances : [...distances].sort((a, b) => a - b);
    const { low, high } = boundThreshold(inParts(random, inOrder, random.integer(1, 9)), error);
    staysWithin(t, `${nth}`, random, distances, error, { low, high });
  }
  for (const [one, other] of [
    [0.2, 0.25],
    [0.2, 0.6],
    [0.2, 2],
  ] as const) {
    const parts = [one, other].map((d) => Array.from({ length: 1_500 }, () => d * (1 + 0.01 * random.next())));
    for (const error of [3e-7, 1e-4]) {
      const bounds = boundThreshold(
        parts.map((part) => sumsOf(part)),
        error,
      );
      staysWithin(t, `parts of ${one} and ${other}`, random, parts.flat(), error, bounds);
    }
  }
});

t.test(
  "many distances that are alike, of which more move up than down, leave as much doubt as that makes",
  async (t) => {
    const error = 1e-4;
    for (const far of [0.007, 0.008]) {
      const distances = Array.from({ length: 4_000 }, (_, at) => (at === 0 ? 0.2 * (1 + far) : 0.2));
      const { low, high } = boundThreshold([sumsOf(distances)], error);
      for (const share of [0.7, 0.75, 0.8]) {
        // Spread evenly; the one that is far off moves farther.
        const exact = distances.map((d, at) => d / (1 - (at === 0 || (at * 0.618034) % 1 < share ? error : -error)));
        const { threshold: found } = threshold(exact);
        t.ok(low <= found && found <= high, `${far}, ${share}: ${found} between ${low} and ${high}`);
      }
    }
  },
);

/** At random; all farther from the mean, or nearer to it; and all of them more, or less. */
function staysWithin(
  t: Test,
  name: string,
  random: Random,
  distances: readonly number[],
  error: number,
  { low, high }: { low: number; high: number },
): void {
  const { mean } = threshold(distances);
  for (const way of ["random", "apart", "together", "more", "less"] as const) {
    const exact = distances.map((d) => {
      const side = way === "more" || d > mean ? 1 : -1;
      const sign = { random: random.chance(0.5) ? 1 : -1, apart: side, together: -side, more: 1, less: -1 }[way];
      return d / (1 - sign * error);
    });
    const { threshold: found } = threshold(exact);
    if (!(low <= found && found <= high)) {
      t.fail(`${name}, ${way}, error ${error}: ${found} is not between ${low} and ${high}`);
    }
  }
}

t.test("points far off leave less doubt than as many that differ", async (t) => {
  const random = createRandom(3);
  const error = 3e-7;
  const doubtOf = (distances: readonly number[]): number => {
    const { low, high } = boundThreshold([sumsOf(distances)], error);
    return (high - low) / 2 / error;
  };
  const few = Array.from({ length: 50_000 }, (_, at) => (at % 200 === 0 ? 0.4 : 0.2 + random.normal() * 1e-4));
  // Without regard to how distances differ it is the mean and twice the root mean square: 3 means at least.
  t.ok(doubtOf(few) < 2 * threshold(few).mean, `${doubtOf(few)}`);
});

t.test("sums around a guess are those around the mean, unless the guess was far off", async (t) => {
  const random = createRandom(31);
  const distances = Array.from({ length: 5_000 }, () => 0.2 + 0.05 * random.normal());
  const wanted = sumsOf(distances);
  const near = sumsAround(wanted.around, sumsOf(distances, 0.1));
  t.equal(near?.around, wanted.around);
  t.ok(Math.abs((near?.squares ?? 0) / wanted.squares - 1) < 1e-12, `${near?.squares} and ${wanted.squares}`);
  t.ok((near?.spread ?? 0) >= wanted.spread && (near?.spread ?? 0) < 1.3 * wanted.spread, "a bound of the spread");
  t.equal(sumsAround(wanted.around, sumsOf(distances, 0.2)), null, "too far off");
  t.same(sumsAround(0, sumsOf([0, 0])), { ...sumsOf([0, 0]), around: 0 }, "nothing is counted");
});
