import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { BATCH_BYTES, BATCH_LINES, beginCapture, surfaceBatch } from "../load/frames/capture-sender.js";
import { startService } from "../load/http/service-process.js";
import { type Groups, sendInFlight } from "../load/in-flight.js";
import { putProgram } from "../load/run-producer.js";
import { writePlainly } from "../peers/plain-writes.js";

const BATCHES = { smoke: 2, full: 256 };
const IN_FLIGHT = 16;
/** A log record that names a batch: header, index section, place. */
const RECORD_BYTES = 256;

/** Turns batches a second into megabytes a second. */
function inMegabytes(sample: RoundSample): RoundSample {
  return { ...sample, value: (sample.value * BATCH_BYTES) / 1e6 };
}

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
  // The peer repeats the groups of the last capture; its first round needs some too.
  let groups: Groups = (await ingest()).groups;
  return {
    runners: {
      "cell-link": async () => {
        const outcome = await ingest();
        groups = outcome.groups;
        return inMegabytes(outcome.sample);
      },
      plain: async () => inMegabytes(await writePlainly(context.directory, groups, [BATCH_BYTES, RECORD_BYTES])),
    },
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
    {
      contestant: "cell-link",
      direction: "at-least",
      target: 102.4,
      source: "twice a head of 3,200 points, 4,000 lines a second, 4 bytes a point",
    },
    {
      contestant: "cell-link",
      peer: "plain",
      direction: "at-least",
      target: 0.6,
      source: "where the disk is too slow for the former: of plain writes with the same fdatasync",
    },
  ],
  rounds: { warmup: 2, measured: 11 },
  timeoutSeconds: 600,
  open,
};
