import { spawnSync } from "node:child_process";
import fs, { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { crc32 } from "node:zlib";
import t from "tap";
import type { Extent } from "../../../core/capture/capture.js";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { CaptureReader, verifyExtents } from "../../../storage/captures/capture-reader.js";
import { CaptureStore } from "../../../storage/captures/capture-store.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { listOf } from "../../helpers/list-of.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const CAPTURES = "/data/captures";
const random = createRandom(SEED);

function runId(timeMs = Date.UTC(2026, 10, 20)): string {
  return generateUuidV7(timeMs, random.bytes(10));
}

async function createDisk(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk();
  await disk.makeDirectory(CAPTURES);
  for (const directory of ["", "/data", CAPTURES]) await disk.syncDirectory(directory);
  return disk;
}

function openStore(disk: SimulatedDisk, maximumOpenFiles = 8): CaptureStore {
  return new CaptureStore({ fileSystem: disk, capturesPath: CAPTURES, maximumOpenFiles });
}

t.test("a run's file lies in the month of its id, reports apart", async (t) => {
  const id = "01890a5d-ac96-774b-bcce-b302099a8057";
  t.equal(capturePath(id, "capture"), `202306/${id}-000.cap`);
  t.equal(capturePath(id, "report"), `202306/${id}-000.rep`);
});

t.test("appends get their places at once, one behind the other, and read back exactly", async (t) => {
  const disk = await createDisk();
  const store = openStore(disk);
  const id = runId();
  const file = store.file(id, "capture", 0);
  const payloads = [10, 0, 3, 70_000, 1].map((length) => random.bytes(length));
  const extents = payloads.map((payload) => file.append(payload));
  let offset = 0;
  for (const [i, payload] of payloads.entries()) {
    t.same(extents[i], { offset, lengthBytes: payload.length, crc32: crc32(payload) });
    offset += payload.length;
  }
  t.equal(store.pendingBytes, offset);
  await file.makeDurable();
  t.equal(store.pendingBytes, 0);
  const path = `${CAPTURES}/${capturePath(id, "capture")}`;
  t.same(Buffer.from(disk.bytesOf(path)), Buffer.concat(payloads));
  t.same(await verifyExtents(disk, path, extents), []);
  await store.close();
  // After the power cut everything that was durable is there, its names too.
  const after = disk.crash("drop", random);
  t.same(Buffer.from(after.bytesOf(path)), Buffer.concat(payloads));
});

t.test("a folder of captures that somebody removed stands again durably, whoever made it anew", async (t) => {
  for (const isMadeAnew of [true, false]) {
    const disk = await createDisk();
    const store = openStore(disk);
    const [before, after] = [runId(), runId()];
    const file = store.file(before, "capture", 0);
    file.append(random.bytes(9));
    await file.makeDurable();
    store.finish(before);
    const path = `${CAPTURES}/${capturePath(before, "capture")}`;
    await disk.unlink(path);
    await disk.removeDirectory(path.slice(0, path.lastIndexOf("/")));
    await disk.removeDirectory(CAPTURES);
    await disk.syncDirectory("/data");
    if (isMadeAnew) await disk.makeDirectory(CAPTURES);
    const next = store.file(after, "capture", 0);
    next.append(Uint8Array.of(7));
    await next.makeDurable();
    const left = disk.crash("drop", random);
    t.same([...left.bytesOf(`${CAPTURES}/${capturePath(after, "capture")}`)], [7]);
  }
});

t.test("a crash at every operation keeps what was durable, and its place is used again otherwise", async (t) => {
  const id = runId();
  const path = `${CAPTURES}/${capturePath(id, "capture")}`;
  const payloads = Array.from({ length: 6 }, (_, i) => new Uint8Array(700).fill(i + 1));
  const work = async (disk: SimulatedDisk, durable: Extent[]): Promise<void> => {
    const store = openStore(disk);
    const file = store.file(id, "capture", 0);
    for (let i = 0; i < payloads.length; i += 2) {
      const extents = [file.append(payloads[i]!), file.append(payloads[i + 1]!)];
      await file.makeDurable();
      durable.push(...extents);
    }
    await store.close();
  };
  const counting = await createDisk();
  const before = counting.operations;
  await work(counting, []);
  const operations = counting.operations - before;
  let damaged = 0;
  let crashes = 0;
  for (const mode of ["drop", "tear", "tear", "keep"] as const) {
    for (let at = 0; at < operations; at++) {
      const disk = await createDisk();
      const first = disk.operations;
      disk.onOperation = ({ number }) => (number - first === at ? { dies: true } : undefined);
      const durable: Extent[] = [];
      await work(disk, durable).catch(() => undefined);
      const after = disk.crash(mode, random);
      crashes++;
      const committedEnd = durable.length * 700;
      if (durable.length > 0) damaged += (await verifyExtents(after, path, durable)).length;
      // The run goes on at the committed end: what was there is kept, what stood behind is gone.
      const store = openStore(after);
      const file = store.file(id, "capture", committedEnd);
      const next = file.append(new Uint8Array(50).fill(99));
      await file.makeDurable();
      await store.close();
      if (next.offset !== committedEnd || after.bytesOf(path).length !== committedEnd + 50) damaged++;
      damaged += (await verifyExtents(after, path, [...durable, next])).length;
    }
  }
  t.equal(damaged, 0);
  t.comment(`${crashes} crashes at ${operations} operations: ${damaged} durable extents damaged`);
});

for (const kind of ["write", "datasync", "create", "mkdir", "syncDirectory"] as const) {
  t.test(`a failed ${kind} ends the store: nothing that waited is durable, nothing is taken any more`, async (t) => {
    const disk = await createDisk();
    const failures: string[] = [];
    const store = new CaptureStore({
      fileSystem: disk,
      capturesPath: CAPTURES,
      onFailure: ({ message }) => failures.push(message),
    });
    const [file, other] = [store.file(runId(), "capture", 0), store.file(runId(), "report", 0)];
    disk.onOperation = (operation) => (operation.kind === kind ? { error: "ENOSPC" } : undefined);
    file.append(random.bytes(10));
    other.append(random.bytes(10));
    const outcomes = await Promise.allSettled([file.makeDurable(), other.makeDurable()]);
    t.same(
      outcomes.map(({ status }) => status),
      ["rejected", "rejected"],
    );
    disk.onOperation = () => undefined;
    t.throws(() => file.append(random.bytes(1)), { code: "capture_failed", message: /ENOSPC/ });
    await t.rejects(file.makeDurable(), { code: "capture_failed" });
    t.equal(failures.length, 1);
    t.match(store.failure, { code: "capture_failed" });
    await store.close();
  });
}

t.test("short writes are continued, and a write of nothing fails", async (t) => {
  const disk = await createDisk();
  const store = openStore(disk);
  const id = runId();
  const file = store.file(id, "capture", 0);
  disk.onOperation = ({ kind }) => (kind === "write" ? { short: 7 } : undefined);
  const extent = file.append(random.bytes(1_000));
  await file.makeDurable();
  t.same(await verifyExtents(disk, file.path, [extent]), []);
  disk.onOperation = ({ kind }) => (kind === "write" ? { short: 0 } : undefined);
  file.append(random.bytes(10));
  await t.rejects(file.whenWritten(), { code: "capture_failed", message: /wrote nothing/ });
});

t.test("what is large is written in pieces, one after another in a file", async (t) => {
  const disk = await createDisk();
  const writes: { path: string; position: number; lengthBytes: number }[] = [];
  let underWay = 0;
  let mostUnderWay = 0;
  const open = disk.open.bind(disk);
  disk.open = async (path, mode) => {
    const file = await open(path, mode);
    const write = file.write.bind(file);
    file.write = async (bytes, position) => {
      writes.push({ path, position, lengthBytes: bytes.length });
      mostUnderWay = Math.max(mostUnderWay, ++underWay);
      return write(bytes, position).finally(() => {
        underWay--;
      });
    };
    return file;
  };
  const store = openStore(disk);
  const file = store.file(runId(), "capture", 0);
  const lengths = [600_000, 0, 5, 1_048_576, 262_144];
  const extents = lengths.map((length) => file.append(createRandom(SEED).bytes(length)));
  await file.makeDurable();
  const lengthBytes = lengths.reduce((sum, length) => sum + length, 0);
  t.equal(disk.bytesOf(file.path).length, lengthBytes);
  t.same(await verifyExtents(disk, file.path, extents), []);
  t.ok(
    writes.every((write) => write.lengthBytes <= 262_144),
    "no write is larger than a piece",
  );
  t.equal(writes.length, 3 + 1 + 4 + 1);
  t.equal(mostUnderWay, 1);
  let end = 0;
  for (const write of writes) {
    t.equal(write.position, end, "each begins where the one before ended");
    end += write.lengthBytes;
  }
  await store.close();
});

t.test("many runs at once keep few descriptors, and each finds its bytes", async (t) => {
  const disk = await createDisk();
  let open = 0;
  let most = 0;
  const counting = new Proxy(disk, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== "function") return value;
      if (property !== "open") return value.bind(target);
      return async (...args: Parameters<SimulatedDisk["open"]>) => {
        const file = await target.open(...args);
        most = Math.max(most, ++open);
        const close = file.close.bind(file);
        file.close = async () => {
          open--;
          await close();
        };
        return file;
      };
    },
  });
  const store = new CaptureStore({ fileSystem: counting, capturesPath: CAPTURES, maximumOpenFiles: 4 });
  const runs = Array.from({ length: 20 }, (_, i) => ({ id: runId(Date.UTC(2026, i % 3, 5)), extents: [] as Extent[] }));
  for (let round = 0; round < 10; round++) {
    for (const run of runs) run.extents.push(store.file(run.id, "capture", 0).append(random.bytes(100 + round)));
    const some = runs.filter((_, i) => (i + round) % 3 === 0);
    await Promise.all(some.map((run) => store.file(run.id, "capture", 0).makeDurable()));
    // The others are written too before the next round: descriptors in use are not closed.
    await Promise.all(runs.map((run) => store.file(run.id, "capture", 0).whenWritten()));
  }
  for (const run of runs) store.finish(run.id);
  await store.close();
  t.equal(open, 0, "all are closed");
  t.ok(most <= 8, `${most} descriptors at most, twice those that are kept`);
  t.equal(store.failure, null);
  const after = disk.crash("drop", random);
  let damaged = 0;
  for (const run of runs) {
    damaged += (await verifyExtents(after, `${CAPTURES}/${capturePath(run.id, "capture")}`, run.extents)).length;
  }
  t.equal(damaged, 0);
  t.comment(`20 runs, 200 appends: at most ${most} descriptors, ${damaged} damaged`);
});

