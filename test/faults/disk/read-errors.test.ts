import { isDeepStrictEqual } from "node:util";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { CaptureReader, verifyExtents } from "../../../storage/captures/capture-reader.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { StoreFile } from "../../../storage/disk/file-system-interface.js";
import type { LogRecord } from "../../../storage/log/committed-batch.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { segmentName } from "../../../storage/log/segment.js";
import { type InspectedItem, inspectStore } from "../../../storage/repair/inspect-store.js";
import { runOf } from "../../../storage/repair/record-verifier.js";
import { readRun } from "../../../storage/view/read-run.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import {
  CAPTURES,
  contentOf,
  dataDirectory,
  failing,
  NAMES,
  someSegments,
  storeWithCaptures,
} from "../../helpers/disk/unreadable-store.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { listOf } from "../../helpers/list-of.js";
import { HintedStore } from "../../helpers/store/hinted-store.js";
import { appendEach, createDisk, META, openLog, type SeenRecord } from "../../helpers/store/log-harness.js";

t.test(
  "opening a log whose disk does not give some bytes: refused, nothing changed, and whole once it gives them",
  async (t) => {
    const { disk } = await someSegments();
    const before = contentOf(disk);
    let reads = 0;
    let wrong = 0;
    for (let failing = 0; ; failing++) {
      const attempt = disk.copy();
      let read = 0;
      attempt.onRead = () => (read++ === failing ? "EIO" : undefined);
      const outcome = await openLog(attempt, { segmentBytes: 600 }).catch((error: unknown) => error);
      if (read <= failing) break;
      reads++;
      if (!(outcome instanceof FileSystemError) || outcome.code !== "EIO") wrong++;
      attempt.onRead = () => undefined;
      const reopened = await openLog(attempt, { segmentBytes: 600 });
      if (reopened.names.join() !== NAMES.join() || reopened.log.recovery.corruptionCount > 0) wrong++;
    }
    t.equal(contentOf(disk), before);
    t.equal(wrong, 0);
    t.ok(reads > 5);
    t.comment(`EIO at each of ${reads} reads of recovery: ${wrong} taken for an end, 0 records lost`);
  },
);

t.test("single reads: a record that the disk does not give is damaged, its neighbours are read", async (t) => {
  const { disk, seen } = await someSegments();
  const bad = seen[4] as SeenRecord;
  const path = `${META}/${segmentName(bad.location.segmentBase)}`;
  disk.onRead = (read, position) => (read === path && position === bad.location.offset ? "EIO" : undefined);
  const reader = new LogReader({ fileSystem: disk, directory: META });
  const damage = { code: "record_damaged", message: /offset \d+: the disk cannot read these bytes \(EIO\)/ };
  for (const { name, location } of seen) {
    if (name === bad.name) {
      await t.rejects(reader.read(location), damage);
      await t.rejects(reader.readMany([location]), damage);
    } else {
      t.equal(Buffer.from((await reader.read(location)).index).toString(), name);
    }
  }
  reader.close();
  disk.onRead = () => "EIO";
  await t.rejects(new LogReader({ fileSystem: disk, directory: META }).read(bad.location), damage, "the header");
  disk.onRead = () => "EMFILE";
  const passing = new LogReader({ fileSystem: disk, directory: META }).read(bad.location);
  await t.rejects(passing, FileSystemError, "what may pass is no damage");
});

t.test("captures that the disk does not give are damaged, for who reads them", async (t) => {
  const { disk, paths, extents } = await storeWithCaptures();
  const reader = new CaptureReader({ fileSystem: disk });
  const path = `${CAPTURES}/${paths[0]}`;
  disk.onRead = (read, position) => (read === path && position >= 5_000 ? "EIO" : undefined);
  const chosen = await reader.openExtents(path, extents.slice(0, 2));
  t.equal((await chosen.read(0, 5_000)).length, 5_000);
  await t.rejects(chosen.read(4_000, 2_000), { code: "capture_damaged", message: /cannot read these bytes \(EIO\)/ });
  chosen.close();
  await t.rejects(verifyExtents(disk, path, extents.slice(1, 2)), { code: "EIO" });
});

async function inspected(fileSystem: SimulatedDisk, describe: (record: LogRecord) => unknown = () => null) {
  const items: InspectedItem[] = [];
  await inspectStore({
    ...{ dataDirectory, fileSystem, describe },
    onItem: (item) => {
      items.push(item);
    },
  });
  return {
    records: items.filter((item) => item.kind === "record"),
    findings: items.filter((item) => item.kind === "finding"),
    unreadable: items.filter((item) => item.kind === "unreadable"),
  };
}

/** A read that touches the block fails as a whole. */
function withoutBlock(disk: SimulatedDisk, path: string, offset: number): void {
  disk.onRead = (read, position, lengthBytes) =>
    read === path && position < offset + 4096 && position + lengthBytes > offset ? "EIO" : undefined;
}

t.test("inspect tells what the disk does not give, and prints the rest", async (t) => {
  const { disk, seen } = await someSegments();
  const path = `${META}/${segmentName(1)}`;
  disk.onRead = (read) => (read === path ? "EIO" : undefined);
  const { records, findings, unreadable } = await inspected(disk);
  t.match(unreadable, listOf({ path, offset: 0, message: /EIO/ }));
  t.ok(records.length > seen.length / 2);
  t.equal(findings.length, 1);
});

