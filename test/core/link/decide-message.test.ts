import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import { CELL_MESSAGE_SCHEMAS, type CellMessage } from "../../../core/link/cell-message-schema.js";
import type { RunState } from "../../../core/run/run-state.js";
import {
  type FixtureStatus,
  FRAME_ID,
  frameBegin,
  idOf,
  JOB_ID,
  PROGRAM_ID,
  RUN_ID,
  refusalOf,
  runOf,
  stateWithRun,
} from "../../helpers/link/cell-messages.js";
import { listOf } from "../../helpers/list-of.js";

/** One message of each type about the run, which the fixture's running run accepts. */
const ABOUT_RUN: [CellMessage, payloadBytes: number][] = [
  [{ type: "run.create", id: RUN_ID, program_id: PROGRAM_ID }, 0],
  [{ type: "run.start", id: RUN_ID }, 0],
  [{ type: "step.start", run_id: RUN_ID, index: 2 }, 0],
  [{ type: "step.finish", run_id: RUN_ID, index: 1, status: "completed" }, 0],
  [frameBegin({ id: idOf(21) }), 0],
  [{ type: "frame.lines", id: FRAME_ID, first_line: 1, line_count: 3 }, 27],
  [{ type: "frame.end", id: FRAME_ID }, 0],
  [
    {
      type: "series.append",
      run_id: RUN_ID,
      step_index: 2,
      channels: 2,
      first_timestamp: "2026-11-20T19:07:00Z",
      sample_period_us: 100,
      dtype: "f32",
    },
    16,
  ],
  [{ type: "check.add", run_id: RUN_ID, check: { name: "gap", status: "passed" } }, 0],
  [{ type: "defect.add", run_id: RUN_ID, defect: { type: "dent" } }, 0],
  [{ type: "job.start", run_id: RUN_ID, id: idOf(31), name: "measure" }, 0],
  [{ type: "job.finish", run_id: RUN_ID, id: JOB_ID, status: "completed" }, 0],
  [{ type: "file.put", run_id: RUN_ID, name: "report.pdf", content_type: "application/pdf" }, 12],
  [{ type: "event.add", run_id: RUN_ID, event_type: "note", data: {} }, 0],
  [{ type: "run.finish", id: RUN_ID }, 0],
  [{ type: "run.fail", id: RUN_ID, error_message: "collision" }, 0],
  [{ type: "run.cancel", id: RUN_ID }, 0],
];

/** What may follow what, as workers/cell-link/README.md has it. */
const ACCEPTED: Record<FixtureStatus, readonly string[]> = {
  pending: ["run.start", "run.cancel", "run.fail", "event.add", "file.put"],
  running: ABOUT_RUN.map(([message]) => message.type).filter((type) => type !== "run.create" && type !== "run.start"),
  finalizing: ["frame.lines", "frame.end", "job.finish", "file.put", "event.add", "run.fail"],
  completed: [],
  failed: [],
  cancelled: [],
};

t.test("what may follow what: every message about a run in every status", async (t) => {
  const types = Object.keys(CELL_MESSAGE_SCHEMAS).filter((type) => !/^(?:cell|component|program)\./.test(type));
  t.same(
    ABOUT_RUN.map(([message]) => message.type),
    types,
    "the table has every message about runs",
  );
  for (const [status, accepted] of Object.entries(ACCEPTED) as [FixtureStatus, string[]][]) {
    for (const [message, payloadBytes] of ABOUT_RUN) {
      // All of its lines are there, so that frame.end has nothing else against it.
      const state = stateWithRun(status, message.type === "frame.end" ? { height: 1 } : {});
      const refusal = refusalOf(state, message, payloadBytes);
      let expected: string | undefined = accepted.includes(message.type) ? undefined : "illegal_transition";
      if (message.type === "run.create") expected = "already_exists";
      // A pending run has no frames, and a frame is found before its run is.
      if (status === "pending" && (message.type === "frame.lines" || message.type === "frame.end"))
        expected = "not_found";
      t.equal(refusal?.code, expected, `${status}: ${message.type}`);
      if (expected === "illegal_transition") {
        const where = Object.keys(ACCEPTED).filter((one) => ACCEPTED[one as FixtureStatus].includes(message.type));
        t.same(refusal?.params.allowed, where, "params say where it is allowed");
        t.match(refusal?.params, { path: "run_id" in message ? "/run_id" : "/id", status: String });
      }
    }
  }
});

