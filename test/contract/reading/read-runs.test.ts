import t from "tap";
import type { CheckStatus } from "../../../core/run/quality.js";
import {
  ACTIVE_RUN,
  at,
  CANCELLED_RUN,
  CHECKS,
  DEFECTS,
  FAILED_RUN,
  FILES,
  FRAME,
  filled,
  links,
  PROGRAM,
  REMOVED_RUN,
  RUN,
  UNKNOWN,
  us,
} from "../../helpers/http/filled-cell.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { listOf } from "../../helpers/list-of.js";

interface QualityReport {
  quality_report: { status: string; checks: { name: string }[] } | null;
}

/** An ended step, of which nothing else is known. */
const STEP = { name: null, status: "completed", started_at: null, result: null, error: null };

t.test("GET /runs/{run_id}: every field of a completed run", async (t) => {
  const { client } = await filled(t);
  const document = {
    id: RUN,
    program_id: PROGRAM,
    status: "completed",
    quality_status: "passed",
    trace_id: "trace-1",
    serial_number: "SN+1 é",
    revision: 3,
    metadata: { lot: "A" },
    progress: { total_steps: 4, completed_steps: 4, current_step: null },
    steps: {
      completed: [
        { ...STEP, index: 1, type: "move_robot", name: "approach", started_at: at(12), completed_at: at(13) },
        {
          ...{ ...STEP, index: 2, type: "capture_frame", name: "top", started_at: at(14), completed_at: at(18) },
          result: { frame_id: FRAME, checks: [{ ...CHECKS[0], canonical_units: undefined }], defects: [DEFECTS[0]] },
        },
        { ...STEP, index: 3, type: "wait", status: "skipped", completed_at: at(19) },
        { ...STEP, index: 4, type: "gripper", status: "failed", completed_at: at(20), error: "gripper stuck" },
      ],
      in_progress: null,
      pending: [],
    },
    started_at: at(11),
    completed_at: at(28),
    error_message: null,
    results: { score: 1, frame_ids: [FRAME] },
    event_log: [
      { timestamp: at(5), event_type: "operator_note", data: { text: "hi" } },
      { timestamp: at(28), event_type: "finalize_timeout", data: { jobs: [] } },
    ],
    webhook_deliveries: [],
    webhook_delivery: { delivered: 0, failed: 0, pending: 0, all_ok: true },
    files: FILES,
    created_at: at(10),
    updated_at: at(28),
    links: links(RUN, PROGRAM),
  };
  const expected = JSON.parse(JSON.stringify(document));
  t.strictSame(await client.get("/runs/{run_id}", { path: { run_id: RUN } }), expected);
  t.strictSame(await client.get("/runs/{run_id}", { path: { run_id: RUN } }), expected, "the kept one is the same");
  const other = await rawRequest(client.port, `GET /runs/${RUN} HTTP/1.1\r\nHost: other\r\n\r\n`);
  t.match(other?.json(), { links: { self: { href: `http://other/runs/${RUN}` } } }, "but for another base address");
});

t.test("GET /runs/{run_id}: failed, cancelled and active runs", async (t) => {
  const { client, cell } = await filled(t);
  const failed = await client.get("/runs/{run_id}", { path: { run_id: FAILED_RUN } });
  t.strictSame(failed.metadata, {});
  t.match(failed, {
    status: "failed",
    error_message: "robot fault",
    completed_at: at(30),
    steps: {
      completed: listOf({ index: 1, status: "failed", completed_at: at(30) }),
      in_progress: null,
      pending: listOf({ index: 2, status: "cancelled" }),
    },
    results: { frame_ids: { length: 0 } },
  });
  t.match(await client.get("/runs/{run_id}", { path: { run_id: CANCELLED_RUN } }), {
    status: "cancelled",
    completed_at: at(32),
    started_at: null,
  });
  t.match(await client.get("/runs/{run_id}", { path: { run_id: ACTIVE_RUN } }), {
    status: "running",
    completed_at: null,
    progress: { total_steps: 4, completed_steps: 0, current_step: 2 },
    steps: { completed: { length: 0 }, in_progress: { index: 2, status: "running", started_at: at(52) } },
    updated_at: at(53),
  });
  cell.apply(us(60), {
    kind: "step_finished",
    runId: ACTIVE_RUN,
    index: 2,
    status: "completed",
    result: null,
    error: null,
  });
  t.match(await client.get("/runs/{run_id}", { path: { run_id: ACTIVE_RUN } }), {
    progress: { completed_steps: 1 },
    updated_at: at(60),
  });
});

