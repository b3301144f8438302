import t from "tap";
import { createRandom } from "../../../core/random.js";
import type { SimulationReport } from "../../helpers/store/simulation/simulation-report.js";
import { simulateStore } from "../../helpers/store/simulation/store-simulation.js";
import { CRASH_MODES, type CrashMode, type Strike } from "../../helpers/store/simulation/strike.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
/** Histories that are struck everywhere. */
const SEEDS = sized(1, 10);
const STEPS = 40;
/** Each pass strikes every STRIDE-th operation. Other passes strike the ones between. */
const STRIDE = sized(24, 1);

interface Outcome {
  points: number;
  faults: string[];
  reports: SimulationReport[];
}

function firstOf(stride: number): number {
  return createRandom(SEED).integer(0, stride - 1);
}

/** Repeats each history, struck at a later operation each time, until the history ends before the strike. */
async function strikeEverywhere(
  kind: Strike["kind"],
  mode: CrashMode,
  { restarts = false, stride = STRIDE } = {},
): Promise<Outcome> {
  const outcome: Outcome = { points: 0, faults: [], reports: [] };
  const first = firstOf(stride);
  for (let seed = SEED; seed < SEED + SEEDS; seed++) {
    for (let after = first; ; after += stride) {
      const report = await simulateStore(seed, { strike: { place: "any", after, kind }, mode, restarts, steps: STEPS });
      const isStruck = report.crashes.idle !== report.counts.lives;
      if (!isStruck && report.faults.length > 0) throw new Error(`seed ${seed} without a strike: ${report.faults[0]}`);
      if (!isStruck) break;
      outcome.points++;
      outcome.reports.push(report);
      outcome.faults.push(...report.faults.map((fault) => `${kind} at ${after} of seed ${seed}, ${mode}: ${fault}`));
    }
  }
  return outcome;
}

function total(outcome: Outcome, count: keyof SimulationReport["counts"]): number {
  return outcome.reports.reduce((sum, { counts }) => sum + counts[count], 0);
}

/** Each fault is one of: lost, doubled, missing, damaged, answered after a failed sync, or not answered in the end. */
function judged(outcome: Outcome): string {
  return `${total(outcome, "acknowledged")} messages acknowledged, ${outcome.faults.length} faults`;
}

t.comment(`TEST_SEED=${SEED}, one operation in ${STRIDE} from ${firstOf(STRIDE)} on`);

interface Points {
  what: string;
  kind: Strike["kind"];
  mode: CrashMode;
  /** Points that a history has, if each operation is struck. */
  least: number;
}

const POINTS: readonly Points[] = [
  ...CRASH_MODES.map((mode): Points => {
    const what = `a power cut at every operation from capture bytes to acknowledgement, the disk keeps ${mode}`;
    return { what, kind: "crash", mode, least: 100 };
  }),
  { what: "the end of the process at every operation", kind: "kill", mode: "keep", least: 100 },
  {
    what: "a failure of every sync: nothing is acknowledged after it, nothing acknowledged is lost to a power cut",
    ...{ kind: "sync", mode: "drop", least: 35 },
  },
  { what: "a failure of every operation that writes", kind: "write", mode: "drop", least: 35 },
  {
    what: "a disk that is full from every operation on: nothing is lost, and all goes on once there is room",
    ...{ kind: "full", mode: "drop", least: 100 },
  },
];

for (const { what, kind, mode, least } of POINTS) {
  t.test(what, async (t) => {
    const outcome = await strikeEverywhere(kind, mode);
    t.same(outcome.faults.slice(0, 5), []);
    t.ok(outcome.points > (SEEDS * least) / STRIDE);
    const refused = total(outcome, "refusedForRoom");
    if (kind === "full") t.ok(refused > 0.5 * outcome.points, "most of them refuse something");
    t.comment(`${outcome.points} points, ${refused} of which refused something for lack of room: ${judged(outcome)}`);
  });
}

// If recovery relies on something that was not synced, a sixth of the syncs show it. A longer stride may miss them.
for (const [kind, stride] of [
  ["sync", sized(5, 1)],
  ["write", STRIDE],
] as const) {
  t.test(
    `a failure of every ${kind}, a restart that finds in memory what the disk never got, and a power cut later: nothing is lost`,
    async (t) => {
      const outcome = await strikeEverywhere(kind, "drop", { restarts: true, stride });
      t.same(outcome.faults.slice(0, 5), []);
      t.ok(outcome.points > (SEEDS * 35) / stride);
      t.ok(total(outcome, "restarts") > 0.5 * outcome.points, "most of them end the recording");
      t.comment(`${outcome.points} failures, ${total(outcome, "restarts")} restarts: ${judged(outcome)}`);
    },
  );
}
