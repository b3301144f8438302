import { createRandom } from "../../../core/random.js";
import type { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import type { RoundSample } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { cpuSecondsOf } from "../process-cpu.js";
import type { ProducedProgram } from "../run-producer.js";

/** A run takes at most 10,000 (core/limits.ts). */
const EVENTS_PER_RUN = 5_000;

/** What a message holds beside the text: field names, the run's id, the event's type. */
const ENVELOPE_BYTES = 100;

/** A message event.add of about `sizeBytes`, its text from the seed. */
export function eventMessages(sizeBytes: number, seed: number): (runId: string) => object {
  const text = Buffer.from(createRandom(seed).bytes(sizeBytes - ENVELOPE_BYTES))
    .toString("base64")
    .slice(0, sizeBytes - ENVELOPE_BYTES);
  return (runId) => ({ type: "event.add", run_id: runId, event_type: "note", data: { text } });
}

/**
 * Sends `count` messages event.add of about `sizeBytes` each, spread over as many runs as they need, `inFlight` at a time, and times
 * each from its send to its ack. Beginning and ending the runs is outside the clock.
 */
export async function sendEvents(
  client: ProducerClient,
  program: ProducedProgram,
  servicePid: number,
  options: { count: number; sizeBytes: number; inFlight: number; seed: number },
): Promise<RoundSample> {
  const { count, sizeBytes, inFlight, seed } = options;
  const runIds: string[] = [];
  while (runIds.length * EVENTS_PER_RUN < count) {
    const id = client.nextRunId();
    await client.send({ type: "run.create", id, program_id: program.id });
    await client.deliver({ type: "run.start", id });
    runIds.push(id);
  }
  const messageOf = eventMessages(sizeBytes, seed);
  const latency = new LatencyHistogram();
  const serviceCpuBefore = cpuSecondsOf(servicePid);
  const cpuBefore = process.cpuUsage();
  let sent = 0;
  const startMs = performance.now();
  const slot = async (): Promise<void> => {
    while (sent < count) {
      const message = messageOf(runIds[sent++ % runIds.length] as string);
      const sentMs = performance.now();
      const { acknowledged } = await client.send(message);
      await acknowledged;
      latency.record((performance.now() - sentMs) * 1e6);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, slot));
  const seconds = (performance.now() - startMs) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  const serviceCpuSeconds = cpuSecondsOf(servicePid) - serviceCpuBefore;
  for (const id of runIds) await client.deliver({ type: "run.finish", id });
  return {
    value: count / seconds,
    seconds,
    latency: latency.toData(),
    details: {
      "client CPU %": (cpu.user + cpu.system) / 1e4 / seconds,
      "service CPU us/message": (serviceCpuSeconds * 1e6) / count,
    },
  };
}