t.test("a run that is not there", async (t) => {
  const unknown = idOf(99);
  for (const [message, payloadBytes] of ABOUT_RUN) {
    if (message.type === "run.create") continue;
    const field = "run_id" in message ? "run_id" : "id";
    const refusal = refusalOf(stateWithRun("running"), { ...message, [field]: unknown } as CellMessage, payloadBytes);
    t.match(refusal, { code: "not_found", params: { path: `/${field}`, value: unknown } }, message.type);
  }
});

t.test("a step: pending → running → completed or failed, or pending → skipped", async (t) => {
  type Status = "pending" | "running" | "completed" | "failed" | "skipped";
  const moves = { start: "running", completed: "completed", failed: "failed", skipped: "skipped" } as const;
  const legal: Record<Status, readonly (keyof typeof moves)[]> = {
    pending: ["start", "skipped"],
    running: ["completed", "failed"],
    completed: [],
    failed: [],
    skipped: [],
  };
  const path: Record<Status, readonly (keyof typeof moves)[]> = {
    pending: [],
    running: ["start"],
    completed: ["start", "completed"],
    failed: ["start", "failed"],
    skipped: ["skipped"],
  };
  const message = (move: keyof typeof moves): CellMessage =>
    move === "start"
      ? { type: "step.start", run_id: RUN_ID, index: 3 }
      : { type: "step.finish", run_id: RUN_ID, index: 3, status: move };
  for (const from of Object.keys(path) as Status[]) {
    for (const move of Object.keys(moves) as (keyof typeof moves)[]) {
      const state = stateWithRun("running");
      for (const before of path[from]) state.send(message(before));
      t.equal(runOf(state).steps[2]?.status, from);
      const refusal = refusalOf(state, message(move));
      const allowed = listOf(move === "start" || move === "skipped" ? "pending" : "running");
      if (legal[from].includes(move)) {
        t.equal(runOf(state).steps[2]?.status, moves[move], `${from}: ${move}`);
      } else {
        t.match(
          refusal,
          { code: "illegal_transition", params: { path: "/index", value: 3, status: from, allowed } },
          `${from}: ${move}`,
        );
      }
    }
  }
  const refusal = refusalOf(stateWithRun("running"), { type: "step.start", run_id: RUN_ID, index: 4 });
  t.match(refusal, { code: "not_found", params: { path: "/index", value: 4, allowed: "1 to 3" } });
});

t.test("several steps run at once", async (t) => {
  const state = stateWithRun("running");
  t.equal(refusalOf(state, { type: "step.start", run_id: RUN_ID, index: 3 }), undefined);
  t.equal(refusalOf(state, { type: "step.start", run_id: RUN_ID, index: 2 }), undefined);
  t.same(
    runOf(state).steps.map((step) => step.status),
    ["running", "running", "running"],
  );
});

t.test("payloads: exact where they are due, none where they are not", async (t) => {
  for (const [message, payloadBytes] of ABOUT_RUN) {
    const state = stateWithRun(
      message.type === "run.start" ? "pending" : "running",
      message.type === "frame.end" ? { height: 1 } : {},
    );
    if (message.type === "run.create") state.runs.clear();
    if (payloadBytes === 0) {
      t.match(
        refusalOf(state, message, 1),
        { code: "size_mismatch", params: { path: "payload", value: 1, allowed: 0 } },
        message.type,
      );
    } else if (message.type === "file.put") {
      t.equal(refusalOf(state, message, 0), undefined, "a file may be empty");
    } else {
      for (const wrong of [0, payloadBytes - 1, payloadBytes + 1]) {
        t.match(
          refusalOf(state, message, wrong),
          { code: "size_mismatch", params: { path: "payload", value: wrong } },
          message.type,
        );
      }
      t.equal(refusalOf(state, message, payloadBytes), undefined);
    }
  }
});

