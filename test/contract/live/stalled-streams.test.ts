import t from "tap";
import { FRONTS_HERE } from "../../helpers/http/fronts-here.js";
import { PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { EventStream } from "../../helpers/live/event-stream.js";
import { residentBytes } from "../../helpers/process/process-figures.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { sized } from "../../helpers/test-size.js";

const KIB = 1024;
const MIB = 1024 * KIB;
const STALLED = sized(24, 200);
/** What the contract allows for each. */
const MOST_BYTES_EACH = 256 * KIB;
/** The size of the process varies by this much between two looks. With 200 clients no allowance is needed. */
const NOISE_BYTES = sized(32 * MIB, 0);
const RUNS = 30;
const METADATA_CHARACTERS = 60_000;
/** More than the system itself keeps for a client that reads nothing. */
const TOLD_BYTES = 8 * MIB;

for (const { name, environment } of FRONTS_HERE) {
  t.test(`${STALLED} clients that read nothing cost little, however much they are told (${name})`, async (t) => {
    const service = await ServiceProcess.startFor(t, { environment, descriptorLimit: "2048" });
    const producer = service.producerFor(t);
    await producer.deliver(programPut());
    const ids = Array.from({ length: RUNS }, () => producer.nextRunId());
    for (const id of ids) {
      const metadata = { note: "x".repeat(METADATA_CHARACTERS) };
      await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID, metadata });
    }
    const reader = await EventStream.open({ port: service.port });
    t.teardown(() => reader.close());
    /** Changes the runs until a client that reads has been told so much. */
    const tell = async (bytes: number): Promise<void> => {
      const target = reader.bytes + bytes;
      for (let change = 0; reader.bytes < target; change++) {
        const run_id = ids[change % ids.length] as string;
        await producer.deliver({ type: "event.add", run_id, event_type: "note", data: { change } });
      }
    };
    // First as many clients read, so that both figures include what the process needs to make so many events.
    const readers = await Promise.all(Array.from({ length: STALLED }, () => EventStream.open({ port: service.port })));
    for (const { response } of readers) response.removeAllListeners("data").resume();
    await tell(TOLD_BYTES);
    for (const one of readers) one.close();
    const before = residentBytes(service.pid);
    const stalled = await Promise.all(
      Array.from({ length: STALLED }, async () => {
        const stream = await EventStream.open({ port: service.port });
        stream.response.pause();
        return stream;
      }),
    );
    t.teardown(() => stalled.map((stream) => stream.close()));
    await tell(TOLD_BYTES);
    const grownBytes = residentBytes(service.pid) - before;
    t.ok(grownBytes <= STALLED * MOST_BYTES_EACH + NOISE_BYTES, `it grew by ${Math.round(grownBytes / MIB)} MiB`);
    t.comment(`${name}: ${Math.round(grownBytes / KIB / STALLED)} KiB for each of ${STALLED}`);

    // One that reads again gets the newest state of each run, not all that was told meanwhile.
    const [again] = stalled as [EventStream];
    again.response.resume();
    await producer.deliver({ type: "run.start", id: ids[0] as string });
    await again.until(({ rows }) => rows.at(-1)?.status === "running");
    t.ok(again.events.length < reader.events.length / 2, `${again.events.length} of ${reader.events.length}`);
    const rows = new Map(again.rows.map((row) => [row.id, row]));
    const listed = await fetch(`http://127.0.0.1:${service.port}/runs?limit=${RUNS}`);
    t.match(await listed.json(), { runs: listOf(...ids.map((id) => rows.get(id)).reverse()), total: RUNS });
  });
}
