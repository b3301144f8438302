import { setImmediate as nextTurn } from "node:timers/promises";
import t, { type Test } from "tap";
import { runResponse } from "../../../core/run/run-response.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { View } from "../../../storage/view/view.js";
import { CAPTURED_BYTES, type KeptRun, runWithCaptures } from "../../helpers/captures/kept-captures.js";
import { RoomFileSystem } from "../../helpers/disk/room-file-system.js";
import { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { turns } from "../../helpers/disk/slow-disk.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import type { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { recorderDisk } from "../../helpers/recorder/recorder-disk.js";
import {
  type HarnessFront,
  type HarnessOptions,
  RecorderHarness,
  temporaryDirectory,
} from "../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { longOnly } from "../../helpers/test-size.js";

const SEGMENT_BYTES = 16 * 1024;
const BASE_URL = "http://cell";
const COMPACTION_INTERVAL_MS = 30_000;

/** A front that keeps a view and reads the log, as the service's own does. */
class Front implements HarnessFront {
  readonly reader: LogReader;
  readonly view: View;
  holds = true;

  constructor(directory: string) {
    this.reader = new LogReader({ fileSystem: nodeFileSystem, directory: `${directory}/meta` });
    // Nothing stays in a cache: each answer is read.
    this.view = new View({ reader: this.reader, summaryCacheBytes: 1, runCacheBytes: 1 });
  }

  batch: HarnessFront["batch"] = (batch) => this.view.applyBatch(batch);

  async hold(segmentBase: number): Promise<void> {
    if (!this.holds) throw new Error("no file can be opened");
    await this.reader.hold(segmentBase);
  }

  moved: HarnessFront["moved"] = async (moves) => {
    this.reader.replaced(moves.segmentBase);
    await this.view.applyMoves(moves, async () => {});
    this.reader.letGo(moves.segmentBase);
  };

  async answers(runs: readonly KeptRun[]): Promise<string[]> {
    const { total, runs: entries } = await this.view.listRuns({ offset: 0, limit: 1_000 }, BASE_URL);
    const documents = await Promise.all(runs.map(async ({ id }) => runResponse((await this.view.run(id))!, BASE_URL)));
    return [String(total), ...entries.map((json) => Buffer.from(json).toString()), JSON.stringify(documents)];
  }
}

interface Running {
  recorder: RecorderHarness;
  front: Front;
  raw: RawProducer;
}

async function start(t: Test, directory: string, options: HarnessOptions = {}): Promise<Running> {
  const front = new Front(directory);
  const recorder = await RecorderHarness.start(t, directory, { segmentBytes: SEGMENT_BYTES, front, ...options });
  front.view.finishOpening();
  t.teardown(() => front.reader.close());
  return { recorder, front, raw: await recorder.connect("controller") };
}

/** Of captures: of three runs. */
const RETAIN_BYTES = 200;

/** Runs with captures that have ended: several segments of them. */
async function endedRuns({ recorder, raw }: Running, count: number): Promise<KeptRun[]> {
  const runs: KeptRun[] = [];
  for (let n = 0; n < count; n++) {
    const run = await runWithCaptures(raw, n);
    for (let k = 0; k < 8; k++) {
      const data = { k, padding: "x".repeat(200) };
      await raw.accept({ type: "event.add", run_id: run.id, event_type: "e", data });
    }
    await raw.accept({ type: "run.finish", id: run.id });
    await recorder.until(() => recorder.run(run.id).status === "completed");
    runs.push(run);
  }
  return runs;
}

const linesOf = (recorder: RecorderHarness, message: string) =>
  recorder.lines.filter((line) => line.message === message).map(({ fields }) => fields);
const compacted = (recorder: RecorderHarness) => linesOf(recorder, "compacted a segment of the log");

/** Again and again: an attempt that is under way sets the time of the next one only when it ends. */
async function passUntil(running: Running, condition: () => boolean): Promise<void> {
  while (!condition()) {
    running.recorder.timers.advance(COMPACTION_INTERVAL_MS);
    await nextTurn();
  }
  running.raw = await running.recorder.connect("controller");
}

/** Lets compaction's time come; silent connections end by it too. */
async function pass(running: Running): Promise<void> {
  running.recorder.timers.advance(COMPACTION_INTERVAL_MS);
  running.raw = await running.recorder.connect("controller");
}

t.test(
  "ended runs: their deltas go, every answer stays, live and after a start, and check finds all captures",
  async (t) => {
    const directory = temporaryDirectory(t);
    const running = await start(t, directory, { retention: { days: null, bytes: RETAIN_BYTES } });
    const { recorder, front } = running;
    const active = await runWithCaptures(running.raw, 250);
    const runs = await endedRuns(running, 12);
    await recorder.until(() => compacted(recorder).length > 1);
    t.match(compacted(recorder)[0], { segment: /^\d{16}\.seg$/, records_dropped: Number });
    for (const fields of compacted(recorder))
      t.ok((fields.bytes_after as number) < 0.75 * (fields.bytes_before as number));
    t.match(recorder.row("log"), { status: "healthy", detail: null });
    const all = [active, ...runs];
    // A tombstone that comes while a run is read makes another of it, and a stop before its file is unlinked leaves the file.
    const removed = runs.length - Math.floor(RETAIN_BYTES / CAPTURED_BYTES);
    await recorder.until(() => recorder.counters?.retention.files === removed);
    // The view answers as it would have answered without compaction: as the harness folded it from the records alone.
    for (const { id } of all) t.same(await front.view.run(id), recorder.run(id)) || t.bailout();
    await recorder.stop();
    const before = await front.answers(all);
    t.match(await checkDirectory(directory), { ok: true, findings: { length: 0 } });
    const again = await start(t, directory);
    t.match(again.recorder.ready.recovery, { findings: { length: 0 }, corruptionCount: 0 });
    t.same(await again.front.answers(all), before);
    // It goes on where it was: the active run takes more, and no id comes again.
    await again.raw.accept({ type: "event.add", run_id: active.id, event_type: "later", data: {} });
    t.match(await again.raw.deliver({ type: "run.start", id: runs[0]!.id }), { code: "illegal_transition" });
    await again.recorder.stop();
    t.match(await checkDirectory(directory), { ok: true, findings: { length: 0 } });
  },
);

/** Of 256 KiB each: compaction gives way between two. */
const SLICES = 16;
/** Of the event loop, for one sync of the log: more than all slices would take that do not wait for it. */
const SYNC_TURNS = 10 * SLICES;

/** This disk, on which syncs of segments take long while `isSlow` says so. */
function slowSyncs(disk: FileSystem, isSlow: () => boolean): FileSystem {
  return {
    ...disk,
    open: async (path, mode) => {
      const file = await disk.open(path, mode);
      const datasync = async (): Promise<void> => {
        if (isSlow() && path.endsWith(".seg")) await turns(SYNC_TURNS);
        await file.datasync();
      };
      return { ...file, datasync };
    },
  };
}

t.test(
  "a message that comes while a segment is written anew is acknowledged before the segment is whole",
  longOnly,
  async (t) => {
    const directory = temporaryDirectory(t);
    // In memory, where no turn of the event loop goes by but those that compaction gives away.
    const disk = new SimulatedDisk();
    let isBegun = false;
    const fileSystem = slowSyncs(recorderDisk(disk), () => isBegun);
    const segmentBytes = SLICES * 256 * 1024;
    const recorder = await RecorderHarness.start(t, directory, { fileSystem, segmentBytes });
    const camera = await recorder.connect("camera");
    let isAcknowledged = false;
    let wasAcknowledged: boolean | undefined;
    disk.onOperation = ({ kind, path }) => {
      if (path !== `${directory}/meta/0000000000000001.seg.tmp`) return undefined;
      if (kind === "create") {
        isBegun = true;
        camera.message({ type: "component.put", key: "camera", status: "healthy" });
      }
      // The only one: less is written than compaction leaves unsynced.
      if (kind === "datasync") wasAcknowledged = isAcknowledged;
      return undefined;
    };
    const acknowledged = camera.next().then((frame) => {
      isAcknowledged = true;
      return frame;
    });
    const raw = await recorder.connect("controller");
    await raw.accept(programPut());
    const data = { padding: "x".repeat(100_000) };
    while (!isBegun) {
      const id = nextId();
      await raw.accept({ type: "run.create", id, program_id: PROGRAM_ID });
      await raw.accept({ type: "run.start", id });
      await raw.accept({ type: "event.add", run_id: id, event_type: "e", data });
      await raw.accept({ type: "run.finish", id });
    }
    t.match(await acknowledged, { kind: "ack", sequence: 1 });
    await recorder.until(() => compacted(recorder).length > 0);
    t.ok((compacted(recorder)[0]?.bytes_before as number) >= segmentBytes);
    t.equal(wasAcknowledged, true);
  },
);

t.test("a front that cannot hold the old file: nothing moves, and it is tried again later", async (t) => {
  const directory = temporaryDirectory(t);
  const running = await start(t, directory);
  const { recorder, front } = running;
  front.holds = false;
  await endedRuns(running, 6);
  await recorder.until(() => linesOf(recorder, "compaction waits").length + compacted(recorder).length > 0);
  t.match(linesOf(recorder, "compaction waits")[0], { cause: /do not hold/ });
  t.same(recorder.moves, []);
  front.holds = true;
  await passUntil(running, () => compacted(recorder).length > 0);
});

/** The machine's file system on which the sync of this file fails, once. */
function failing(name: string): FileSystem {
  let isLeft = true;
  return {
    ...nodeFileSystem,
    open: async (path, mode) => {
      const file = await nodeFileSystem.open(path, mode);
      return {
        write: (bytes, position) => file.write(bytes, position),
        read: (into, position) => file.read(into, position),
        readSync: (into, position) => file.readSync(into, position),
        datasync: async () => {
          if (isLeft && path.endsWith(name)) {
            isLeft = false;
            throw new FileSystemError("EIO", "fdatasync", path);
          }
          await file.datasync();
        },
        truncate: (sizeBytes) => file.truncate(sizeBytes),
        size: () => file.size(),
        identity: () => file.identity(),
        close: () => file.close(),
        closeSync: () => file.closeSync(),
      };
    },
  };
}

t.test("a failed sync ends compaction until a restart, health and log say so, and the log goes on", async (t) => {
  const directory = temporaryDirectory(t);
  // The segment's first file is written under the same name.
  await (await start(t, directory)).recorder.stop();
  const last = await start(t, directory, { fileSystem: failing("0000000000000001.seg.tmp") });
  const runs = await endedRuns(last, 6);
  const { recorder } = last;
  await recorder.until(() => recorder.lines.some(({ level }) => level === "error"));
  const line = recorder.lines.find(({ level }) => level === "error");
  t.match(line, { message: /compaction has ended until a restart/, fields: { segment: "0000000000000001.seg" } });
  t.match(recorder.row("log"), {
    status: "degraded",
    detail: /^since .*compaction has ended until a restart: fdatasync/,
  });
  await pass(last);
  await endedRuns(last, 4);
  t.same(compacted(recorder), []);
  await recorder.stop();
  const again = await start(t, directory);
  await again.recorder.until(() => compacted(again.recorder).length > 0);
  t.equal((await again.front.view.run(runs[0]!.id))?.status, "completed");
});

const FIRST_SEGMENT = "0000000000000001.seg";

/** The machine's file system, which does to the reading of the first segment, and to the listing of the folder, what a test wants. */
class FailingReads {
  /** The operation on the segment's own file that fails, and its code. */
  fault: { operation: "open" | "fstat" | "stat" | "read"; code: string } | null = null;
  /** A byte of what is read changes. */
  flips = false;
  /** Listing the log's folder fails with this code. */
  listingCode: string | null = null;

  readonly fileSystem: FileSystem = {
    ...nodeFileSystem,
    open: async (path, mode) => {
      if (!path.endsWith(FIRST_SEGMENT) || mode !== "read") return nodeFileSystem.open(path, mode);
      this.#fail("open", path);
      const file = await nodeFileSystem.open(path, mode);
      const read = file.read.bind(file);
      const size = file.size.bind(file);
      file.read = async (into, position) => {
        this.#fail("read", path);
        const count = await read(into, position);
        if (this.flips) into[count >> 1]! ^= 1;
        return count;
      };
      file.size = async () => {
        this.#fail("fstat", path);
        return size();
      };
      return file;
    },
    sizeOf: async (path) => {
      if (path.endsWith(FIRST_SEGMENT)) this.#fail("stat", path);
      return nodeFileSystem.sizeOf(path);
    },
    readDirectory: async (path) => {
      const code = path.endsWith("/meta") ? this.listingCode : null;
      if (code !== null) throw new FileSystemError(code, "readdir", path);
      return nodeFileSystem.readDirectory(path);
    },
  };

  #fail(operation: string, path: string): void {
    if (this.fault?.operation === operation) throw new FileSystemError(this.fault.code, operation, path);
  }
}