t.test("jobs", async (t) => {
  const state = stateWithRun("running");
  const check = { name: "gap", status: "failed" as const };
  t.match(refusalOf(state, { type: "job.start", run_id: RUN_ID, id: JOB_ID, name: "x" }), {
    code: "already_exists",
    params: { path: "/id", value: JOB_ID },
  });
  t.match(refusalOf(state, { type: "job.finish", run_id: RUN_ID, id: idOf(31), status: "failed" }), {
    code: "not_found",
    params: { path: "/id" },
  });
  state.send({ type: "job.start", run_id: RUN_ID, id: idOf(31), name: "x" });
  state.send({
    type: "job.finish",
    run_id: RUN_ID,
    id: JOB_ID,
    status: "failed",
    checks: [check],
    defects: [{}],
    error: "e",
  });
  t.match(
    runOf(state),
    { checks: { length: 0 }, defects: { length: 0 } },
    "checks and defects of a failed job do not count",
  );
  t.match(runOf(state).jobs[0], { status: "failed", error: "e" });
  t.match(refusalOf(state, { type: "job.finish", run_id: RUN_ID, id: JOB_ID, status: "completed" }), {
    code: "illegal_transition",
    params: { path: "/id", status: "failed", allowed: listOf("running") },
  });
  state.send({ type: "run.finish", id: RUN_ID });
  state.send({ type: "job.finish", run_id: RUN_ID, id: idOf(31), status: "completed", checks: [check], defects: [{}] });
  t.match(
    runOf(state),
    { checks: listOf(check), defects: { length: 1 } },
    "those of one that finishes while finalizing do",
  );
});

const CHECK = { name: "c", status: "passed" as const };
/** Messages that are one too many for a run that is full of what they add. */
const LIMITED: [what: string, fill: (run: RunState) => void, message: CellMessage, path: string, limit: number][] = [
  [
    "events",
    (run) => fill(run.eventLog, LIMITS.eventsPerRun),
    { type: "event.add", run_id: RUN_ID, event_type: "x", data: {} },
    "/run_id",
    LIMITS.eventsPerRun,
  ],
  [
    "checks",
    (run) => fill(run.checks, LIMITS.checksPerRun),
    { type: "check.add", run_id: RUN_ID, check: CHECK },
    "/check",
    LIMITS.checksPerRun,
  ],
  [
    "defects",
    (run) => fill(run.defects, LIMITS.defectsPerRun),
    { type: "defect.add", run_id: RUN_ID, defect: {} },
    "/defect",
    LIMITS.defectsPerRun,
  ],
  [
    "checks of a step",
    (run) => fill(run.checks, LIMITS.checksPerRun - 1),
    {
      type: "step.finish",
      run_id: RUN_ID,
      index: 1,
      status: "completed",
      result: { checks: [CHECK, CHECK] } as never,
    },
    "/result/checks",
    LIMITS.checksPerRun,
  ],
  [
    "defects of a job",
    (run) => fill(run.defects, LIMITS.defectsPerRun),
    { type: "job.finish", run_id: RUN_ID, id: JOB_ID, status: "completed", defects: [{}] },
    "/defects",
    LIMITS.defectsPerRun,
  ],
  [
    "jobs",
    (run) => fill(run.jobs, LIMITS.jobsPerRun),
    { type: "job.start", run_id: RUN_ID, id: idOf(31), name: "x" },
    "/id",
    LIMITS.jobsPerRun,
  ],
  ["frames", (run) => fill(run.frames, LIMITS.framesPerRun), frameBegin({ id: idOf(21) }), "/id", LIMITS.framesPerRun],
  [
    "files",
    (run) => fill(run.files, LIMITS.filesPerRun),
    { type: "file.put", run_id: RUN_ID, name: "x", content_type: "a/b" },
    "/name",
    LIMITS.filesPerRun,
  ],
];

