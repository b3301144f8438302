import t from "tap";
import type { CellMessageType } from "../../../core/link/cell-message-schema.js";
import { CELL_MESSAGE_SCHEMAS } from "../../../core/link/cell-message-schema.js";
import { RUN_STATUSES, type RunStatus } from "../../../core/run/run-state.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
  seriesAppend,
} from "../../helpers/link/link-messages.js";
import type { RawProducer } from "../../helpers/link/raw-producer.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

interface Subject {
  runId: string;
  /** An open frame, and a running job, as far as the run ever ran. */
  frameId: string;
  jobId: string;
}

/** Brings a run of its own into the status. */
async function runIn(status: RunStatus, raw: RawProducer): Promise<Subject> {
  const subject = { runId: nextId(), frameId: nextId(), jobId: nextId() };
  const { runId, frameId, jobId } = subject;
  await raw.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  if (status === "pending") return subject;
  await raw.accept({ type: "run.start", id: runId });
  await raw.accept({ type: "step.start", run_id: runId, index: 1 });
  await raw.accept(frameBegin(frameId, runId));
  await raw.accept({ type: "job.start", run_id: runId, id: jobId, name: "fit" });
  if (status === "running") return subject;
  if (status === "failed") await raw.accept({ type: "run.fail", id: runId, error_message: "no" });
  if (status === "cancelled") await raw.accept({ type: "run.cancel", id: runId });
  if (status === "finalizing" || status === "completed") await raw.accept({ type: "run.finish", id: runId });
  if (status === "completed") {
    await raw.accept({ type: "frame.end", id: frameId });
    await raw.accept({ type: "job.finish", run_id: runId, id: jobId, status: "completed" });
  }
  return subject;
}

type Body = [body: object, payload?: Uint8Array];

/** Every message about a run, as it would be accepted if only the run's status mattered. */
const MESSAGES: Record<
  Exclude<CellMessageType, `${"cell" | "component" | "program"}.${string}`>,
  (subject: Subject) => Body
> = {
  "run.create": ({ runId }) => [{ type: "run.create", id: runId, program_id: PROGRAM_ID }],
  "run.start": ({ runId }) => [{ type: "run.start", id: runId }],
  "step.start": ({ runId }) => [{ type: "step.start", run_id: runId, index: 2 }],
  "step.finish": ({ runId }) => [{ type: "step.finish", run_id: runId, index: 1, status: "completed" }],
  "frame.begin": ({ runId }) => [frameBegin(nextId(), runId)],
  "frame.lines": ({ frameId }) => [frameLines(frameId, 0, 1), new Uint8Array(LINE_BYTES)],
  "frame.end": ({ frameId }) => [{ type: "frame.end", id: frameId }],
  "series.append": ({ runId }) => [seriesAppend(runId), new Uint8Array(8)],
  "check.add": ({ runId }) => [{ type: "check.add", run_id: runId, check: { name: "c", status: "passed" } }],
  "defect.add": ({ runId }) => [{ type: "defect.add", run_id: runId, defect: {} }],
  "job.start": ({ runId }) => [{ type: "job.start", run_id: runId, id: nextId(), name: "j" }],
  "job.finish": ({ runId, jobId }) => [{ type: "job.finish", run_id: runId, id: jobId, status: "failed" }],
  "file.put": ({ runId }) => [{ type: "file.put", run_id: runId, name: "f", content_type: "a/b" }, new Uint8Array(1)],
  "event.add": ({ runId }) => [{ type: "event.add", run_id: runId, event_type: "e", data: {} }],
  "run.finish": ({ runId }) => [{ type: "run.finish", id: runId }],
  "run.fail": ({ runId }) => [{ type: "run.fail", id: runId, error_message: "e" }],
  "run.cancel": ({ runId }) => [{ type: "run.cancel", id: runId }],
};

/** The table of workers/cell-link/README.md, What may follow what, word for word. */
const ACCEPTED: Record<RunStatus, (type: string) => boolean> = {
  pending: (type) => ["run.start", "run.cancel", "run.fail", "event.add", "file.put"].includes(type),
  running: (type) => type !== "run.create" && type !== "run.start",
  finalizing: (type) => ["frame.lines", "frame.end", "job.finish", "file.put", "event.add", "run.fail"].includes(type),
  completed: () => false,
  failed: () => false,
  cancelled: () => false,
};

t.test("what may follow what: every status with every message", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const raw = await recorder.connect("cell");
  await raw.accept(programPut());
  const types = Object.keys(CELL_MESSAGE_SCHEMAS).filter((type) => !/^(?:cell|component|program)\./.test(type));
  t.strictSame(Object.keys(MESSAGES).sort(), types.sort(), "the table has every message about runs");
  let pairs = 0;
  for (const status of RUN_STATUSES) {
    for (const [type, make] of Object.entries(MESSAGES)) {
      const subject = await runIn(status, raw);
      await recorder.until(() => recorder.run(subject.runId).status === status);
      const before = JSON.stringify(recorder.run(subject.runId));
      const [body, payload] = make(subject);
      const answer = await raw.deliver(body, payload);
      pairs++;
      if (ACCEPTED[status](type)) {
        t.equal(answer, null, `${status}: ${type}`);
        t.not(JSON.stringify(recorder.run(subject.runId)), before, `${status}: ${type} has its effect`);
        continue;
      }
      // A pending run has had no frame and no job: there is nothing of that id.
      const unknown = status === "pending" && ["frame.lines", "frame.end"].includes(type);
      const code = type === "run.create" ? "already_exists" : unknown ? "not_found" : "illegal_transition";
      t.equal(answer?.code, code, `${status}: ${type}`);
      t.equal(JSON.stringify(recorder.run(subject.runId)), before, `${status}: ${type} changes nothing`);
    }
  }
  t.comment(`${pairs} pairs of status and message`);
});