t.test("an ended run that changes is shown changed", async (t) => {
  const { client, cell } = await filled(t);
  await client.get("/runs/{run_id}", { path: { run_id: RUN } });
  cell.apply(us(70), {
    kind: "run_ended",
    runId: RUN,
    run: { ...cell.state(RUN), capturesRemovedAtUs: us(70), updatedAtUs: us(70) },
  });
  const { updated_at, files } = await client.get("/runs/{run_id}", { path: { run_id: RUN } });
  t.equal(updated_at, at(70));
  t.same(
    files?.map(({ name, deleted_at }) => [name, deleted_at]),
    [
      [`frame-${FRAME}.npy`, at(70)],
      ["Messprotokoll 100% (é).pdf", null],
      ["empty.txt", null],
      ["damaged.bin", null],
    ],
    "its captures, and nothing else",
  );
});

t.test("GET /runs/active: the newest running or finalizing run, or none", async (t) => {
  const { client, cell } = await filled(t);
  const active = (await client.get("/runs/active")) as { active: boolean; run: { id: string } };
  t.equal(active.active, true);
  t.strictSame(active.run, await client.get("/runs/{run_id}", { path: { run_id: ACTIVE_RUN } }));
  cell.apply(us(60), { kind: "run_finalizing", runId: ACTIVE_RUN, summary: null, results: null });
  t.match(await client.get("/runs/active"), { active: true, run: { status: "finalizing" } });
  cell.end(us(61), ACTIVE_RUN, { status: "completed", errorMessage: null, notes: [] });
  t.strictSame(await client.get("/runs/active"), { active: false, run: null });
});

t.test("GET /runs/{run_id}/quality-report and /defects", async (t) => {
  const { client, cell } = await filled(t);
  t.strictSame(await client.get("/runs/{run_id}/quality-report", { path: { run_id: RUN } }), {
    run_id: RUN,
    quality_report: { status: "passed", final: true, checks: CHECKS, defects: DEFECTS, summary: "all good" },
  });
  t.strictSame(await client.get("/runs/{run_id}/defects", { path: { run_id: RUN } }), {
    run_id: RUN,
    defects: DEFECTS,
  });
  for (const run of [ACTIVE_RUN, FAILED_RUN, CANCELLED_RUN, REMOVED_RUN]) {
    t.strictSame(await client.get("/runs/{run_id}/quality-report", { path: { run_id: run } }), {
      run_id: run,
      quality_report: null,
    });
    t.strictSame(await client.get("/runs/{run_id}/defects", { path: { run_id: run } }), { run_id: run, defects: [] });
  }
  const [path, limit] = [{ run_id: ACTIVE_RUN }, 1];
  const statuses = ["passed", "failed", "indeterminate", "none"] as const;
  /** Report, detail, lists and their totals say the same. */
  const isEverywhere = async (expected: "failed" | "indeterminate" | null, final: boolean, label: string) => {
    const { quality_report: report } = await client.get("/runs/{run_id}/quality-report", { path });
    t.strictSame(report && [report.status, report.final], expected && [expected, final], label);
    t.equal((await client.get("/runs/{run_id}", { path })).quality_status, expected, label);
    t.equal((await client.get("/runs", { query: { limit } })).runs[0]?.quality_status, expected, label);
    for (const status of statuses) {
      const ofCell = await client.get("/runs", { query: { quality_status: status, limit } });
      const query = { quality_status: status, limit };
      const ofProgram = await client.get("/programs/{program_id}/runs", { path: { program_id: PROGRAM }, query });
      const isOfRun = status === (expected ?? "none");
      for (const { total, runs } of [ofCell, ofProgram]) {
        t.equal(runs[0]?.id === ACTIVE_RUN, isOfRun, `${label}: ${status}`);
        t.equal(total > 0, runs.length > 0, `${label}: ${status}`);
      }
    }
  };
  await isEverywhere(null, false, "no checks");
  cell.apply(us(60), { kind: "check_added", runId: ACTIVE_RUN, check: { name: "c", status: "not_evaluated" } });
  await isEverywhere("indeterminate", false, "one that was not evaluated");
  cell.apply(us(61), { kind: "job_started", runId: ACTIVE_RUN, jobId: RUN, name: "j" });
  const checks = [{ name: "d", status: "failed" as const }];
  const job = { runId: ACTIVE_RUN, jobId: RUN, checks, defects: [], error: null };
  cell.apply(us(62), { kind: "run_finalizing", runId: ACTIVE_RUN, summary: null, results: null });
  await isEverywhere("indeterminate", false, "finalizing");
  cell.apply(us(63), { kind: "job_finished", ...job, status: "completed" });
  await isEverywhere("failed", false, "a job's check while it is finalized");
  cell.apply(us(64), {
    kind: "event_added",
    runId: ACTIVE_RUN,
    entry: { eventType: "e", data: {}, timestampUs: null },
  });
  await isEverywhere("failed", false, "nothing of quality");
  cell.end(us(65), ACTIVE_RUN, { status: "completed", errorMessage: null, notes: [] });
  await isEverywhere("failed", true, "completed");
});

