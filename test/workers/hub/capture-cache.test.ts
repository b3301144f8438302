/** What a hub keeps of captures, over a real NATS server and a plain model of what should be there. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import t, { type Test } from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom, type Random } from "../../../core/random.js";
import { type CaptureKind, capturePath } from "../../../storage/captures/capture-path.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { CaptureCache } from "../../../workers/hub/capture-cache.js";
import type { ByteRange } from "../../../workers/hub/capture-request.js";
import {
  CAPTURE_STREAM,
  CHUNK_BYTES,
  chunkCount,
  chunkSubject,
  encodeChunk,
} from "../../../workers/plant/capture-message.js";
import { encodeSender, logSubject } from "../../../workers/plant/log-message.js";
import type { PlantClient } from "../../../workers/plant/plant-client.js";
import { RoomFileSystem } from "../../helpers/disk/room-file-system.js";
import { NatsServer, noNatsServer } from "../../helpers/plant/nats-server.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_128);
const CELL = "line3-cell7";
const RENAMED = "line3-cell8";
const STORE = "11111111-2222-4333-8444-555555555555";
const LIMITS = { replicas: 1, captureDays: 1, captureBytes: null };

/** A captured file of a run. */
interface Shipped {
  runId: string;
  kind: CaptureKind;
  bytes: Uint8Array;
}

/** A plant with captures, and a cache that reads it. */
class Plant {
  readonly capturesPath: string;
  readonly evicted: string[] = [];
  readonly lines: string[] = [];
  readonly random: Random;
  readonly server: NatsServer;
  client: PlantClient | null;
  readonly #chunks = new Map<string, number>();
  #runs = 0;
  #ids = 0;

  private constructor(capturesPath: string, client: PlantClient, server: NatsServer, seed: number) {
    this.capturesPath = capturesPath;
    this.client = client;
    this.server = server;
    this.random = createRandom(seed);
  }

  static async startFor(t: Test, seed = SEED): Promise<Plant> {
    const server = await NatsServer.startFor(t);
    const client = await server.client();
    await client.createStreams(LIMITS);
    const plant = new Plant(temporaryDirectory(t), client, server, seed);
    t.teardown(() => plant.client?.close());
    return plant;
  }

  cache(options: { cacheBytes?: number; fileSystem?: FileSystem } = {}): CaptureCache {
    return new CaptureCache({
      fileSystem: options.fileSystem ?? nodeFileSystem,
      capturesPath: this.capturesPath,
      cacheBytes: options.cacheBytes ?? null,
      plant: () => this.client,
      namesOf: () => [CELL, RENAMED],
      onRemove: (path) => this.evicted.push(path),
      line: (_level, message) => this.lines.push(message),
    });
  }

