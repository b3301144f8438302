import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { atLeast } from "../harness/goal.js";
import { BATCH_BYTES, BATCH_LINES, beginCapture, surfaceBatch } from "../load/frames/capture-sender.js";
import { startService } from "../load/http/service-process.js";
import { besidePlainWrites, sendInFlight } from "../load/in-flight.js";
import { putProgram } from "../load/run-producer.js";

const BATCHES = { smoke: 2, full: 256 };
const IN_FLIGHT = 16;
/** A log record that names a batch: header, index section, place. */
const RECORD_BYTES = 256;

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  const client = await service.connect();
  const program = await putProgram(client, 1);
  const batch = surfaceBatch(context.seed);
  const count = BATCHES[context.size];
  const ingest = async () => {
    const capture = await beginCapture(client, program, batch, count);
    const send = () => capture.sendBatch();
    const outcome = await sendInFlight({ count, inFlight: IN_FLIGHT, servicePid: service.pid, send });
    await capture.end();
    service.assertNothingRefused();
    return outcome;
  };
  const inMegabytes = (batches: number): number => (batches * BATCH_BYTES) / 1e6;
  return {
    runners: await besidePlainWrites(context.directory, [BATCH_BYTES, RECORD_BYTES], ingest, inMegabytes),
    notes: [`a round is ${count} batches of ${BATCH_BYTES} bytes, ${IN_FLIGHT} in flight`],
  };
}

export const captureIngest: Benchmark = {
  name: "capture-ingest",
  measures:
    `One capture over the cell link: frame.lines of ${BATCH_LINES} lines, 3,200 points, u16 height and u16 luminance, ${IN_FLIGHT} batches in flight, ` +
    "durability full. The clock runs from the first batch's send to the last acknowledgement. What comes before and after the lines is not measured. " +
    "Latency is that of one batch, in a closed loop. The peer shows what the disk costs. It writes the same bytes to a file, in the groups in which the service " +
    "last acknowledged them, with fdatasync after each group. Then it writes a small record for each batch to a second file, again with fdatasync.",
  metric: { name: "durable captures", unit: "MB/s", better: "higher" },
  contestants: [
    { name: "cell-link", description: "producer, socket, recorder, capture file and log, default settings" },
    { name: "plain", description: "write and fdatasync in the same groups, by Node's thread pool" },
  ],
  peer: "plain",
  goals: [
    atLeast("cell-link", 102.4, "twice a head of 3,200 points, 4,000 lines a second, 4 bytes a point"),
    atLeast(
      "cell-link",
      0.6,
      "where the disk is too slow for the former: of plain writes with the same fdatasync",
      "plain",
    ),
  ],
  rounds: { warmup: 2, measured: 11 },
  timeoutSeconds: 600,
  open,
};
