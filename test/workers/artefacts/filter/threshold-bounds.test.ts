import t, { type Test } from "tap";
import { createRandom, type Random } from "../../../../core/random.js";
import { boundThreshold, type DistanceSums } from "../../../../workers/artefacts/filter/threshold-bounds.js";

function sumsOf(distances: readonly number[]): DistanceSums {
  const counted = distances.filter((d) => d > 0);
  const sum = counted.reduce((total, d) => total + d, 0);
  const mean = sum / distances.length;
  const squares = counted.reduce((total, d) => total + (d - mean) ** 2, 0);
  const spread = counted.reduce((total, d) => total + d * Math.abs(d - mean), 0);
  return { points: distances.length, counted: counted.length, sum, squares, spread };
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
    staysWithin(t, `${nth}`, random, distances, error, boundThreshold(sumsOf(distances), error));
  }
  for (const [one, other] of [
    [0.2, 0.25],
    [0.2, 0.6],
    [0.2, 2],
  ] as const) {
    const distances = Array.from(
      { length: 3_000 },
      (_, at) => (at % 2 === 0 ? one : other) * (1 + 0.01 * random.next()),
    );
    for (const error of [3e-7, 1e-4]) {
      const bounds = boundThreshold(sumsOf(distances), error);
      staysWithin(t, `${one} and ${other}`, random, distances, error, bounds);
    }
  }
});

t.test(
  "many distances that are alike, of which more move up than down, leave as much doubt as that makes",
  async (t) => {
    const error = 1e-4;
    for (const far of [0.007, 0.008]) {
      const distances = Array.from({ length: 4_000 }, (_, at) => (at === 0 ? 0.2 * (1 + far) : 0.2));
      const { low, high } = boundThreshold(sumsOf(distances), error);
      for (const share of [0.7, 0.75, 0.8]) {
        // The points that move up are spread evenly. The one that is far off moves up too, away from the others.
        const exact = distances.map((d, at) => d / (1 - (at === 0 || (at * 0.618034) % 1 < share ? error : -error)));
        const { threshold: found } = threshold(exact);
        t.ok(low <= found && found <= high, `${far}, ${share}: ${found} between ${low} and ${high}`);
      }
    }
  },
);

/** Moves every distance by the error in five ways: at random, away from the mean, towards it, all up, all down. */
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
    const { low, high } = boundThreshold(sumsOf(distances), error);
    return (high - low) / 2 / error;
  };
  const few = Array.from({ length: 50_000 }, (_, at) => (at % 200 === 0 ? 0.4 : 0.2 + random.normal() * 1e-4));
  // A bound that ignores how few points are far off would be mean + 2 root mean squares, which is at least 3 means.
  t.ok(doubtOf(few) < 2 * threshold(few).mean, `${doubtOf(few)}`);
});
