/** Messages that a hub must not be misled by. */
import t from "tap";
import type { CellChange } from "../../../core/link/change.js";
import { createRandom } from "../../../core/random.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { decodePlantMessage } from "../../../storage/records/plant-message.js";
import { encodeFields, encodeSender, logSubject, messageFields } from "../../../workers/plant/log-message.js";
import type { LogMessage } from "../../../workers/plant/plant-client.js";
import { SimulatedHub } from "../../helpers/plant/simulated-hub.js";
import { encodedRecord, logMessage } from "../../helpers/plant/simulated-stream.js";

const TIME_US = 1_800_000_000_000_000;
const PROGRAM = "01890a5d-ac96-774b-bcce-b302099a8057";
const STORE = "11111111-1111-4111-8111-111111111111";
const OTHER_STORE = "22222222-1111-4111-8111-111111111111";
const random = createRandom(1);

/** A stream that a test writes by hand. */
class WrittenStream {
  readonly messages: LogMessage[] = [];

  /** One record of a program, and of a component that is down. @param part only this one of two parts */
  record(
    cell: string,
    storeId: string,
    sequence: number,
    options: { part?: number; logSequence?: number; previousSequence?: number } = {},
  ): void {
    const { part = 0, logSequence = sequence, previousSequence = sequence - 1 } = options;
    const row = { key: "robot", id: null, status: "down", detail: null, enabled: null, required: true } as const;
    const program = { id: PROGRAM, name: `of ${cell}`, status: "active", steps: [] } as const;
    const changes = [
      { kind: "program_put", program },
      { kind: "component_put", row },
    ] as unknown as CellChange[];
    const whole = encodedRecord({ ...encodeChanges(null, changes, undefined), timeUs: TIME_US }, sequence);
    const half = Math.ceil(whole.length / 2);
    const bytes = part === 0 ? whole : whole.subarray((part - 1) * half, part * half);
    const parts = part === 0 ? { part: 1, parts: 1 } : { part, parts: 2 };
    const range = { firstSequence: sequence, lastSequence: sequence, previousSequence };
    const fields = messageFields({ ...range, count: 1, ...parts }, bytes);
    this.#push(
      cell,
      storeId,
      {
        ...encodeFields(fields),
        ...encodeSender({ logSequence, publicUrl: null, captures: { sequence: 0, streamMs: 0 } }),
      },
      bytes,
    );
  }

  foreign(cell: string, storeId: string): void {
    this.#push(cell, storeId, {}, random.bytes(10));
  }

  #push(cell: string, storeId: string, header: Record<string, string>, bytes: Uint8Array): void {
    const next = this.messages.length + 1;
    this.messages.push(logMessage(logSubject(cell, storeId), header, bytes, next, TIME_US + next));
  }

  /** The rows of health, the names of the programs, and the parts that a hub would ask for when it goes on. */
  async read(): Promise<{ rows: Record<string, string | null>; programs: string[]; parts: readonly number[] }> {
    const opened = await SimulatedHub.open();
    await opened.feed(this.messages, random);
    await opened.close();
    await opened.reopen();
    const { view, hub } = opened;
    const rows = Object.fromEntries(view.components().map(({ key, detail }) => [key, detail]));
    const { programs } = view.listPrograms({ offset: 0, limit: 10 });
    const { partSequences: parts } = hub.resume();
    await opened.close();
    return {
      rows,
      programs: programs.map(({ program, cells }) => `${program.document.name} in ${cells?.join()}`),
      parts,
    };
  }
}

t.test("a message that cannot be read begins no epoch of its cell", async (t) => {
  const stream = new WrittenStream();
  stream.record("a", STORE, 1, { logSequence: 4 });
  for (const storeId of [OTHER_STORE, STORE, "no-store", STORE.toUpperCase()]) stream.foreign("a", storeId);
  stream.record("b", "no-store", 1);
  const { rows, programs } = await stream.read();
  t.strictSame(programs, ["of a in a"], "what the cell has said stays");
  t.match(
    rows.cell_a,
    /^last message at \S+Z; the plant was 3 records behind the cell then; robot is down; message 5 /,
  );
  t.match(rows.cell_b, /^message 6 of the log stream is of inspection\.log\.b\.no-store, which is no store: /);
});

t.test("parts of a record that nobody will finish are not waited for", async (t) => {
  const begun = new WrittenStream();
  begun.record("a", STORE, 1);
  begun.record("a", STORE, 2, { part: 1 });
  begun.record("b", OTHER_STORE, 1);
  t.strictSame((await begun.read()).parts, [2], "the rest may come, whatever another cell sends");
  begun.foreign("a", OTHER_STORE);
  t.strictSame((await begun.read()).parts, [2], "or somebody else");
  const replaced = new WrittenStream();
  replaced.messages.push(...begun.messages);
  replaced.record("a", "33333333-1111-4111-8111-111111111111", 1);
  t.strictSame((await replaced.read()).parts, [], "the disk was replaced");
  begun.record("c", STORE, 1);
  t.strictSame((await begun.read()).parts, [], "the cell has another name");
});

