import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { createRandom, type Random } from "../../../../core/random.js";
import { CHECK_STATUSES } from "../../../../core/run/quality.js";
import { nodeFileSystem } from "../../../../storage/disk/file-system.js";
import { FindingsReader } from "../../../../storage/findings/segment-findings.js";
import { programStatistics } from "../../../../workers/artefacts/findings/program-statistics.js";
import { pythonWith, runPython, skipWithout } from "../../../helpers/captures/python-checker.js";
import { MEASURED_PROGRAM, MeasuredStore, OTHER_PROGRAM } from "../../../helpers/statistics/measured-store.js";
import { differenceOf } from "../../../helpers/statistics/statistics-model.js";

const pandas = pythonWith("pandas", "numpy");
const FIRST_US = Date.UTC(2026, 1, 1) * 1000;
const RUNS = 400;

/** Runs of which any may be a re-inspection, also one that ends before an earlier one does. */
async function fill(store: MeasuredStore, random: Random): Promise<void> {
  let completedAtUs = FIRST_US;
  for (let nth = 0; nth < RUNS; nth++) {
    completedAtUs += random.integer(1, 60_000_000);
    const statuses = random.chance(0.6) ? (["passed", "warning"] as const) : CHECK_STATUSES;
    await store.add({
      programId: random.chance(0.9) ? MEASURED_PROGRAM : OTHER_PROGRAM,
      serialNumber: random.chance(0.2) ? null : `SN ${random.integer(0, RUNS >> 1)}`,
      revision: random.integer(1, 4),
      status: random.pick(["completed", "completed", "completed", "failed", "cancelled"]),
      startedAtUs: random.chance(0.1) ? null : completedAtUs - random.integer(1, 90_000_000),
      completedAtUs,
      createdAtUs: completedAtUs - random.integer(1, 300_000_000),
      checks: Array.from({ length: random.integer(0, 4) }, () => ({ name: "bore", status: random.pick(statuses) })),
    });
  }
}

/** A row for each run; `statuses` are those of its checks. Prints the answer's part about runs for each question. */
const SCRIPT = `
import sys, json, numpy, pandas
runs = pandas.read_csv(sys.argv[1], dtype={"serial": str, "statuses": str}, keep_default_na=False, na_values={"serial": [""], "started_us": [""]})
def outcome(run):
    found = set(run.statuses.split())
    if run.status != "completed" or not found: return None
    return "failed" if "failed" in found else "indeterminate" if found & {"error", "not_evaluated"} else "passed"
runs["outcome"] = runs.apply(outcome, axis=1)
runs["part"] = runs.serial.fillna("run " + runs.id)
def share(outcomes):
    known = outcomes.dropna()
    return float((known == "passed").mean()) if len(known) else None
answers = []
for program, since, until, serial in json.loads(sys.argv[2]):
    found = runs[(runs.program == program) & (runs.completed_us >= (since or 0)) & (runs.completed_us < (until or numpy.inf))]
    if serial is not None: found = found[found.serial == serial]
    done = found[found.status == "completed"]
    took = ((done.completed_us - done.started_us) / 1e6).dropna()
    first = found[found.revision == 1].groupby("part").head(1)
    newest = found.sort_values("created_us", kind="stable").groupby("part").tail(1)
    quantiles = [None] * 3 if took.empty else [float(q) for q in numpy.percentile(took, [50, 90, 99])]
    count = lambda column, value: int((column == value).sum())
    answers.append(dict(
        runs=dict(**{s: count(found.status, s) for s in ["completed", "failed", "cancelled"]}, passed=count(done.outcome, "passed"),
            failed_qc=count(done.outcome, "failed"), indeterminate=count(done.outcome, "indeterminate"), without_report=int(done.outcome.isna().sum())),
        first_pass_yield=share(first.outcome), final_yield=share(newest.outcome),
        duration_seconds=dict(count=len(took), p50=quantiles[0], p90=quantiles[1], p99=quantiles[2])))
print(json.dumps(answers))
`;

t.test(
  "pandas and numpy count the same runs, yields and durations",
  { skip: skipWithout(pandas, "pandas") },
  async (t) => {
    for (const seed of [61, 62, 63]) {
      const store = await MeasuredStore.createFor(t);
      const random = createRandom(seed);
      await fill(store, random);
      const [early, late] = [store.runs[RUNS / 4]!.completedAtUs, store.runs[(3 * RUNS) / 4]!.completedAtUs];
      const questions = [
        [MEASURED_PROGRAM, null, null, null],
        [OTHER_PROGRAM, null, null, null],
        [MEASURED_PROGRAM, early, null, null],
        [MEASURED_PROGRAM, early, late, null],
        [MEASURED_PROGRAM, late, late, null],
        [MEASURED_PROGRAM, null, null, "SN 7"],
      ] as const;
      const rows = store.runs.map(({ id, programId, serialNumber, revision, status, startedAtUs, ...run }) =>
        [
          ...[
            id,
            programId,
            serialNumber ?? "",
            revision,
            status,
            startedAtUs ?? "",
            run.completedAtUs,
            run.createdAtUs,
          ],
          run.checks.map((check) => check.status).join(" "),
        ].join(","),
      );
      const file = join(t.testdir(), "runs.csv");
      const head = "id,program,serial,revision,status,started_us,completed_us,created_us,statuses";
      writeFileSync(file, `${[head, ...rows].join("\n")}\n`);
      const expected = JSON.parse(runPython(pandas as string, SCRIPT, file, JSON.stringify(questions))) as object[];
      const reader = new FindingsReader(nodeFileSystem);
      for (const [at, [programId, sinceUs, untilUs, serialNumber]] of questions.entries()) {
        const { json } = await programStatistics(reader, store.query({ programId, sinceUs, untilUs, serialNumber }));
        const found = JSON.parse(Buffer.from(json as Uint8Array).toString()) as Record<string, unknown>;
        const { runs, first_pass_yield, final_yield, duration_seconds } = found;
        const difference = differenceOf({ runs, first_pass_yield, final_yield, duration_seconds }, expected[at]);
        t.equal(difference, undefined, `seed ${seed}, question ${at}`);
      }
      t.match(expected[0], { duration_seconds: { p99: Number }, first_pass_yield: Number, final_yield: Number });
    }
  },
);
