import { frameBegin, frameLines, LINE_BYTES, nextId, PROGRAM_ID } from "./link-messages.js";
import type { RawProducer } from "./raw-producer.js";

/** A running run with an open frame of 10 lines and a running job; step 1 runs. */
export async function runningRun(raw: RawProducer) {
  const runId = nextId();
  const frameId = nextId();
  const jobId = nextId();
  await raw.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID, serial_number: "SN-1" });
  await raw.accept({ type: "run.start", id: runId });
  await raw.accept({ type: "step.start", run_id: runId, index: 1 });
  await raw.accept(frameBegin(frameId, runId));
  await raw.accept(frameLines(frameId, 0, 10), new Uint8Array(10 * LINE_BYTES));
  await raw.accept({ type: "job.start", run_id: runId, id: jobId, name: "fit" });
  return { runId, frameId, jobId };
}
