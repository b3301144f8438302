import t from "tap";
import { FRONTS_HERE } from "../../helpers/http/fronts-here.js";
import { PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RunSocketClient } from "../../helpers/live/run-socket-client.js";
import { residentBytes } from "../../helpers/process/process-figures.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { sized } from "../../helpers/test-size.js";
import { until } from "../../helpers/until.js";

const KIB = 1024;
const MIB = 1024 * KIB;
const STALLED = sized(40, 400);
const MOST_BYTES_EACH = 256 * KIB;
/** The size of the process varies by this much between two looks. With 400 clients no allowance is needed. */
const NOISE_BYTES = sized(64 * MIB, 0);
const CHECKS = 10_000;
const CHECKS_A_MESSAGE = 5_000;
/** They make the document of the run some 6 MB large: more than the system itself keeps for a client that reads nothing. */
const EVENTS = 375;
const EVENT_CHARACTERS = 16_000;
const CHANGES = 2;

const check = (n: number) => ({ name: `point ${n}`, status: "passed", value: n / 1000, nominal: 0, threshold: 20 });

for (const { name, environment } of FRONTS_HERE) {
  t.test(`${STALLED} WebSockets of a huge run that read nothing share its document (${name})`, async (t) => {
    const service = await ServiceProcess.startFor(t, { environment, descriptorLimit: "2048" });
    const producer = service.producerFor(t);
    await producer.deliver(programPut());
    const run_id = producer.nextRunId();
    await producer.deliver({ type: "run.create", id: run_id, program_id: PROGRAM_ID });
    await producer.deliver({ type: "run.start", id: run_id });
    for (let first = 0; first < CHECKS; first += CHECKS_A_MESSAGE) {
      const id = producer.nextRunId();
      await producer.deliver({ type: "job.start", run_id, id, name: "inspector" });
      const checks = Array.from({ length: CHECKS_A_MESSAGE }, (_, at) => check(first + at));
      await producer.deliver({ type: "job.finish", run_id, id, status: "completed", checks });
    }
    const note = (text: string) => ({ type: "event.add", run_id, event_type: "note", data: { text } });
    for (let n = 1; n < EVENTS; n++) await producer.send(note("x".repeat(EVENT_CHARACTERS)));
    await producer.deliver(note("last"));

    const open = () => {
      const client = new RunSocketClient(service.port, run_id);
      t.teardown(() => client.ws.terminate());
      return client;
    };
    const eventsTold = async (): Promise<number> => {
      const metrics = await (await fetch(`http://127.0.0.1:${service.port}/metrics`)).text();
      return Number(/^inspection_live_events_total\{kind="run"\} (\d+)$/m.exec(metrics)?.[1]);
    };
    const reader = open();
    /** Changes the run; the reader has been told of each change. */
    const change = async (): Promise<void> => {
      const { length } = reader.messages;
      await producer.deliver(note("changed"));
      await reader.until(({ messages }) => messages.length > length);
    };
    await reader.until(({ messages }) => messages.length === 1);
    // Both figures include what the process needs to make the document.
    for (let n = 0; n < CHANGES; n++) await change();
    const before = residentBytes(service.pid);
    const told = await eventsTold();
    for (let n = 0; n < STALLED; n++) {
      const { ws } = open();
      ws.on("open", () => ws.pause());
    }
    await until("a first event for each", async () => (await eventsTold()) >= told + STALLED);
    for (let n = 0; n < CHANGES; n++) await change();
    const grownBytes = residentBytes(service.pid) - before;
    t.ok(grownBytes <= STALLED * MOST_BYTES_EACH + NOISE_BYTES, `it grew by ${Math.round(grownBytes / MIB)} MiB`);
    t.comment(`${name}: ${Math.round(grownBytes / KIB / STALLED)} KiB for each of ${STALLED}`);
  });
}
