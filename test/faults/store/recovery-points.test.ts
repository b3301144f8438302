import t from "tap";
import { createRandom } from "../../../core/random.js";
import type { SimulationReport } from "../../helpers/store/simulation/simulation-report.js";
import { simulateStore } from "../../helpers/store/simulation/store-simulation.js";
import { CRASH_MODES, type CrashMode, type Strike } from "../../helpers/store/simulation/strike.js";
import { isFullSize, sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const SEEDS = sized(1, 2);
const STEPS = 30;
/** First lives end at every END_STRIDE-th operation of a history. */
const END_STRIDE = sized(241, 13);
/** The first end comes within so many: fewer than the syncs of a history, which the last kind of end counts. */
const FIRST_ENDS = Math.min(END_STRIDE, 25);
/** Every STRIDE-th operation of the opening after it is struck. */
const STRIDE = sized(17, 1);

/** How the first life ends, and what its end leaves. */
interface End {
  what: string;
  kind: Strike["kind"];
  mode: CrashMode;
  restarts: boolean;
}

const ENDS: readonly End[] = [
  ...CRASH_MODES.map((mode): End => ({ what: `a power cut (${mode})`, kind: "crash", mode, restarts: false })),
  { what: "the end of the process", kind: "kill", mode: "drop", restarts: false },
  { what: "a failed sync, and no power cut", kind: "sync", mode: "drop", restarts: true },
];

interface Outcome {
  /** Number of openings after a first life that was struck, for each kind of end. */
  openings: number[];
  /** How many of these openings were struck. */
  points: number;
  /** How many did not start. */
  failed: number;
  acknowledged: number;
  faults: string[];
}

/**
 * The first life ends at one operation after the other. The opening after each end is struck at one operation after the
 * other, until it has no more. Then a life in which all that was sent is answered, and the store's own check.
 */
async function strikeOpenings(kind: Strike["kind"], tried: readonly End[]): Promise<Outcome> {
  const outcome: Outcome = { openings: tried.map(() => 0), points: 0, failed: 0, acknowledged: 0, faults: [] };
  const random = createRandom(SEED);
  for (let seed = SEED; seed < SEED + SEEDS; seed++) {
    for (const [nth, { what, kind: ends, mode, restarts }] of tried.entries()) {
      for (let end = random.integer(0, FIRST_ENDS - 1); ; end += END_STRIDE) {
        const before: Strike[] = [{ place: "any", after: end, kind: ends }];
        let last: SimulationReport | null = null;
        for (let after = random.integer(0, STRIDE - 1); ; after += STRIDE) {
          const strike: Strike = { place: "recovery", after, kind };
          const report = await simulateStore(seed, { before, strike, mode, restarts, steps: STEPS });
          const where = `${what} at ${end} of seed ${seed}, then ${kind} at ${after} of the opening`;
          outcome.faults.push(...report.faults.map((fault) => `${where}: ${fault}`));
          last = report;
          // Other tests strike what comes after the opening.
          if (report.struck[1] !== "recovery") break;
          outcome.points++;
          outcome.failed += report.failedOpenings;
          outcome.acknowledged += report.counts.acknowledged;
        }
        // The history was over before that operation came.
        if (last === null || last.struck[0] === null) break;
        outcome.openings[nth] = (outcome.openings[nth] ?? 0) + 1;
      }
    }
  }
  return outcome;
}

t.comment(`TEST_SEED=${SEED}, first lives that end at one operation in ${END_STRIDE}, one in ${STRIDE} of an opening`);

const STRIKES = [
  ["crash", "a power cut", false],
  ["kill", "the end of the process", false],
  ["sync", "a failed sync", true],
  ["write", "a failed write", true],
  ["full", "a disk that is full", true],
] as const;

for (const [at, [kind, what, fails]] of STRIKES.entries()) {
  // A commit's size tries every other kind of end, and not the same ones for each kind of strike.
  const tried = ENDS.filter((_, end) => isFullSize || (end + at) % 2 === 0);
  t.test(`${what} at every operation of an opening that puts right what a crash left`, async (t) => {
    const { faults, openings, points, failed, acknowledged } = await strikeOpenings(kind, tried);
    t.same(faults.slice(0, 5), []);
    for (const [nth, { what }] of tried.entries()) t.ok(openings[nth], `openings after ${what}`);
    const all = openings.reduce((sum, count) => sum + count, 0);
    t.ok(points > (2 * all) / STRIDE, "an opening has several operations");
    t.equal(failed > 0, fails, "of those that were not ended some do not start");
    t.comment(
      `${all} openings (${openings.join(", ")} after each end) struck at ${points} operations, ${failed} refused: ${acknowledged} messages acknowledged, ${faults.length} faults`,
    );
  });
}
