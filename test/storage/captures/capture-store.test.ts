import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { crc32 } from "node:zlib";
import t from "tap";
import type { Extent } from "../../../core/capture/capture.js";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { verifyExtents } from "../../../storage/captures/capture-reader.js";
import {
  CAPTURES,
  capturesOf,
  createCaptureDisk,
  openCaptures,
  storeCaptures,
} from "../../helpers/captures/capture-disk.js";
import { watchOpened } from "../../helpers/disk/opened-files.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const random = createRandom(SEED);

function runId(timeMs = Date.UTC(2026, 10, 20)): string {
  return generateUuidV7(timeMs, random.bytes(10));
}

t.test("a run's file lies in the month of its id, reports apart", async (t) => {
  const id = "01890a5d-ac96-774b-bcce-b302099a8057";
  t.equal(capturePath(id, "capture"), `202306/${id}-000.cap`);
  t.equal(capturePath(id, "report"), `202306/${id}-000.rep`);
});

t.test("appends get their places at once, one after the other, and read back exactly", async (t) => {
  const disk = await createCaptureDisk();
  const store = openCaptures(disk);
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
  const path = capturesOf(id);
  t.same(Buffer.from(disk.bytesOf(path)), Buffer.concat(payloads));
  t.same(await verifyExtents(disk, path, extents), []);
  await store.close();
  // After the power cut everything that was durable is there, its names too.
  const after = disk.crash("drop", random);
  t.same(Buffer.from(after.bytesOf(path)), Buffer.concat(payloads));
});

t.test("a folder of captures that somebody removed stands again durably, whoever made it anew", async (t) => {
  for (const isMadeAnew of [true, false]) {
    const disk = await createCaptureDisk();
    const store = openCaptures(disk);
    const [before, after] = [runId(), runId()];
    await storeCaptures(store, before, random.bytes(9));
    const path = capturesOf(before);
    await disk.unlink(path);
    await disk.removeDirectory(path.slice(0, path.lastIndexOf("/")));
    await disk.removeDirectory(CAPTURES);
    await disk.syncDirectory("/data");
    if (isMadeAnew) await disk.makeDirectory(CAPTURES);
    const next = store.file(after, "capture", 0);
    next.append(Uint8Array.of(7));
    await next.makeDurable();
    const left = disk.crash("drop", random);
    t.same([...left.bytesOf(capturesOf(after))], [7]);
  }
});