for (const [operation, code] of [
  ["open", "EIO"],
  ["open", "EACCES"],
  ["fstat", "EIO"],
  ["stat", "EIO"],
  ["read", "ENOMEM"],
] as const) {
  t.test(
    `a segment of which ${operation} fails (${code}) holds up no other, and its time comes again`,
    longOnly,
    async (t) => {
      const reads = new FailingReads();
      const running = await start(t, temporaryDirectory(t), { fileSystem: reads.fileSystem });
      const { recorder } = running;
      reads.fault = { operation, code };
      await endedRuns(running, 8);
      const isOfFirst = ({ segment }: { [name: string]: unknown }) => segment === FIRST_SEGMENT;
      const isTold = () => recorder.row("log").status === "degraded";
      await recorder.until(() => isTold() && compacted(recorder).length > 0);
      t.match(recorder.row("log"), {
        status: "degraded",
        detail: new RegExp(
          `^since \\d{4}-\\S+Z: segment ${FIRST_SEGMENT} is not compacted as long as it cannot be read: ${operation} .*: ${code}$`,
        ),
      });
      const before = recorder.row("log").detail;
      await pass(running);
      await endedRuns(running, 4);
      t.notOk(compacted(recorder).some(isOfFirst));
      t.equal(recorder.row("log").detail, before, "since when it began");
      t.equal(linesOf(recorder, "compaction leaves a segment alone as long as it cannot be read").length, 1);
      t.same(recorder.readDamages, []);
      reads.fault = null;
      await passUntil(running, () => compacted(recorder).some(isOfFirst));
      await recorder.until(() => !isTold());
      t.match(recorder.row("log"), { status: "healthy", detail: null });
      t.equal(linesOf(recorder, "compaction leaves a segment alone no longer").length, 1);
    },
  );
}