/** A copy of the disk that says nothing of that file's size once it is open. */
function withoutSizeOf(disk: SimulatedDisk, failingPath: string): SimulatedDisk {
  const copy = disk.copy();
  const open = copy.open.bind(copy);
  copy.open = async (path, mode) => {
    const file: StoreFile = await open(path, mode);
    if (path !== failingPath) return file;
    return { ...file, size: () => Promise.reject(new FileSystemError("EIO", "fstat", path)) };
  };
  return copy;
}

t.test("inspect goes on where a segment is not opened, a file has no size, or the folder is not listed", async (t) => {
  const { disk } = await someSegments();
  disk.setBytes(`${META}/${segmentName(99)}.tmp`, new Uint8Array(7));
  const whole = await inspected(disk);
  const segments = disk.paths().filter((path) => path.endsWith(".seg"));
  t.ok(segments.length > 2);
  for (const path of segments) {
    const others = whole.records.filter((item) => !path.endsWith(segmentName(item.location.segmentBase)));
    for (const failed of [failing(disk, "open", path, "EIO"), withoutSizeOf(disk, path)]) {
      const { records, findings, unreadable } = await inspected(failed);
      t.same(records, others, path);
      t.match(unreadable, listOf({ path, offset: 0, lengthBytes: 0, message: /EIO/ }));
      t.ok(findings.some(({ finding }) => finding.code === "segment_unreadable"));
    }
  }
  const path = `${META}/${segmentName(99)}.tmp`;
  const sizeless = await inspected(failing(disk, "sizeOf", path, "EIO"));
  t.same(sizeless.records, whole.records);
  t.match(sizeless.unreadable, listOf({ path }));
  const unlisted = await inspected(failing(disk, "readDirectory", META, "EIO"));
  t.match(unlisted, { records: { length: 0 }, findings: { length: 0 }, unreadable: listOf({ path: META }) });
});

t.test("records after bytes that the disk does not give are read, also where nothing proves them", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk, { durability: "none" });
  await appendEach(log, NAMES, 6_000);
  const killed = disk.kill();
  const path = `${META}/${segmentName(1)}`;
  const whole = await inspected(killed);
  t.equal(whole.findings.length, 0);
  const ends = whole.records.map(({ location }) => location.offset + location.length);
  let told = 0;
  for (let offset = 8_192; offset < ends.at(-1)!; offset += 4_096) {
    withoutBlock(killed, path, offset);
    const { records, findings, unreadable } = await inspected(killed);
    const outside = whole.records.filter(
      ({ location }) => location.offset >= offset + 4_096 || location.offset + location.length <= offset,
    );
    t.same(records, outside, `without ${offset}`);
    t.match(unreadable, listOf({ path, offset }));
    if (findings.some(({ finding }) => finding.code === "record_damaged")) told++;
  }
  t.ok(told > 10, `${told} blocks of records that others follow`);
});

t.test("a run is read from whatever the disk still gives, and what may be missing of it is told", async (t) => {
  const disk = await createDisk();
  const store = await HintedStore.open(disk);
  const history = new CellHistory(createRandom(3));
  for (let nth = 0; nth < 400; nth++) await store.append(history.next());
  await store.close();
  const { records } = await inspected(disk, runOf);
  const runs = [...history.runs.values()].filter((_, nth) => nth % 4 === 0);
  const read = (of: SimulatedDisk, runId: string) => readRun({ dataDirectory, fileSystem: of, runId });
  for (const run of runs) t.match(await read(disk, run.id), { run: { id: run.id }, loss: null });
  const segments = disk.paths().filter((path) => path.endsWith(".seg"));
  let [whole, told, missing, wrong] = [0, 0, 0, 0];
  const judge = async (of: SimulatedDisk, path: string, offset: number, endOffset: number): Promise<void> => {
    for (const run of runs) {
      const isHit = records.some(
        ({ content, location }) =>
          content === run.id &&
          path.endsWith(segmentName(location.segmentBase)) &&
          location.offset < endOffset &&
          location.offset + location.length > offset,
      );
      const found = await read(of, run.id).catch((error: Error) => error);
      if (found instanceof Error) {
        missing++;
        if (!isHit || !/the disk cannot read all of it: .*EIO/.test(found.message)) wrong++;
        continue;
      }
      const isSame = isDeepStrictEqual(found?.run, run);
      if (found?.loss === null) whole++;
      else told++;
      const isTold = found?.loss?.unreadable.some((place) => place.path === path) === true;
      if (!isSame && !(isHit && isTold)) wrong++;
      if (found?.loss !== null && !isTold) wrong++;
    }
  };
  for (const path of segments) {
    await judge(failing(disk, "open", path, "EIO"), path, 0, Number.POSITIVE_INFINITY);
    for (let offset = 0; offset < disk.bytesOf(path).length; offset += 4_096) {
      withoutBlock(disk, path, offset);
      // Without its header all of a segment is lost.
      await judge(disk, path, offset, offset === 0 ? Number.POSITIVE_INFINITY : offset + 4_096);
    }
  }
  disk.onRead = () => undefined;
  t.equal(wrong, 0);
  t.ok(whole > 0 && told > 0 && missing > 0);
  t.comment(
    `${segments.length} segments: ${whole} runs read whole, ${told} with what may be missing told, ${missing} not`,
  );
  const [run] = runs;
  await t.rejects(read(failing(disk, "readDirectory", META, "EIO"), run!.id), {
    code: "record_missing",
    message: /the disk cannot read all of it: readDirectory .*meta: EIO/,
  });
});