/** A store's life that acknowledges before anything is synced, ended with its process: the machine goes on. */
async function killedLife(id: string, payload: Uint8Array): Promise<SimulatedDisk> {
  const disk = await createDisk();
  const store = openStore(disk);
  const file = store.file(id, "capture", 0);
  file.append(payload);
  await file.whenWritten();
  return disk.kill();
}

t.test("what another process left, its name in the cache only, is durable with the first append to it", async (t) => {
  const id = runId();
  const path = `${CAPTURES}/${capturePath(id, "capture")}`;
  const payloads = [random.bytes(700), random.bytes(300), random.bytes(40)] as const;
  const disk = await killedLife(id, payloads[0]);
  t.same(disk.fork("drop", random).paths(), [], "nothing has synced the name");
  const store = openStore(disk);
  const file = store.file(id, "capture", payloads[0].length);
  for (const payload of payloads.slice(1)) {
    file.append(payload);
    await file.makeDurable();
    const stored = Buffer.concat(payloads.slice(0, payloads.indexOf(payload) + 1));
    const after = disk.fork("drop", random);
    t.ok(after.has(path) && stored.equals(after.bytesOf(path)), "all that was acknowledged is behind the power cut");
  }
  await store.close();
});

t.test("so it is where the folder of the month is in the cache only, too", async (t) => {
  const disk = await createDisk();
  const id = runId();
  const path = `${CAPTURES}/${capturePath(id, "capture")}`;
  // By a process that was killed before it synced anything.
  await disk.makeDirectory(path.slice(0, path.lastIndexOf("/")));
  await (await disk.open(path, "create")).write(random.bytes(10), 0);
  const restarted = disk.kill();
  const file = openStore(restarted).file(id, "capture", 10);
  file.append(random.bytes(20));
  await file.makeDurable();
  const after = restarted.fork("drop", random);
  t.ok(after.has(path) && after.bytesOf(path).length === 30);
});