for (const [what, harm, message] of [
  ["is damaged", { flips: true }, /^segment 0000000000000001\.seg, offset \d+: /],
  [
    "the disk does not give",
    { fault: { operation: "read", code: "EUCLEAN" } },
    /0000000000000001\.seg: the disk does not give it \(EUCLEAN\)$/,
  ],
] as const) {
  t.test(
    `a segment that ${what} is left alone until a restart, and told as damage that a read found`,
    longOnly,
    async (t) => {
      const reads = new FailingReads();
      const running = await start(t, temporaryDirectory(t), { fileSystem: reads.fileSystem });
      const { recorder } = running;
      Object.assign(reads, harm);
      await endedRuns(running, 8);
      const leaves = () => linesOf(recorder, "compaction leaves a segment alone");
      await recorder.until(() => leaves().length > 0 && compacted(recorder).length > 0);
      Object.assign(reads, { flips: false, fault: null });
      await pass(running);
      await endedRuns(running, 4);
      t.match(recorder.readDamages, listOf({ code: "record_damaged", message }));
      t.match(leaves(), listOf({ segment: FIRST_SEGMENT }));
      t.notOk(compacted(recorder).some(({ segment }) => segment === FIRST_SEGMENT));
      t.match(recorder.row("log"), { status: "healthy" }, "the front adds what it is told");
    },
  );
}

