import t from "tap";
import { qualityReportResponse } from "../../../core/run/run-response.js";
import { nextId, PROGRAM_ID, programPut, runningRun, seriesAppend } from "../../helpers/link/link-messages.js";
import type { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

t.test("every message is accepted, and its effect is in the log", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const raw = await recorder.connect("cell");
  const { runId, frameId, jobId } = await sendEach(raw);
  await recorder.until(() => recorder.run(runId).status === "completed");
  const run = recorder.run(runId);
  t.equal(qualityReportResponse(run).quality_report?.status, "failed");
  t.match(run, {
    status: "completed",
    serialNumber: "SN-1",
    revision: 1,
    results: { score: 3 },
    summary: "fine",
    frameIds: listOf(frameId),
    checks: listOf({ name: "gap" }, { name: "flush" }),
    defects: { length: 2 },
    jobs: listOf({ id: jobId, status: "completed" }),
    steps: listOf({ status: "completed" }, { status: "skipped" }, { status: "cancelled" }),
    series: listOf({ stepIndex: 1, channels: 2, appends: listOf({ rows: 3 }) }),
    files: listOf({ name: "r.pdf", lengthBytes: 6 }, { name: "empty.txt", lengthBytes: 0 }),
    eventLog: listOf({ eventType: "note" }),
  });
  const second = nextId();
  await raw.accept({ type: "run.create", id: second, program_id: PROGRAM_ID, serial_number: "SN-1" });
  t.equal(recorder.run(second).revision, 2, "the serial number's next revision");
  await raw.accept({ type: "run.fail", id: second, error_message: "collision" });
  const third = nextId();
  await raw.accept({ type: "run.create", id: third, program_id: PROGRAM_ID, serial_number: "SN-1" });
  await raw.accept({ type: "run.cancel", id: third });
  t.equal(recorder.run(third).revision, 3);
  t.match(recorder.run(second), { status: "failed", errorMessage: "collision" });
  t.match(recorder.run(third), { status: "cancelled", errorMessage: null });
  const times = recorder.recordTimesUs;
  t.ok(
    times.every((time, at) => at === 0 || time > (times[at - 1] ?? 0)),
    "record times are strictly increasing",
  );
});

/** One message of each type at least, about one run. */
async function sendEach(raw: RawProducer) {
  await raw.accept({ type: "cell.put", kiosk_serial_number: "K-1", unit_system: "imperial" });
  await raw.accept({
    type: "component.put",
    key: "robot",
    id: "r1",
    status: "estopped",
    detail: "door",
    enabled: false,
    required: true,
  });
  await raw.accept({ type: "component.delete", key: "robot" });
  await raw.accept(programPut());
  const other = nextId();
  await raw.accept(programPut(other));
  await raw.accept({ type: "program.delete", id: other });
  const { runId, frameId, jobId } = await runningRun(raw);
  await raw.accept({ type: "frame.end", id: frameId });
  const rows = new Uint8Array(3 * 2 * 4).fill(2);
  await raw.accept(seriesAppend(runId), rows);
  await raw.accept({ type: "check.add", run_id: runId, check: { name: "gap", status: "passed", value: 1.5 } });
  await raw.accept({ type: "defect.add", run_id: runId, defect: { type: "dent", confidence: 0.5 } });
  const checks = [{ name: "flush", status: "failed" }];
  await raw.accept({ type: "job.finish", run_id: runId, id: jobId, status: "completed", checks, defects: [{}] });
  await raw.accept({
    type: "step.finish",
    run_id: runId,
    index: 1,
    status: "completed",
    result: { frame_id: frameId },
  });
  await raw.accept({ type: "step.finish", run_id: runId, index: 2, status: "skipped" });
  const report = new TextEncoder().encode("report");
  await raw.accept(
    { type: "file.put", run_id: runId, name: "r.pdf", file_type: "report", content_type: "application/pdf" },
    report,
  );
  await raw.accept({ type: "file.put", run_id: runId, name: "empty.txt", content_type: "text/plain" });
  await raw.accept({
    type: "event.add",
    run_id: runId,
    event_type: "note",
    data: { a: [1] },
    timestamp: "2026-01-01T00:00:00Z",
  });
  await raw.accept({ type: "run.finish", id: runId, summary: "fine", results: { score: 3 } });
  return { runId, frameId, jobId };
}