t.test("a file that was deleted while the service was stopped is made anew with a durable name", async (t) => {
  const id = runId();
  const path = `${CAPTURES}/${capturePath(id, "capture")}`;
  const disk = await createDisk();
  const first = openStore(disk);
  first.file(id, "capture", 0).append(random.bytes(100));
  await first.file(id, "capture", 0).makeDurable();
  await first.close();
  const stopped = disk.kill();
  stopped.removeFile(path);
  const file = openStore(stopped).file(id, "capture", 100);
  const extent = file.append(random.bytes(50));
  await file.makeDurable();
  const after = stopped.fork("drop", random);
  t.ok(after.has(path), "it is there behind a power cut");
  t.same(after.has(path) && (await verifyExtents(after, path, [extent])), [], "with what was acknowledged since");
});

t.test("names are synced once: those that were there with their month, each new one by itself", async (t) => {
  const before = runId();
  const disk = await killedLife(before, random.bytes(10));
  const store = openStore(disk, 1);
  const synced: string[] = [];
  disk.onOperation = ({ kind, path }) => {
    if (kind === "syncDirectory") synced.push(path);
    return undefined;
  };
  const news = [runId(), runId()];
  for (let round = 0; round < 5; round++) {
    for (const [id, committedEnd] of [[before, 10], ...news.map((id) => [id, 0])] as [string, number][]) {
      const file = store.file(id, "capture", committedEnd);
      file.append(random.bytes(10));
      await file.makeDurable();
    }
  }
  await store.close();
  const month = `${CAPTURES}/202611`;
  t.same(synced, ["/data", CAPTURES, month, month, month]);
});