t.test("limits of a run", async (t) => {
  for (const [what, prepare, message, path, limit] of LIMITED) {
    const state = stateWithRun("running");
    prepare(runOf(state));
    t.match(refusalOf(state, message), { code: "too_large", params: { path, value: limit + 1, allowed: limit } }, what);
  }
  const state = stateWithRun("running");
  fill(runOf(state).checks, LIMITS.checksPerRun);
  const failed: CellMessage = { type: "job.finish", run_id: RUN_ID, id: JOB_ID, status: "failed", checks: [CHECK] };
  t.equal(refusalOf(state, failed), undefined, "a failed job's checks need no room");

  const batches = stateWithRun("running", { height: 0 });
  fill(runOf(batches).frames[0]?.batches ?? [], LIMITS.batchesPerFrame);
  t.match(refusalOf(batches, { type: "frame.lines", id: FRAME_ID, first_line: 1, line_count: 1 }, 9), {
    code: "too_large",
    params: { path: "/id", allowed: LIMITS.batchesPerFrame },
  });
});

function fill<T>(list: T[], length: number): void {
  const template = (list[0] ?? {}) as T;
  while (list.length < length) list.push(template);
}

t.test("a document that is full takes nothing more, but the run can be brought to its end", async (t) => {
  const state = stateWithRun("running", { height: 1 });
  const large: CellMessage = {
    ...{ type: "event.add", run_id: RUN_ID, event_type: "x" },
    data: { text: "x".repeat(1_000_000) },
  };
  let events = 0;
  while (!("refusal" in state.send(large))) events++;
  t.equal(events, 16, "16 events of a megabyte");
  // Their bytes stay counted. The events are too long to compare the state before and after each message.
  runOf(state).eventLog.length = 0;
  t.match(refusalOf(state, large), { code: "too_large", params: { allowed: LIMITS.runDocumentBytes } });
  runOf(state).documentBytes = LIMITS.runDocumentBytes;
  for (const [message, payloadBytes] of ABOUT_RUN) {
    if (
      [
        "run.create",
        "run.start",
        "step.start",
        "step.finish",
        "frame.end",
        "run.finish",
        "run.fail",
        "run.cancel",
      ].includes(message.type)
    )
      continue;
    if (message.type === "job.finish") continue;
    // The frame has its one line already: another would be too large by its lines.
    if (message.type === "frame.lines") continue;
    t.match(refusalOf(state, message, payloadBytes), { code: "too_large" }, message.type);
  }
  t.match(
    refusalOf(state, {
      type: "job.finish",
      run_id: RUN_ID,
      id: JOB_ID,
      status: "completed",
      checks: [{ name: "c", status: "passed" }],
    }),
    { code: "too_large" },
  );
  for (const message of [
    { type: "step.start", run_id: RUN_ID, index: 2 },
    { type: "step.finish", run_id: RUN_ID, index: 1, status: "completed" },
    { type: "frame.end", id: FRAME_ID },
    { type: "job.finish", run_id: RUN_ID, id: JOB_ID, status: "failed" },
    { type: "run.finish", id: RUN_ID },
    { type: "run.fail", id: RUN_ID, error_message: "too much" },
  ] satisfies CellMessage[]) {
    t.equal(refusalOf(state, message), undefined, message.type);
  }
  const lines = stateWithRun("running", { height: 0 });
  runOf(lines).documentBytes = LIMITS.runDocumentBytes;
  t.match(refusalOf(lines, { type: "frame.lines", id: FRAME_ID, first_line: 1, line_count: 1 }, 9), {
    code: "too_large",
  });
});

t.test("run.finish: frame_ids is the service's own", async (t) => {
  t.match(refusalOf(stateWithRun("running"), { type: "run.finish", id: RUN_ID, results: { frame_ids: [] } }), {
    code: "invalid_message",
    params: { path: "/results/frame_ids", allowed: "absent: the service lists the frames itself" },
  });
  const state = stateWithRun("running");
  t.equal(refusalOf(state, { type: "run.finish", id: RUN_ID, summary: "s", results: { score: 1 } }), undefined);
  t.match(runOf(state), { status: "finalizing", summary: "s", results: { score: 1 }, finalizingAtUs: state.timeUs });
});
