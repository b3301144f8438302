import { createRandom } from "../../core/random.js";
import type { ProducerClient } from "../../workers/cell-link/producer-client.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../harness/benchmark.js";
import { atLeast } from "../harness/goal.js";
import { startService } from "../load/http/service-process.js";
import { besidePlainWrites, sendInFlight } from "../load/in-flight.js";
import { type ProducedProgram, putProgram } from "../load/run-producer.js";

const MESSAGE_BYTES = 1024;
/** What a message holds beside the text: field names, the run's id, the event's type. */
const ENVELOPE_BYTES = 100;
const IN_FLIGHT = 64;
const MESSAGES = { smoke: 100, full: 40_000 };
/** A run has at most 10,000 events (core/limits.ts). */
const EVENTS_PER_RUN = 5_000;

async function beginRuns(client: ProducerClient, program: ProducedProgram, events: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length * EVENTS_PER_RUN < events) {
    const id = client.nextRunId();
    await client.send({ type: "run.create", id, program_id: program.id });
    await client.deliver({ type: "run.start", id });
    ids.push(id);
  }
  return ids;
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const count = MESSAGES[context.size];
  const service = await startService(context);
  const client = await service.connect();
  const program = await putProgram(client, 1);
  const text = Buffer.from(createRandom(context.seed).bytes(MESSAGE_BYTES)).toString("base64");
  const data = { text: text.slice(0, MESSAGE_BYTES - ENVELOPE_BYTES) };
  const measure = async () => {
    const ids = await beginRuns(client, program, count);
    const send = (nth: number) =>
      client.send({ type: "event.add", run_id: ids[nth % ids.length], event_type: "note", data });
    const outcome = await sendInFlight({ count, inFlight: IN_FLIGHT, servicePid: service.pid, send });
    for (const id of ids) await client.deliver({ type: "run.finish", id });
    service.assertNothingRefused();
    return outcome;
  };
  return {
    runners: await besidePlainWrites(context.directory, [MESSAGE_BYTES], measure),
    notes: [`a round is ${count} messages`],
  };
}

export const durableAppends: Benchmark = {
  name: "durable-appends",
  measures:
    `Messages event.add of 1 KB over the cell link, ${IN_FLIGHT} in flight, durability full, by one producer. The clock runs from the first send to the last ` +
    "acknowledgement; beginning and ending the runs is outside. Latency is that of one message, in a closed loop. The peer writes as many bytes " +
    "in the groups in which the service last acknowledged them, each followed by fdatasync: what the disk costs.",
  metric: { name: "durable messages", unit: "messages/s", better: "higher" },
  contestants: [
    { name: "cell-link", description: "producer, socket, recorder and log, default settings" },
    { name: "plain", description: "write and fdatasync by Node's thread pool" },
  ],
  peer: "plain",
  goals: [atLeast("cell-link", 10_000, "durable messages over the cell link")],
  rounds: { warmup: 2, measured: 11 },
  timeoutSeconds: 600,
  open,
};