t.test("slices of a file read as one, at any position and length", async (t) => {
  t.comment(`seed ${SEED}`);
  const disk = await createDisk();
  const store = openStore(disk);
  const file = store.file(runId(), "capture", 0);
  const extents = Array.from({ length: 30 }, () => file.append(random.bytes(random.integer(0, 200))));
  await file.makeDurable();
  const slices = extents.filter((_, i) => i % 3 !== 0);
  const stored = disk.bytesOf(file.path);
  const whole = Buffer.concat(slices.map(({ offset, lengthBytes }) => stored.subarray(offset, offset + lengthBytes)));
  const captures = new CaptureReader({ fileSystem: disk });
  const reader = await captures.openSlices(file.path, slices);
  t.equal(reader.sizeBytes, whole.length);
  let wrong = 0;
  for (let round = 0; round < 500; round++) {
    const position = random.integer(0, whole.length + 10);
    const length = random.integer(0, 500);
    const read = Buffer.from(await reader.read(position, length));
    if (!read.equals(whole.subarray(position, position + length))) wrong++;
  }
  t.equal(wrong, 0);
  reader.close();
  await t.rejects(reader.read(0, 1), { message: /read after close/ });
  await t.rejects(captures.openSlices(`${file.path}x`, slices), { code: "capture_missing" });
  // Within a slice: behind its end nobody tells where exactly a file ends.
  const end = (slices.find(({ lengthBytes }) => lengthBytes > 1)?.offset ?? Number.NaN) + 1;
  disk.setBytes(file.path, stored.slice(0, end));
  captures.close();
  const short = await captures.openSlices(file.path, slices);
  await t.rejects(short.read(0, whole.length), { code: "capture_damaged", message: new RegExp(`ends at ${end},`) });
  short.close();
  // Behind it no read tells where it ends.
  const last = slices.filter(({ lengthBytes }) => lengthBytes > 0).at(-1) as (typeof slices)[number];
  disk.setBytes(file.path, stored.slice(0, last.offset - 1));
  captures.close();
  const shorter = await captures.openSlices(file.path, slices);
  const message = new RegExp(`ends at ${last.offset} or before, within stored bytes`);
  await t.rejects(shorter.read(whole.length - 1, 1), { code: "capture_damaged", message });
  shorter.close();
});