t.test(
  "a cell that died between the parts of a record costs a start that part, not the stream behind it",
  async (t) => {
    const stream = new WrittenStream();
    stream.record("a", STORE, 1, { part: 1 });
    for (let sequence = 1; sequence <= 500; sequence++) stream.record("b", OTHER_STORE, sequence);
    const opened = await SimulatedHub.open();
    await opened.feed(stream.messages, random);
    await opened.close();
    await opened.reopen();
    t.strictSame(opened.hub.resume(), { fromSequence: 502, partSequences: [1] });
    stream.record("a", STORE, 1, { part: 2 });
    await opened.feed(stream.messages, random);
    await opened.committed();
    const { programs } = opened.view.listPrograms({ offset: 0, limit: 10 });
    t.strictSame(programs[0]?.cells, ["a", "b"], "the cell came back, and its record is whole");
    t.notMatch(JSON.stringify(opened.view.components()), /missing/);
    await opened.close();
  },
);

t.test("dead cells cost the messages of others nothing", async (t) => {
  const stream = new WrittenStream();
  const stores = Array.from({ length: 20 }, (_, nth) => `${String(nth).padStart(8, "0")}${STORE.slice(8)}`);
  for (const [nth, storeId] of stores.entries()) stream.record(`dead-${nth}`, storeId, 1, { part: 1 });
  for (let sequence = 1; sequence <= 200; sequence++) stream.record("b", OTHER_STORE, sequence);
  const opened = await SimulatedHub.open();
  const { log } = opened.hub;
  const append = log.append.bind(log);
  const lists: (readonly number[])[] = [];
  log.append = (input) => {
    const { partSequences } = input.type === 24 ? decodePlantMessage(input.index.subarray(9)) : { partSequences: null };
    if (partSequences !== null) lists.push(partSequences);
    return append(input);
  };
  await opened.feed(stream.messages, random);
  await opened.close();
  const places = stores.map((_, nth) => nth + 1);
  t.strictSame(lists, [places], "only the first message lists their parts");
  await opened.reopen();
  t.strictSame(opened.hub.resume(), { fromSequence: 221, partSequences: places });
  stream.record("dead-0", stores[0] as string, 1, { part: 2 });
  await opened.feed(stream.messages, random);
  await opened.close();
  await opened.reopen();
  t.strictSame(opened.hub.resume().partSequences, places.slice(1), "one came back");
  await opened.close();
});

t.test("a message that is missing in the stream is told, from which record to which", async (t) => {
  const stream = new WrittenStream();
  stream.record("a", STORE, 1);
  stream.record("a", STORE, 5, { previousSequence: 4 });
  stream.record("b", OTHER_STORE, 3, { previousSequence: 0 });
  stream.record("b", OTHER_STORE, 7, { previousSequence: 3 });
  const { rows } = await stream.read();
  t.match(rows.cell_a, /; message 2 of the log stream comes behind record 4 of a: records 2 to 4 are missing here$/);
  t.notMatch(rows.cell_b, /missing/, "numbers that the cell's own log has lost are no gap of the stream");
  stream.record("a", STORE, 6, { part: 2, previousSequence: 5 });
  stream.record("a", STORE, 7, { previousSequence: 6 });
  stream.record("a", STORE, 8);
  const later = (await stream.read()).rows.cell_a;
  t.match(later, /; message 6 of the log stream comes behind record 6 of a: records 6 to 6 are missing here; /);
  t.match(later, /; 2 faults before, the first: message 2 of the log stream comes behind record 4 of a: /);
  stream.record("b", OTHER_STORE, 9, { previousSequence: 8 });
  stream.record("b", OTHER_STORE, 11, { previousSequence: 10 });
  t.match((await stream.read()).rows.cell_b, /; 1 fault before, the first: /);
});

t.test("after a rename, records that came under the old name are not missing", async (t) => {
  const stream = new WrittenStream();
  for (let sequence = 1; sequence <= 3; sequence++) stream.record("a", STORE, sequence);
  stream.record("b", STORE, 3);
  t.notMatch((await stream.read()).rows.cell_b, /missing/);
  stream.record("b", STORE, 6);
  t.match(
    (await stream.read()).rows.cell_b,
    /; message 5 .* comes behind record 5 of b: records 4 to 5 are missing here$/,
  );
});

t.test("a cell that gets another name is one cell, and a copy of its store is noticed", async (t) => {
  const stream = new WrittenStream();
  for (let sequence = 1; sequence <= 3; sequence++) stream.record("a", STORE, sequence);
  for (let sequence = 1; sequence <= 4; sequence++) stream.record("b", STORE, sequence);
  const renamed = await stream.read();
  t.strictSame(Object.keys(renamed.rows), ["cell_b"]);
  t.notMatch(renamed.rows.cell_b, /message \d/);
  t.strictSame(renamed.programs, ["of b in b"]);
  stream.record("a", STORE, 4);
  const { rows } = await stream.read();
  t.match(
    rows.cell_a,
    /message 8 of the log stream is of a store that was also shipped as the cell b: if one is a copy, /,
  );
});

t.test("a record in two parts is taken whole", async (t) => {
  const stream = new WrittenStream();
  stream.record("a", STORE, 1, { part: 1 });
  stream.record("a", STORE, 1, { part: 2 });
  t.strictSame((await stream.read()).programs, ["of a in a"]);
});