  file(sizeBytes: number, kind: CaptureKind = "capture"): Shipped {
    const runId = generateUuidV7(Date.UTC(2026, 0, 1) + this.#runs++, this.random.bytes(10));
    return { runId, kind, bytes: this.random.bytes(sizeBytes) };
  }

  /** Sends the whole file, or one extent of it, as a cell does. @param change of the message, to damage it */
  async ship(
    file: Shipped,
    range: ByteRange = { offset: 0, lengthBytes: file.bytes.length },
    change: (fields: Record<string, string>, index: number) => Record<string, string> = (fields) => fields,
    cell = CELL,
  ): Promise<void> {
    const { runId, kind, bytes } = file;
    const { offset: at, lengthBytes: sizeBytes } = range;
    for (let index = 1; index <= chunkCount(sizeBytes); index++) {
      const offset = at + (index - 1) * CHUNK_BYTES;
      const chunk = bytes.subarray(offset, Math.min(at + sizeBytes, offset + CHUNK_BYTES));
      const place = { index, count: chunkCount(sizeBytes), sizeBytes, offset };
      const fields = encodeChunk({ ...place, path: capturePath(runId, kind), causeSequence: 1 }, chunk);
      const subject = chunkSubject(cell, STORE, { runId, kind, offset: at }, index);
      const expected = this.#chunks.get(subject) ?? 0;
      const options = { subjects: subject, expected, stream: CAPTURE_STREAM };
      const sequence = await this.client?.publish(subject, change(fields, index), chunk, options);
      this.#chunks.set(subject, sequence as number);
    }
  }

  async isEmpty(cache: CaptureCache): Promise<boolean> {
    await cache.close();
    const { bytes, files } = cache.figures;
    return this.filesOnDisk().length === 0 && bytes === 0 && files === 0;
  }

  /** Reads these bytes as the front does. @returns the bytes, or why there are none */
  async read(cache: CaptureCache, { runId, kind }: Shipped, ...ranges: ByteRange[]) {
    const id = ++this.#ids;
    const fault = await cache.hold(id, { cell: CELL, storeId: STORE, runId, kind, ranges });
    if (fault !== null) return { fault, bytes: null };
    const whole = readFileSync(join(this.capturesPath, capturePath(runId, kind)));
    cache.release(id, false);
    const bytes = ranges.map(({ offset, lengthBytes }) => whole.subarray(offset, offset + lengthBytes));
    return { fault, bytes: Buffer.concat(bytes) };
  }

  filesOnDisk(): string[] {
    const names = readdirSync(this.capturesPath, { recursive: true }) as string[];
    return names.filter((name) => /\.(cap|rep)$/.test(name)).sort();
  }
}

function part({ bytes }: Shipped, { offset, lengthBytes }: ByteRange): Buffer {
  return Buffer.from(bytes.subarray(offset, offset + lengthBytes));
}

t.test("captures of a store with another name are found under each of its names", { skip: noNatsServer }, async (t) => {
  const plant = await Plant.startFor(t);
  const cache = plant.cache();
  const [older, newer, grown, bad, mended] = [1, 2, 3, 4, 5].map(() => plant.file(600_000)) as [
    Shipped,
    Shipped,
    Shipped,
    Shipped,
    Shipped,
  ];
  await plant.ship(older);
  await plant.ship(newer, undefined, undefined, RENAMED);
  await plant.ship(grown, { offset: 0, lengthBytes: 1_000 });
  await plant.ship(grown, undefined, undefined, RENAMED);
  const damaged = (fields: Record<string, string>) => ({ ...fields, "Inspection-Crc32": "00000000" });
  await plant.ship(mended, undefined, damaged);
  await plant.ship(mended, undefined, undefined, RENAMED);
  await plant.ship(bad, undefined, damaged);
  for (const file of [older, newer, grown, mended]) {
    const { bytes, fault } = await plant.read(cache, file, { offset: 100, lengthBytes: 599_900 });
    t.ok(bytes?.equals(file.bytes.subarray(100)), String(fault?.message));
  }
  const range = { offset: 0, lengthBytes: 9 };
  t.match((await plant.read(cache, plant.file(9), range)).fault, { message: /does not have these bytes/ });
  t.match((await plant.read(cache, bad, range)).fault, { code: "not_shipped", message: /damaged/, retryable: false });
});

/** The least recently used files go first, and no file that is read: by a map of which chunks each file has. */
t.test("the cache keeps to its bound, as the model does", { skip: noNatsServer }, async (t) => {
  const plant = await Plant.startFor(t);
  const { random } = plant;
  const cacheBytes = 4 * 1024 * 1024;
  const cache = plant.cache({ cacheBytes });
  const files = Array.from({ length: 7 }, () => plant.file(random.integer(300_000, 2_000_000)));
  for (const file of files) await plant.ship(file);
  const model = new Map<Shipped, Set<number>>();
  const bytesOf = (file: Shipped): number => {
    const sizes = [...(model.get(file) ?? [])].map((at) => Math.min(CHUNK_BYTES, file.bytes.length - at * CHUNK_BYTES));
    return sizes.reduce((sum, size) => sum + size, 0);
  };
  const total = (): number => [...model.keys()].reduce((sum, file) => sum + bytesOf(file), 0);
  let fetched = 0;
  let evictions = 0;
  const rounds = sized(150, 2_000);
  for (let round = 0; round < rounds; round++) {
    const file = random.pick(files);
    const offset = random.integer(0, file.bytes.length - 1);
    const range = { offset, lengthBytes: random.integer(1, file.bytes.length - offset) };
    const chunks = model.get(file) ?? new Set();
    model.delete(file);
    model.set(file, chunks);
    for (let at = Math.floor(offset / CHUNK_BYTES); at * CHUNK_BYTES < offset + range.lengthBytes; at++) {
      if (!chunks.has(at)) fetched++;
      chunks.add(at);
    }
    for (const oldest of model.keys()) {
      if (total() <= cacheBytes) break;
      model.delete(oldest);
      evictions++;
    }
    const { bytes } = await plant.read(cache, file, range);
    if (bytes?.equals(part(file, range)) !== true) t.fail(`round ${round}: other bytes, seed ${SEED}`);
    if (cache.figures.bytes !== total()) t.fail(`round ${round}: ${cache.figures.bytes} bytes, not ${total()}`);
    await cache.close();
    const expected = [...model.keys()].map(({ runId, kind }) => capturePath(runId, kind)).sort();
    if (String(plant.filesOnDisk()) !== String(expected)) t.fail(`round ${round}: other files, seed ${SEED}`);
  }
  t.match(cache.figures, { fetchedChunks: fetched, files: model.size });
  t.equal(plant.evicted.length, evictions);
  t.comment(`seed ${SEED}: ${rounds} reads, ${fetched} chunks fetched, ${evictions} files removed: 0 differences`);
});

t.test("what is read stays, also above the bound, and goes when it was read", { skip: noNatsServer }, async (t) => {
  const plant = await Plant.startFor(t);
  const cache = plant.cache({ cacheBytes: 1_000_000 });
  const [large, small] = [plant.file(1_500_000), plant.file(600_000)];
  for (const file of [large, small]) await plant.ship(file);
  const { runId, kind } = large;
  const ranges = [{ offset: 0, lengthBytes: large.bytes.length }];
  t.equal(await cache.hold(1_001, { cell: CELL, storeId: STORE, runId, kind, ranges }), null);
  t.ok((await plant.read(cache, small, { offset: 0, lengthBytes: 600_000 })).bytes?.equals(small.bytes));
  const largePath = capturePath(runId, kind);
  t.strictSame(plant.filesOnDisk(), [largePath], "the file that nobody reads has gone");
  cache.release(1_001, false);
  t.ok(await plant.isEmpty(cache));
});

t.test("one fetch for all who ask, by chunk", { skip: noNatsServer }, async (t) => {
  const plant = await Plant.startFor(t);
  const cache = plant.cache();
  const file = plant.file(5 * CHUNK_BYTES + 17);
  await plant.ship(file);
  const whole = { offset: 0, lengthBytes: file.bytes.length };
  const read = await Promise.all(Array.from({ length: 100 }, () => plant.read(cache, file, whole)));
  t.ok(read.every(({ bytes }) => bytes?.equals(file.bytes)));
  t.match(cache.figures, { fetchedChunks: 6, fetchedBytes: file.bytes.length, bytes: file.bytes.length });
  const other = plant.file(5 * CHUNK_BYTES);
  await plant.ship(other);
  const middle = { offset: 2 * CHUNK_BYTES - 1, lengthBytes: 2 };
  t.ok((await plant.read(cache, other, middle)).bytes?.equals(part(other, middle)));
  t.equal(cache.figures.fetchedChunks, 8, "two bytes on both sides of a border cost two chunks");
  t.comment(`100 clients, ${file.bytes.length} bytes: 6 chunks fetched`);
});

t.test("single extents, as previews are shipped", { skip: noNatsServer }, async (t) => {
  const plant = await Plant.startFor(t);
  const cache = plant.cache();
  const file = plant.file(3 * CHUNK_BYTES);
  const previews = [
    { offset: 0, lengthBytes: 100 },
    { offset: 5_000, lengthBytes: 20_000 },
    { offset: 600_000, lengthBytes: CHUNK_BYTES + 1 },
  ];
  for (const preview of previews) await plant.ship(file, preview);
  for (const preview of previews)
    t.ok((await plant.read(cache, file, preview)).bytes?.equals(part(file, preview)), `at ${preview.offset}`);
  t.equal(cache.figures.bytes, 100 + 20_000 + CHUNK_BYTES + 1);
  const beside = { offset: 100, lengthBytes: 10 };
  t.match(await plant.read(cache, file, beside), { fault: { code: "not_shipped" } });
  t.match(await plant.read(cache, file, { offset: 5_000, lengthBytes: 20_001 }), { fault: { code: "not_shipped" } });
  // The cell was told to ship everything, and has sent the file whole.
  await plant.ship(file);
  t.ok((await plant.read(cache, file, beside)).bytes?.equals(part(file, beside)));
  const longer = { ...file, bytes: Buffer.concat([file.bytes, plant.random.bytes(1_000)]) };
  const end = { offset: 3 * CHUNK_BYTES - 5, lengthBytes: 1_005 };
  t.match(await plant.read(cache, longer, end), { fault: { code: "not_shipped" } });
  await plant.ship(longer);
  t.ok((await plant.read(cache, longer, end)).bytes?.equals(part(longer, end)), "a file that was sent again, longer");
});

t.test(
  "what the plant does not have names the cell, and its address if it said one",
  { skip: noNatsServer },
  async (t) => {
    const plant = await Plant.startFor(t);
    const file = plant.file(10);
    const range = { offset: 0, lengthBytes: 10 };
    const told = async (expected: string, params: object): Promise<void> => {
      const message = `the plant does not have these bytes: ask the cell ${expected}`;
      t.match(await plant.read(plant.cache(), file, range), { fault: { code: "not_shipped", message, params } });
    };
    const tell = async (cell: string, publicUrl: string): Promise<void> => {
      const fields = encodeSender({ logSequence: 1, publicUrl, captures: { sequence: 0, streamMs: 0 } });
      const subjects = logSubject(cell, STORE);
      await plant.client?.publish(subjects, fields, new Uint8Array(1), { subjects, expected: 0 });
    };
    await told(CELL, { cell: CELL, public_url: null });
    const [before, after] = ["http://cell-7.factory:8000", "http://cell-8.factory:8000"];
    await tell(CELL, before);
    await told(`${CELL} at ${before}`, { cell: CELL, public_url: before });
    await tell(RENAMED, after);
    await told(`${RENAMED} at ${after}`, { cell: RENAMED, public_url: after });
    t.strictSame(plant.filesOnDisk(), []);
  },
);

t.test("a damaged or foreign chunk is never taken for data", { skip: noNatsServer }, async (t) => {
  const plant = await Plant.startFor(t);
  const cache = plant.cache();
  const changes: Record<string, (fields: Record<string, string>) => Record<string, string>> = {
    "other bytes": (fields) => ({ ...fields, "Inspection-Crc32": "00000000" }),
    "another place": (fields) => ({ ...fields, "Inspection-Offset": "7" }),
    "another number": (fields) => ({ ...fields, "Inspection-Index": "1" }),
    "no fields": () => ({}),
  };
  for (const [what, change] of Object.entries(changes)) {
    const file = plant.file(2 * CHUNK_BYTES);
    const whole = { offset: 0, lengthBytes: file.bytes.length };
    await plant.ship(file, whole, (fields, index) => (index === 2 ? change(fields) : fields));
    t.match(
      await plant.read(cache, file, whole),
      { fault: { code: "not_shipped", message: /copy of these bytes is damaged/, retryable: false } },
      what,
    );
    t.equal(plant.lines.pop(), "a capture in the plant is damaged");
    await plant.ship(file);
    t.ok((await plant.read(cache, file, whole)).bytes?.equals(file.bytes), `${what}, sent again`);
  }
  const file = plant.file(1_000);
  const whole = { offset: 0, lengthBytes: 1_000 };
  await plant.ship(file);
  await plant.read(cache, file, whole);
  const { fetchedChunks } = cache.figures;
  writeFileSync(join(plant.capturesPath, capturePath(file.runId, file.kind)), new Uint8Array(1_000));
  t.equal(await cache.hold(-1, { cell: CELL, storeId: STORE, ...file, ranges: [whole] }), null);
  cache.release(-1, true);
  t.ok((await plant.read(cache, file, whole)).bytes?.equals(file.bytes), "damage on the hub's disk is fetched again");
  t.equal(cache.figures.fetchedChunks, fetchedChunks + 1);

  // Two read it when one of them finds the damage: a third one does not get the same bytes.
  const request = { cell: CELL, storeId: STORE, ...file, ranges: [whole] };
  t.strictSame([await cache.hold(-2, request), await cache.hold(-3, request)], [null, null]);
  cache.release(-2, true);
  const third = plant.read(cache, file, whole);
  const turns = async (): Promise<string> => {
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    return "waits";
  };
  t.equal(await Promise.race([third, turns()]), "waits");
  cache.release(-3, false);
  t.ok((await third).bytes?.equals(file.bytes));
  t.equal(cache.figures.fetchedChunks, fetchedChunks + 2);
});

t.test("the plant goes away in the middle", { skip: noNatsServer }, async (t) => {
  const plant = await Plant.startFor(t);
  const cache = plant.cache();
  const [known, file] = [plant.file(1_000), plant.file(40 * CHUNK_BYTES)];
  for (const one of [known, file]) await plant.ship(one);
  const whole = { offset: 0, lengthBytes: file.bytes.length };
  await plant.read(cache, known, { offset: 0, lengthBytes: 1_000 });
  const reading = plant.read(cache, file, whole);
  while (cache.figures.fetchedChunks < 5) await new Promise((resolve) => setImmediate(resolve));
  await plant.server.kill();
  const broken = await reading;
  t.match(broken, { fault: { code: "unavailable", message: /^the captures cannot be fetched from the plant now: / } });
  plant.client = null;
  t.match(await plant.read(cache, file, whole), { fault: { message: /now: the plant cannot be reached$/ } });
  t.ok((await plant.read(cache, known, { offset: 0, lengthBytes: 1_000 })).bytes?.equals(known.bytes));
  const { fetchedChunks } = cache.figures;
  await plant.server.start();
  plant.client = await plant.server.client();
  t.ok((await plant.read(cache, file, whole)).bytes?.equals(file.bytes));
  const again = cache.figures.fetchedChunks - fetchedChunks;
  t.ok(again < 40, "it goes on where it was");
  t.comment(`${40 - again} of 40 chunks stayed, ${again} were fetched after the plant was back`);
});

t.test("a full disk", { skip: noNatsServer }, async (t) => {
  const plant = await Plant.startFor(t);
  const room = new RoomFileSystem();
  const cache = plant.cache({ fileSystem: room.fileSystem });
  const [first, second] = [plant.file(700_000), plant.file(700_000)];
  for (const file of [first, second]) await plant.ship(file);
  const whole = { offset: 0, lengthBytes: 700_000 };
  await plant.read(cache, first, whole);
  room.freeBytes = 1024 ** 3 - 1;
  const refused = { fault: { code: "unavailable", message: "the hub's disk has no room for these captures" } };
  t.match(await plant.read(cache, second, whole), refused, "room is left to the log");
  t.ok(await plant.isEmpty(cache), "the cache has given all that it had");
  room.freeBytes = 2 ** 40;
  room.fullPaths = [".cap"];
  t.match(await plant.read(cache, second, whole), refused);
  room.fullPaths = [];
  t.ok(await plant.isEmpty(cache));
  t.ok((await plant.read(cache, second, whole)).bytes?.equals(second.bytes), "it goes on when there is room");
});

t.test("a start empties the cache", { skip: noNatsServer }, async (t) => {
  const plant = await Plant.startFor(t);
  const cache = plant.cache();
  const file = plant.file(1_000);
  await plant.ship(file);
  const path = join(plant.capturesPath, capturePath(file.runId, file.kind));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, new Uint8Array(1_000));
  writeFileSync(join(plant.capturesPath, "notes.txt"), "of somebody else");
  await cache.clear();
  t.strictSame(plant.filesOnDisk(), []);
  t.ok(readdirSync(plant.capturesPath).includes("notes.txt"), "a file of somebody else stays");
  t.ok((await plant.read(cache, file, { offset: 0, lengthBytes: 1_000 })).bytes?.equals(file.bytes));
});