t.test(
  "a file that is forgotten is read to the end by who has it, and by nobody else, not even one who is just opening it",
  async (t) => {
    const disk = await createDisk();
    const file = openStore(disk).file(runId(), "capture", 0);
    const slices = [file.append(random.bytes(100))];
    await file.makeDurable();
    let open = 0;
    let gate: Promise<void> | undefined;
    const counting = {
      open: async (path: string) => {
        await gate;
        const inner = await disk.open(path, "read");
        open++;
        return {
          ...inner,
          close: async () => {
            open--;
          },
        };
      },
    };
    const captures = new CaptureReader({ fileSystem: counting as never });
    const reading = await captures.openSlices(file.path, slices);
    let proceed = (): void => {};
    captures.forget(file.path);
    gate = new Promise((resolve) => {
      proceed = resolve;
    });
    const opening = captures.openSlices(file.path, slices);
    captures.forget(file.path);
    proceed();
    const late = await opening;
    disk.removeFile(file.path);
    t.equal(open, 2);
    t.equal((await reading.read(0, 100)).length, 100);
    t.equal((await late.read(0, 100)).length, 100);
    await t.rejects(captures.openSlices(file.path, slices), { code: "capture_missing" });
    reading.close();
    late.close();
    t.equal(open, 0, "and then nothing holds the space");
  },
);

t.test("a file that its run lets go of while it is being made durable is not opened again", async (t) => {
  const disk = await createDisk();
  const store = openStore(disk);
  let opened = 0;
  let closed = 0;
  let letSync = (): void => {};
  const maySync = new Promise<void>((resolve) => {
    letSync = resolve;
  });
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  const open = disk.open.bind(disk);
  disk.open = async (path, mode) => {
    const file = await open(path, mode);
    const close = file.close.bind(file);
    opened++;
    const datasync = file.datasync.bind(file);
    file.datasync = async () => {
      await maySync;
      await datasync();
    };
    file.close = async () => {
      closed++;
      await close();
    };
    return file;
  };
  const id = runId();
  const file = store.file(id, "capture", 0);
  file.append(random.bytes(1_000));
  store.finish(id);
  await turn();
  const durable = file.makeDurable();
  await turn();
  letSync();
  await durable;
  // `close` would close it too; what counts is that nothing was left for it.
  await turn();
  t.equal(opened, 1);
  t.equal(closed, 1, "retention can have its room back");
  await store.close();
});

t.test("verification names each damaged extent", async (t) => {
  const disk = await createDisk();
  const store = openStore(disk);
  const file = store.file(runId(), "capture", 0);
  const extents = [100, 2 * 1024 * 1024, 50].map((length) => file.append(random.bytes(length)));
  await file.makeDurable();
  const bytes = disk.bytesOf(file.path);
  bytes[100 + 1_500_000]! ^= 1;
  disk.setBytes(file.path, bytes.slice(0, bytes.length - 1));
  const damages = await verifyExtents(disk, file.path, extents);
  t.match(
    damages,
    listOf(
      { extent: extents[1]!, reason: "the bytes do not match their CRC" },
      { extent: extents[2]!, reason: /the file ends at/ },
    ),
  );
  t.equal(damages.length, 2);
  const [first, , last] = extents as [(typeof extents)[0], unknown, (typeof extents)[0]];
  disk.setBytes(file.path, bytes.slice(0, 60));
  t.same(await verifyExtents(disk, file.path, [first, last]), [
    { extent: first, reason: "the file ends at 60, within the extent" },
    { extent: last, reason: `the file ends at ${last.offset} or before, within the extent` },
  ]);
  await t.rejects(verifyExtents(disk, "/data/captures/none", extents), { code: "capture_missing" });
});

t.test("what was removed stays removed, whatever the disk kept of what was not synced", async (t) => {
  const disk = await createDisk();
  const store = openStore(disk);
  const ids = [runId(Date.UTC(2026, 9, 1)), runId(Date.UTC(2026, 10, 1))];
  for (const id of ids) {
    store.file(id, "capture", 0).append(random.bytes(10));
    await store.file(id, "capture", 0).makeDurable();
    store.finish(id);
  }
  await store.removeCaptures(ids, (month) => month === "202610");
  const after = disk.fork("drop", random);
  t.same(after.paths(), []);
  t.same(await after.readDirectory(CAPTURES), [{ name: "202611", isDirectory: true }]);
  await store.close();
});

