import t from "tap";
import type { Extent } from "../../../core/capture/capture.js";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { verifyExtents } from "../../../storage/captures/capture-reader.js";
import { CaptureStore } from "../../../storage/captures/capture-store.js";
import { DiskRoom } from "../../../workers/recorder/upkeep/disk-room.js";
import type { DiskFault, DiskOperation, SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";
import { createDisk, META, type OpenedLog, openLog, recordOf, until } from "../../helpers/store/log-harness.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const random = createRandom(SEED);
/** Small, so that the workload rotates several times. */
const SEGMENT_BYTES = 1_200;
const CAPTURES = "/data/captures";
const RUN_IDS = [Date.UTC(2026, 9, 5), Date.UTC(2026, 10, 20)].map((timeMs) =>
  generateUuidV7(timeMs, random.bytes(10)),
);
const REPEATABLE: ReadonlySet<DiskOperation["kind"]> = new Set(["write", "create", "mkdir", "truncate", "rename"]);

/** A log and capture files on one disk, and the room that both wait for. */
class Store {
  readonly timers = new ManualTimers();
  readonly room: DiskRoom;
  readonly captures: CaptureStore;
  readonly acknowledged: string[] = [];
  readonly appended: string[] = [];
  /** With the bytes that records name: of acknowledged records, and of all. */
  readonly extents = new Map<string, Extent[]>();
  readonly acknowledgedExtents = new Map<string, Extent[]>();
  #opened: OpenedLog | undefined;

  constructor(disk: SimulatedDisk, ballastBytes = 0) {
    this.captures = new CaptureStore({ fileSystem: disk, capturesPath: CAPTURES, room: this.#roomOf(() => this.room) });
    this.room = new DiskRoom({
      fileSystem: disk,
      directory: "/data",
      timers: this.timers,
      wallUs: () => 1_790_000_000_000_000,
      thresholds: { low: { bytes: 0 }, critical: { bytes: 0 }, ballastBytes },
      pendingBytes: () => 0,
      onChange: () => {},
      report: () => {},
    });
  }

  static async open(disk: SimulatedDisk, ballastBytes = 0): Promise<Store> {
    const store = new Store(disk, ballastBytes);
    await store.room.prepare();
    store.#opened = await openLog(disk, { segmentBytes: SEGMENT_BYTES, room: store.room });
    await store.room.start();
    return store;
  }

  get log() {
    return this.#opened!.log;
  }

  get names(): string[] {
    return this.#opened!.names;
  }

  get seen() {
    return this.#opened!.seen;
  }

  /** The workload: 20 records of some sizes, half of them with capture bytes of two runs, in groups. Rejects when the store fails. */
  async work(): Promise<void> {
    const acknowledgements: Promise<void>[] = [];
    for (let at = 0; at < 20; at++) {
      const name = `r${at}`;
      let needs = {};
      let extent: [string, Extent] | undefined;
      if (at % 2 === 0) {
        const file = this.captures.file(RUN_IDS[(at / 2) % 2]!, "capture", 0);
        extent = [file.path, file.append(new Uint8Array(90 + 10 * at).fill(at + 1))];
        needs = { needs: file };
        note(this.extents, ...extent);
      }
      const sequence = this.log.append({ ...recordOf(name, 40 + 7 * at), ...needs });
      this.appended.push(name);
      const acknowledged = this.log.whenCommitted(sequence).then(() => {
        this.acknowledged.push(name);
        if (extent !== undefined) note(this.acknowledgedExtents, ...extent);
      });
      acknowledged.catch(() => undefined);
      acknowledgements.push(acknowledged);
      if (at % 3 === 2) await Promise.all(acknowledgements);
    }
    await Promise.all(acknowledgements);
  }

  async close(): Promise<void> {
    await this.log.close();
    await this.captures.close();
    await this.room.stop();
  }

  /** Lets time pass while something waits for room, until the promise is settled. */
  async drive(promise: Promise<void>): Promise<"done" | "failed"> {
    let outcome: "done" | "failed" | undefined;
    promise.then(
      () => {
        outcome = "done";
      },
      () => {
        outcome = "failed";
      },
    );
    while (outcome === undefined) {
      if (this.isWaiting) this.timers.advance(1_000);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    return outcome;
  }

  get isWaiting(): boolean {
    return this.room.row.status === "down";
  }

  #roomOf(room: () => DiskRoom) {
    return {
      attempt: <T>(operation: () => Promise<T>): Promise<T> => room().attempt(operation),
      get isOver() {
        return room().isOver;
      },
    };
  }
}

function note(extents: Map<string, Extent[]>, path: string, extent: Extent): void {
  extents.set(path, [...(extents.get(path) ?? []), extent]);
}

/** Folders that a full disk would not keep the service from starting with; the folders of months come with the work. */
async function createStoreDisk(): Promise<SimulatedDisk> {
  const disk = await createDisk();
  await disk.makeDirectory(CAPTURES);
  await disk.syncDirectory("/data");
  return disk;
}

async function damagedExtents(disk: SimulatedDisk, extents: ReadonlyMap<string, Extent[]>): Promise<number> {
  let damaged = 0;
  for (const [path, ofPath] of extents) damaged += (await verifyExtents(disk, path, ofPath)).length;
  return damaged;
}

/** What a recovery of the disk finds is a prefix of what was appended, with everything that was acknowledged. */
async function lostAfter(disk: SimulatedDisk, store: Store): Promise<number> {
  const { names, log } = await openLog(disk, { segmentBytes: SEGMENT_BYTES });
  const there = new Set(names);
  let lost = store.acknowledged.filter((name) => !there.has(name)).length;
  if (names.join() !== store.appended.slice(0, names.length).join()) lost++;
  if (log.recovery.corruptionCount > 0) lost++;
  return lost + (await damagedExtents(disk, store.acknowledgedExtents));
}

async function neededBytes(): Promise<{ before: number; after: number }> {
  const disk = await createStoreDisk();
  const store = await Store.open(disk);
  const before = disk.usedBytes;
  await store.work();
  await store.close();
  return { before, after: disk.usedBytes };
}

t.test(
  "a disk that is full after any number of bytes: nothing is lost, and all resumes when there is room",
  async (t) => {
    t.comment(`seed ${SEED}`);
    const { before, after } = await neededBytes();
    let limits = 0;
    let waited = 0;
    let resumed = 0;
    let lost = 0;
    let crashes = 0;
    let early = 0;
    for (let limit = before; limit < after; limit += 7) {
      limits++;
      const disk = await createStoreDisk();
      const store = await Store.open(disk);
      disk.limitBytes = limit;
      let isDone = false;
      const working = store.work().finally(() => {
        isDone = true;
      });
      await until(() => isDone || store.isWaiting, "done or waiting");
      if (store.isWaiting) {
        waited++;
        const acknowledged = store.acknowledged.length;
        // Looks that find no more room change nothing.
        for (let look = 0; look < 3; look++) {
          store.timers.advance(1_000);
          for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
        }
        if (store.acknowledged.length !== acknowledged || store.log.failure !== null) early++;
        // What a power cut at this moment would leave.
        for (const mode of ["drop", "tear", "keep"] as const) {
          crashes++;
          const after = disk.fork(mode, random);
          after.limitBytes = Number.POSITIVE_INFINITY;
          lost += await lostAfter(after, store);
        }
        disk.limitBytes = Number.POSITIVE_INFINITY;
        store.timers.advance(1_000);
        await until(() => isDone, `resumed at ${limit}`);
      }
      await working;
      disk.limitBytes = Number.POSITIVE_INFINITY;
      resumed += store.acknowledged.length === 20 && store.names.length === 20 ? 1 : 0;
      await store.close();
      lost += await damagedExtents(disk, store.extents);
      lost += await lostAfter(disk.crash("drop", random), store);
    }
    t.ok(waited > 100, `${waited} waited`);
    t.same({ lost, early, unresumed: limits - resumed }, { lost: 0, early: 0, unresumed: 0 });
    t.comment(
      `${limits} limits, ${waited} full disks, ${crashes} crashes while full: ${lost} lost, ${resumed} resumed all`,
    );
  },
);

async function operationsOfWork(): Promise<DiskOperation[]> {
  const disk = await createStoreDisk();
  const store = await Store.open(disk);
  const operations: DiskOperation[] = [];
  disk.onOperation = (operation) => {
    operations.push(operation);
    return undefined;
  };
  await store.work();
  await store.close();
  return operations;
}

t.test("after a full disk at any operation the store resumes and loses nothing; a failed sync ends it", async (t) => {
  const operations = await operationsOfWork();
  const kinds = new Set(operations.map(({ kind }) => kind));
  for (const kind of ["write", "create", "mkdir", "rename", "datasync", "syncDirectory"] as const)
    t.ok(kinds.has(kind), kind);
  let faults = 0;
  let resumed = 0;
  let final = 0;
  let lost = 0;
  let after = 0;
  for (const code of ["ENOSPC", "EDQUOT", "EFBIG"]) {
    for (const times of [1, 3]) {
      for (const [at, { kind }] of operations.entries()) {
        faults++;
        const disk = await createStoreDisk();
        const store = await Store.open(disk);
        const first = disk.operations;
        let struck = 0;
        let path = "";
        let acknowledgedAtFault = 0;
        disk.onOperation = (operation): DiskFault | undefined => {
          if (struck === 0 && operation.number - first !== at) return undefined;
          if (struck > 0 && (struck >= times || operation.kind !== kind || operation.path !== path)) return undefined;
          struck++;
          path = operation.path;
          acknowledgedAtFault = store.acknowledged.length;
          // A write may get some of its bytes down first.
          return operation.kind === "write" && struck === 1 && times > 1 ? { short: 5 } : { error: code };
        };
        const outcome = await store.drive(store.work().then(() => store.close()));
        if (REPEATABLE.has(kind)) {
          if (outcome === "done" && store.acknowledged.length === 20 && store.names.length === 20) resumed++;
          lost += await damagedExtents(disk, store.extents);
        } else {
          if (outcome === "failed" && store.log.failure !== null) final++;
          after += store.acknowledged.length - acknowledgedAtFault;
        }
        disk.onOperation = () => undefined;
        lost += await lostAfter(disk.crash("drop", random), store);
      }
    }
  }
  const repeatable = operations.filter(({ kind }) => REPEATABLE.has(kind)).length * 6;
  t.same({ lost, resumed, after }, { lost: 0, resumed: repeatable, after: 0 });
  t.equal(final, faults - repeatable);
  t.comment(
    `${faults} faults at ${operations.length} operations: ${lost} lost, ${resumed} of ${repeatable} resumed all, ` +
      `${final} failed syncs final with ${after} acknowledged after`,
  );
});

t.test("the group that waited is written at its place, with its sequence numbers, as it was", async (t) => {
  const disk = await createStoreDisk();
  const store = await Store.open(disk);
  const { log, room, seen, timers } = store;
  await log.whenCommitted(log.append(recordOf("a")));
  const path = disk.paths().find((name) => name.startsWith(META))!;
  const good = disk.bytesOf(path).length;
  disk.limitBytes = disk.usedBytes + 100;
  const sequences = ["b", "c", "d"].map((name) => log.append(recordOf(name)));
  await until(() => room.level === "critical", "waiting");
  t.match(room.row, { status: "down", detail: /since 2026.*no room \(write .*ENOSPC\), all messages wait/ });
  t.equal(disk.bytesOf(path).length, good, "what the refused write left is cut");
  const later = log.append(recordOf("e"));
  disk.limitBytes = Number.POSITIVE_INFINITY;
  timers.advance(1_000);
  await log.whenCommitted(later);
  t.same(
    seen.map(({ sequence, name }) => [sequence, name]),
    [[1, "a"], ...["b", "c", "d"].map((name, at) => [sequences[at], name]), [later, "e"]],
  );
  t.equal(seen[1]?.location.offset, good);
  await until(() => room.level === "enough", "room again");
  await store.close();
  t.same((await openLog(disk)).names, ["a", "b", "c", "d", "e"]);
});

t.test("a sync that fails while a group waits for room is final: the group is not written any more", async (t) => {
  const disk = await createStoreDisk();
  const store = await Store.open(disk);
  const file = store.captures.file(RUN_IDS[0]!, "capture", 0);
  const other = store.captures.file(RUN_IDS[1]!, "capture", 0);
  disk.onOperation = ({ kind, path }) => (kind === "write" && path === file.path ? { error: "ENOSPC" } : undefined);
  file.append(new Uint8Array(10));
  await until(() => store.isWaiting, "waiting");
  let writes = 0;
  disk.onOperation = ({ kind, path }) => {
    if (kind === "write" && path === file.path) writes++;
    return kind === "datasync" ? { error: "EIO" } : undefined;
  };
  other.append(new Uint8Array(10));
  await t.rejects(other.makeDurable(), { code: "capture_failed", message: /EIO/ });
  const durable = file.makeDurable();
  store.timers.advance(1_000);
  await t.rejects(durable, { code: "capture_failed", message: /EIO/ });
  t.equal(writes, 0);
  await store.close();
});

t.test("the ballast gives its room back, once, and is there again when there is room", async (t) => {
  const disk = await createStoreDisk();
  const store = await Store.open(disk, 5_000);
  const path = "/data/ballast.bin";
  await until(() => disk.paths().includes(path), "the ballast");
  t.equal(disk.bytesOf(path).length, 5_000);
  disk.limitBytes = disk.usedBytes + 10;
  await store.log.whenCommitted(store.log.append(recordOf("tombstone", 1_000)));
  t.notOk(disk.paths().includes(path), "given back");
  const last = store.log.append(recordOf("more", 20_000));
  await until(() => store.isWaiting, "waiting");
  t.equal(store.log.committedSequence, last - 1);
  disk.limitBytes = Number.POSITIVE_INFINITY;
  store.timers.advance(1_000);
  await store.log.whenCommitted(last);
  for (let look = 0; !disk.paths().includes(path); look++) {
    if (look === 100) throw new Error("never: the ballast again");
    store.timers.advance(5_000);
    for (let turn = 0; turn < 10; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  const after = disk.fork("drop", random);
  t.equal(after.bytesOf(path).length, 5_000, "durably");
  t.same((await openLog(after)).names, ["tombstone", "more"]);
  await store.close();
});

t.test("a ballast that the disk does not let go of ends nothing: the write waits for room", async (t) => {
  const disk = await createStoreDisk();
  const store = await Store.open(disk, 5_000);
  await until(() => disk.paths().includes("/data/ballast.bin"), "the ballast");
  disk.limitBytes = disk.usedBytes + 10;
  disk.onOperation = ({ kind }) => (kind === "unlink" ? { error: "EIO" } : undefined);
  const sequence = store.log.append(recordOf("kept", 1_000));
  await until(() => store.isWaiting, "waiting");
  t.equal(store.log.failure, null);
  disk.limitBytes = Number.POSITIVE_INFINITY;
  disk.onOperation = () => undefined;
  store.timers.advance(1_000);
  await store.log.whenCommitted(sequence);
  await store.close();
});

t.test("opening on a full disk takes the room of the ballast, and says so when that is not enough", async (t) => {
  const disk = await createStoreDisk();
  const store = await Store.open(disk, 5_000);
  await store.log.whenCommitted(store.log.append(recordOf("a")));
  await until(() => disk.paths().includes("/data/ballast.bin"), "the ballast");
  const left = disk.kill();
  // After what recovery writes anew, there must be no room to make the ballast again.
  left.limitBytes = left.usedBytes - 200;
  const second = await Store.open(left, 5_000);
  t.same(second.names, ["a"]);
  t.notOk(left.paths().includes("/data/ballast.bin"));
  await second.log.whenCommitted(second.log.append(recordOf("b")));
  const full = left.kill();
  full.limitBytes = full.usedBytes - 200;
  await t.rejects(Store.open(full, 5_000), { code: "ENOSPC" });
  full.limitBytes = Number.POSITIVE_INFINITY;
  t.same((await Store.open(full, 5_000)).names, ["a", "b"]);
});