t.test(
  "a segment that could not be opened, and then is damaged, is not told to be taken up again",
  longOnly,
  async (t) => {
    const reads = new FailingReads();
    const running = await start(t, temporaryDirectory(t), { fileSystem: reads.fileSystem });
    const { recorder } = running;
    reads.fault = { operation: "open", code: "EIO" };
    await endedRuns(running, 8);
    await recorder.until(() => recorder.row("log").status === "degraded");
    Object.assign(reads, { flips: true, fault: null });
    await passUntil(running, () => recorder.readDamages.length > 0);
    await recorder.until(() => recorder.row("log").status === "healthy");
    Object.assign(reads, { flips: false });
    await pass(running);
    await endedRuns(running, 4);
    t.same(linesOf(recorder, "compaction leaves a segment alone no longer"), []);
    t.notOk(compacted(recorder).some(({ segment }) => segment === FIRST_SEGMENT));
  },
);

t.test("health says that the segments cannot be looked for, and since when, until they can", async (t) => {
  const reads = new FailingReads();
  const running = await start(t, temporaryDirectory(t), { fileSystem: reads.fileSystem });
  const { recorder } = running;
  reads.listingCode = "EIO";
  await passUntil(running, () => recorder.row("log").status === "degraded");
  const { detail } = recorder.row("log");
  t.match(detail, /^since \d{4}-\S+Z: compaction cannot go on, and tries again: readdir .*meta: EIO$/);
  await pass(running);
  reads.listingCode = null;
  await passUntil(running, () => recorder.row("log").status === "healthy");
  t.equal(linesOf(recorder, "compaction could not look for segments, and it is tried again later").length, 1);
});

t.test("while the disk has little room nothing is compacted, and once it has, it is", async (t) => {
  const directory = temporaryDirectory(t);
  const room = new RoomFileSystem();
  const running = await start(t, directory, { fileSystem: room.fileSystem });
  const { recorder } = running;
  room.freeBytes = 2 ** 29;
  await pass(running);
  await recorder.until(() => recorder.row("disk").status === "degraded");
  const raw = running.raw;
  const ids = Array.from({ length: 40 }, (_, n) => n);
  for (const n of ids) {
    const data = { n, padding: "x".repeat(900) };
    await raw.accept({
      type: "component.put",
      key: "camera",
      status: "healthy",
      detail: JSON.stringify(data).slice(0, 500),
    });
  }
  await pass(running);
  t.same(compacted(recorder), []);
  room.freeBytes = 2 ** 40;
  await pass(running);
  await recorder.until(() => recorder.row("disk").status === "healthy");
  await passUntil(running, () => compacted(recorder).length > 0);
  t.equal(running.front.view.components().length, 1);
});