t.test(
  "GET /runs/{run_id}/quality-report?checks=not_passed: the status of all checks, and only those that did not pass",
  async (t) => {
    const { client, cell } = await filled(t);
    const names = async (checks: string) => {
      const { body } = await client.raw("GET", `/runs/${ACTIVE_RUN}/quality-report?checks=${checks}`);
      const { quality_report: report } = JSON.parse(body.toString()) as QualityReport;
      return report && [report.status, ...report.checks.map(({ name }) => name)];
    };
    cell.apply(us(60), { kind: "defect_added", runId: ACTIVE_RUN, defect: { type: "dent" } });
    t.equal(await names("not_passed"), null, "no checks yet");
    const add = (...statuses: CheckStatus[]) => {
      for (const status of statuses)
        cell.apply(us(60), { kind: "check_added", runId: ACTIVE_RUN, check: { name: status, status } });
    };
    add("passed", "warning");
    t.same(await names("not_passed"), ["passed"]);
    add("error", "not_evaluated", "failed");
    t.same(await names("not_passed"), ["failed", "error", "not_evaluated", "failed"]);
    for (const value of ["all", ""])
      t.same(await names(value), ["failed", "passed", "warning", "error", "not_evaluated", "failed"], `"${value}"`);
    const repeated = await client.raw("GET", `/runs/${ACTIVE_RUN}/quality-report?checks=all&checks=not_passed`);
    t.equal(repeated.status, 422);
    const unknown = await client.raw("GET", `/runs/${ACTIVE_RUN}/quality-report?checks=notpassed`);
    t.equal(unknown.status, 422);
    t.match(JSON.parse(unknown.body.toString()), {
      code: "invalid_parameter",
      params: { field: "checks", in: "query", value: "notpassed", allowed: "one of all, not_passed" },
    });
    const hasDefects = async (checks: string) => {
      const { body } = await client.raw("GET", `/runs/${ACTIVE_RUN}/quality-report?checks=${checks}`);
      return "defects" in JSON.parse(body.toString()).quality_report;
    };
    t.equal(await hasDefects("all"), true);
    t.equal(await hasDefects("not_passed"), false);
  },
);

t.test("a run that fails has no report any more, whatever its checks said", async (t) => {
  const { client, cell } = await filled(t);
  cell.apply(us(60), { kind: "check_added", runId: ACTIVE_RUN, check: { name: "c", status: "passed" } });
  cell.apply(us(60), { kind: "defect_added", runId: ACTIVE_RUN, defect: { type: "dent" } });
  const found = async (status: "passed" | "none") =>
    (await client.get("/runs", { query: { quality_status: status } })).total;
  t.same([await found("passed"), await found("none")], [2, 3]);
  cell.end(us(61), ACTIVE_RUN, { status: "failed", errorMessage: "broke", notes: [] });
  t.same([await found("passed"), await found("none")], [1, 4]);
  const path = { run_id: ACTIVE_RUN };
  t.equal((await client.get("/runs/{run_id}", { path })).quality_status, null);
  t.equal((await client.get("/runs/{run_id}/quality-report", { path })).quality_report, null);
  t.strictSame(
    (await client.get("/runs/{run_id}/defects", { path })).defects,
    [{ type: "dent" }],
    "they stay readable",
  );
});

t.test("unknown runs are 404 on every path below them", async (t) => {
  const { client } = await filled(t);
  for (const run of [UNKNOWN, `${RUN}0`, "nonsense", "..", "%00", "%2e%2e", "%zz", `${RUN}%20`]) {
    for (const path of ["", "/quality-report", "/defects", "/files", "/files/x"]) {
      // As it stands here: a client would encode it.
      const { params } = await client.rawRefusal(`/runs/${run}${path}`, 404, "run_not_found");
      t.match(params, { field: "run_id", in: "path" });
    }
  }
});
