import t from "tap";
import { qualityReportResponse } from "../../../core/run/run-response.js";
import { frameBegin, nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import type { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

async function started(raw: RawProducer): Promise<string> {
  const runId = nextId();
  await raw.accept(programPut());
  await raw.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  await raw.accept({ type: "run.start", id: runId });
  return runId;
}

t.test("finalizing waits for jobs and frames, whoever ends them", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const raw = await recorder.connect("controller");
  const judge = await recorder.connect("co-processor");
  const runId = await started(raw);
  const [frameId, jobId] = [nextId(), nextId()];
  await raw.accept(frameBegin(frameId, runId));
  await judge.accept({ type: "job.start", run_id: runId, id: jobId, name: "fit" });
  await raw.accept({ type: "run.finish", id: runId });
  t.equal(recorder.run(runId).status, "finalizing");
  await judge.accept({
    type: "job.finish",
    run_id: runId,
    id: jobId,
    status: "completed",
    checks: [{ name: "c", status: "passed" }],
  });
  t.equal(recorder.run(runId).status, "finalizing", "a frame is still open");
  await raw.accept({ type: "frame.end", id: frameId });
  await recorder.until(() => recorder.run(runId).status === "completed");
  t.match(recorder.run(runId), { eventLog: { length: 0 }, frameIds: listOf(frameId) });
  t.equal(qualityReportResponse(recorder.run(runId)).quality_report?.status, "passed");
  recorder.timers.advance(40_000);
  await raw.accept({ type: "cell.put" });
  t.equal(recorder.run(runId).eventLog.length, 0, "the time-out went with the run");
});

t.test("after the time-out the run completes, with a note of what was open", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), { finalizeTimeoutMs: 5_000 });
  const raw = await recorder.connect("controller");
  const runId = await started(raw);
  const [frameId, jobId] = [nextId(), nextId()];
  await raw.accept(frameBegin(frameId, runId));
  await raw.accept({ type: "job.start", run_id: runId, id: jobId, name: "fit" });
  await raw.accept({ type: "run.finish", id: runId });
  recorder.timers.advance(4_999);
  await raw.accept({ type: "cell.put" });
  t.equal(recorder.run(runId).status, "finalizing");
  recorder.timers.advance(1);
  await recorder.until(() => recorder.run(runId).status === "completed");
  t.match(recorder.run(runId), {
    eventLog: listOf({
      eventType: "finalize_timeout",
      data: { timeout_seconds: 5, open_jobs: listOf(jobId), open_frames: listOf(frameId) },
    }),
    frames: listOf({ id: frameId, status: "incomplete" }),
    frameIds: listOf(frameId),
  });
  t.equal((await raw.deliver({ type: "frame.end", id: frameId }))?.code, "illegal_transition");
});

t.test("at start pending and running runs stay, finalizing ones are finalized", async (t) => {
  const directory = temporaryDirectory(t);
  const before = await RecorderHarness.start(t, directory);
  const raw = await before.connect("controller");
  const waiting = await started(raw);
  const jobId = nextId();
  await raw.accept({ type: "job.start", run_id: waiting, id: jobId, name: "fit" });
  await raw.accept({ type: "run.finish", id: waiting });
  const running = await started(raw);
  const pending = nextId();
  await raw.accept({ type: "run.create", id: pending, program_id: PROGRAM_ID });
  before.timers.advance(29_000);
  await before.stop();

  const after = await RecorderHarness.start(t, directory);
  t.strictSame(
    [waiting, running, pending].map((id) => after.run(id).status),
    ["finalizing", "running", "pending"],
  );
  t.strictSame([...after.runs], [...before.runs], "the states are the same as before");
  after.timers.advance(29_999);
  const again = await after.connect("controller");
  await again.accept({ type: "step.start", run_id: running, index: 1 });
  t.equal(after.run(waiting).status, "finalizing", "its producers get the whole time again");
  after.timers.advance(1);
  await after.until(() => after.run(waiting).status === "completed");
  t.match(after.run(waiting).eventLog, listOf({ data: { open_jobs: listOf(jobId) } }));
  t.strictSame(
    [running, pending].map((id) => after.run(id).status),
    ["running", "pending"],
  );
});

t.test("a run whose producer stays away is failed after the orphan time-out, and only then", async (t) => {
  const directory = temporaryDirectory(t);
  const before = await RecorderHarness.start(t, directory, { orphanTimeoutMs: 60_000 });
  const controller = await before.connect("controller");
  const helper = await before.connect("helper");
  const runId = await started(controller);
  const taken = await started(controller);
  await helper.accept({ type: "event.add", run_id: taken, event_type: "mine now", data: {} });
  await controller.close();
  await before.until(() => before.lines.some((line) => line.message === "producer disconnected"));
  before.timers.advance(59_000);
  await helper.untilPong();
  const back = await before.connect("controller");
  before.timers.advance(2_000);
  await back.accept({ type: "cell.put" });
  t.equal(before.run(runId).status, "running", "it came back in time");
  await before.stop();

  const after = await RecorderHarness.start(t, directory, { orphanTimeoutMs: 60_000 });
  const helperAgain = await after.connect("helper");
  after.timers.advance(30_000);
  await helperAgain.untilPong();
  after.timers.advance(29_999);
  await helperAgain.accept({ type: "cell.put" });
  t.equal(after.run(runId).status, "running");
  after.timers.advance(1);
  await after.until(() => after.run(runId).status === "failed");
  t.match(after.run(runId), {
    errorMessage: /producer controller stayed away for 60 s/,
    eventLog: listOf({ eventType: "orphan_timeout", data: { producer: "controller" } }),
  });
  t.equal(after.run(taken).status, "running", "its last writer is connected");
});

t.test("without the time-out a run waits for ever", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const raw = await recorder.connect("controller");
  const runId = await started(raw);
  await raw.close();
  await recorder.until(() => recorder.lines.some((line) => line.message === "producer disconnected"));
  recorder.timers.advance(10 * 24 * 3_600_000);
  await (await recorder.connect("other")).accept({ type: "cell.put" });
  t.equal(recorder.run(runId).status, "running");
});