t.test("a file or a month that cannot be removed is told, and holds up no other", async (t) => {
  const disk = await createDisk();
  const store = openStore(disk);
  const october = runId(Date.UTC(2026, 9, 1));
  const ids = [october, runId(Date.UTC(2026, 10, 1)), runId(Date.UTC(2026, 10, 2))];
  for (const id of ids) {
    store.file(id, "capture", 0).append(random.bytes(10));
    await store.file(id, "capture", 0).makeDurable();
    store.finish(id);
  }
  const stuck = `${CAPTURES}/${capturePath(ids[1]!, "capture")}`;
  disk.onOperation = ({ kind, path }) =>
    (kind === "unlink" && path === stuck) || kind === "rmdir" ? { error: "EPERM" } : undefined;
  t.match(await store.removeCaptures(ids, (month) => month === "202610"), {
    files: 2,
    kept: listOf(
      { runId: ids[1], error: { code: "EPERM", path: stuck } },
      { runId: october, error: { code: "EPERM", path: `${CAPTURES}/202610` } },
    ),
  });
  t.same(disk.fork("drop", random).paths(), [stuck], "the others are gone, durably");
  t.equal(store.failure, null);
  disk.onOperation = () => undefined;
  t.same(await store.removeCaptures([ids[1]!, october], () => true), { files: 1, kept: [] });
  t.same(await disk.readDirectory(CAPTURES), []);
  await store.close();
});

t.test("a failed sync of a removal ends the store, as any does", async (t) => {
  for (const syncs of [0, 1]) {
    const disk = await createDisk();
    const id = runId();
    const failures: string[] = [];
    const options = { fileSystem: disk, capturesPath: CAPTURES, onFailure: () => failures.push("failed") };
    const store = new CaptureStore(options);
    store.file(id, "capture", 0).append(random.bytes(10));
    await store.file(id, "capture", 0).makeDurable();
    store.finish(id);
    let at = 0;
    disk.onOperation = ({ kind }) => (kind === "syncDirectory" && at++ === syncs ? { error: "EIO" } : undefined);
    // The month's folder first, then, since nothing is left in it, that of the months.
    await t.rejects(
      store.removeCaptures([id], () => true),
      { code: "EIO" },
    );
    t.match(store.failure, { code: "capture_failed", message: /fsync .*EIO/ });
    t.same(failures, ["failed"]);
    t.throws(() => store.file(id, "capture", 0).append(random.bytes(10)), { code: "capture_failed" });
    await store.close();
  }
});

t.test("a FIFO or a folder in place of a capture file is damage of that file, and keeps nobody waiting", async (t) => {
  const folder = mkdtempSync(`${tmpdir()}/capture-store-`);
  t.teardown(() => rmSync(folder, { recursive: true }));
  const extent = { offset: 0, lengthBytes: 1, crc32: 0 };
  spawnSync("mkfifo", [`${folder}/fifo`]);
  mkdirSync(`${folder}/folder`);
  for (const path of [`${folder}/fifo`, `${folder}/folder`]) {
    const refusal = { code: "capture_damaged", message: /is not a file/ };
    await t.rejects(verifyExtents(nodeFileSystem, path, [extent]), refusal);
    await t.rejects(new CaptureReader({ fileSystem: nodeFileSystem }).openSlices(path, [extent]), refusal);
    t.throws(() => nodeFileSystem.openSync(path), { message: /^open / });
    await t.rejects(nodeFileSystem.open(path, "update"), { message: /^open / });
  }
  writeFileSync(`${folder}/file`, "of eleven");
  const file = nodeFileSystem.openSync(`${folder}/file`);
  t.equal(file.readSync(new Uint8Array(20), 3), 6);
  file.closeSync();
  t.throws(() => file.readSync(new Uint8Array(20), 0), { code: "EBADF" }, "it is closed");
  t.throws(() => file.closeSync(), { code: "EBADF", operation: "close" });
  const { fstatSync } = fs;
  t.teardown(() => {
    fs.fstatSync = fstatSync;
    syncBuiltinESMExports();
  });
  fs.fstatSync = () => {
    throw Object.assign(new Error("EIO: i/o error, fstat"), { code: "EIO" });
  };
  syncBuiltinESMExports();
  t.throws(() => nodeFileSystem.openSync(`${folder}/file`), {
    name: "FileSystemError",
    code: "EIO",
    operation: "fstat",
  });
});