t.test("a crash at every operation keeps what was durable, and its place is used again otherwise", async (t) => {
  const id = runId();
  const path = capturesOf(id);
  const payloads = Array.from({ length: 6 }, (_, i) => new Uint8Array(700).fill(i + 1));
  const work = async (disk: SimulatedDisk, durable: Extent[]): Promise<void> => {
    const store = openCaptures(disk);
    const file = store.file(id, "capture", 0);
    for (let i = 0; i < payloads.length; i += 2) {
      const extents = [file.append(payloads[i]!), file.append(payloads[i + 1]!)];
      await file.makeDurable();
      durable.push(...extents);
    }
    await store.close();
  };
  const counting = await createCaptureDisk();
  const before = counting.operations;
  await work(counting, []);
  const operations = counting.operations - before;
  let damaged = 0;
  let crashes = 0;
  for (const mode of ["drop", "tear", "tear", "keep"] as const) {
    for (let at = 0; at < operations; at++) {
      const disk = await createCaptureDisk();
      const first = disk.operations;
      disk.onOperation = ({ number }) => (number - first === at ? { dies: true } : undefined);
      const durable: Extent[] = [];
      await work(disk, durable).catch(() => undefined);
      const after = disk.crash(mode, random);
      crashes++;
      const committedEnd = durable.length * 700;
      if (durable.length > 0) damaged += (await verifyExtents(after, path, durable)).length;
      // The run goes on at the committed end: what was there is kept, what was after it is gone.
      const store = openCaptures(after);
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
    const disk = await createCaptureDisk();
    const failures: string[] = [];
    const store = openCaptures(disk, { onFailure: ({ message }) => failures.push(message) });
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
  const disk = await createCaptureDisk();
  const store = openCaptures(disk);
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

t.test("what is large is written in chunks, one after another in a file", async (t) => {
  const disk = await createCaptureDisk();
  const writes: { path: string; position: number; lengthBytes: number }[] = [];
  let underWay = 0;
  let mostUnderWay = 0;
  watchOpened(disk, (file, path) => {
    const { write } = file;
    file.write = async (bytes, position) => {
      writes.push({ path, position, lengthBytes: bytes.length });
      mostUnderWay = Math.max(mostUnderWay, ++underWay);
      return write(bytes, position).finally(() => {
        underWay--;
      });
    };
  });
  const store = openCaptures(disk);
  const file = store.file(runId(), "capture", 0);
  const lengths = [600_000, 0, 5, 1_048_576, 262_144];
  const extents = lengths.map((length) => file.append(createRandom(SEED).bytes(length)));
  await file.makeDurable();
  const lengthBytes = lengths.reduce((sum, length) => sum + length, 0);
  t.equal(disk.bytesOf(file.path).length, lengthBytes);
  t.same(await verifyExtents(disk, file.path, extents), []);
  t.ok(
    writes.every((write) => write.lengthBytes <= 262_144),
    "no write is larger than a chunk",
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
  const disk = await createCaptureDisk();
  let open = 0;
  let most = 0;
  watchOpened(disk, (file) => {
    most = Math.max(most, ++open);
    const { close } = file;
    file.close = async () => {
      open--;
      await close();
    };
  });
  const store = openCaptures(disk, { maximumOpenFiles: 4 });
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
    damaged += (await verifyExtents(after, capturesOf(run.id), run.extents)).length;
  }
  t.equal(damaged, 0);
  t.comment(`20 runs, 200 appends: at most ${most} descriptors, ${damaged} damaged`);
});

/** A store's life that acknowledges before anything is synced, ended with its process: the machine goes on. */
async function killedLife(id: string, payload: Uint8Array): Promise<SimulatedDisk> {
  const disk = await createCaptureDisk();
  const store = openCaptures(disk);
  const file = store.file(id, "capture", 0);
  file.append(payload);
  await file.whenWritten();
  return disk.kill();
}

t.test("what another process left, its name in the cache only, is durable with the first append to it", async (t) => {
  const id = runId();
  const path = capturesOf(id);
  const payloads = [random.bytes(700), random.bytes(300), random.bytes(40)] as const;
  const disk = await killedLife(id, payloads[0]);
  t.same(disk.fork("drop", random).paths(), [], "nothing has synced the name");
  const store = openCaptures(disk);
  const file = store.file(id, "capture", payloads[0].length);
  for (const payload of payloads.slice(1)) {
    file.append(payload);
    await file.makeDurable();
    const stored = Buffer.concat(payloads.slice(0, payloads.indexOf(payload) + 1));
    const after = disk.fork("drop", random);
    t.ok(
      after.has(path) && stored.equals(after.bytesOf(path)),
      "all that was acknowledged is there after the power cut",
    );
  }
  await store.close();
});

t.test("so it is where the folder of the month is in the cache only, too", async (t) => {
  const disk = await createCaptureDisk();
  const id = runId();
  const path = capturesOf(id);
  // By a process that was killed before it synced anything.
  await disk.makeDirectory(path.slice(0, path.lastIndexOf("/")));
  await (await disk.open(path, "create")).write(random.bytes(10), 0);
  const restarted = disk.kill();
  const file = openCaptures(restarted).file(id, "capture", 10);
  file.append(random.bytes(20));
  await file.makeDurable();
  const after = restarted.fork("drop", random);
  t.ok(after.has(path) && after.bytesOf(path).length === 30);
});

t.test("a file that was deleted while the service was stopped is made anew with a durable name", async (t) => {
  const id = runId();
  const path = capturesOf(id);
  const disk = await createCaptureDisk();
  const first = openCaptures(disk);
  first.file(id, "capture", 0).append(random.bytes(100));
  await first.file(id, "capture", 0).makeDurable();
  await first.close();
  const stopped = disk.kill();
  stopped.removeFile(path);
  const file = openCaptures(stopped).file(id, "capture", 100);
  const extent = file.append(random.bytes(50));
  await file.makeDurable();
  const after = stopped.fork("drop", random);
  t.ok(after.has(path), "it is there after a power cut");
  t.same(after.has(path) && (await verifyExtents(after, path, [extent])), [], "with what was acknowledged since");
});

t.test("names are synced once: those that were there with their month, each new one by itself", async (t) => {
  const before = runId();
  const disk = await killedLife(before, random.bytes(10));
  const store = openCaptures(disk, { maximumOpenFiles: 1 });
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

t.test("a file that its run lets go of while it is being made durable is not opened again", async (t) => {
  const disk = await createCaptureDisk();
  const store = openCaptures(disk);
  let opened = 0;
  let closed = 0;
  let letSync = (): void => {};
  const maySync = new Promise<void>((resolve) => {
    letSync = resolve;
  });
  watchOpened(disk, (file) => {
    const { close, datasync } = file;
    opened++;
    file.datasync = async () => {
      await maySync;
      await datasync();
    };
    file.close = async () => {
      closed++;
      await close();
    };
  });
  const id = runId();
  const file = store.file(id, "capture", 0);
  file.append(random.bytes(1_000));
  store.finish(id);
  await eventLoopTurn();
  const durable = file.makeDurable();
  await eventLoopTurn();
  letSync();
  await durable;
  // `close` would close it too; what counts is that nothing was left for it.
  await eventLoopTurn();
  t.equal(opened, 1);
  t.equal(closed, 1, "retention can have its room back");
  await store.close();
});
