import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import t from "tap";
import type { Extent } from "../../../core/capture/capture.js";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { CaptureReader, verifyExtents } from "../../../storage/captures/capture-reader.js";
import { CaptureStore } from "../../../storage/captures/capture-store.js";
import { type DataDirectory, openDataDirectory } from "../../../storage/disk/data-directory.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { OpenMode, StoreFile } from "../../../storage/disk/file-system-interface.js";
import type { LogRecord } from "../../../storage/log/log-batch.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { segmentName } from "../../../storage/log/segment.js";
import { checkStore } from "../../../storage/repair/check-store.js";
import { type InspectedItem, inspectStore } from "../../../storage/repair/inspect-store.js";
import { runOf } from "../../../storage/repair/record-verifier.js";
import { readRun } from "../../../storage/view/read-run.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { listOf } from "../../helpers/list-of.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { HintedStore } from "../../helpers/store/hinted-store.js";
import {
  appendEach,
  createDisk,
  META,
  openLog,
  QUARANTINE,
  recordOf,
  type SeenRecord,
} from "../../helpers/store/log-harness.js";

const CAPTURES = "/data/captures";
const PATH_OF_LOOP = capturePath(generateUuidV7(1_800_000_000_000, new Uint8Array(10)), "capture");
const NAMES = ["a", "bb", "ccc", "d", "ee", "fff", "g", "hh", "iii", "j", "kk", "lll"];
const dataDirectory: DataDirectory = {
  ...{
    path: "/data",
    metaPath: META,
    capturesPath: CAPTURES,
    quarantinePath: QUARANTINE,
  },
  release: async () => {},
};

function contentOf(disk: SimulatedDisk): string {
  return disk
    .paths()
    .map((path) => `${path} ${Buffer.from(disk.bytesOf(path)).toString("hex")}`)
    .join();
}

/** Some segments, the newest with a tail that nothing proves. */
async function someSegments(): Promise<{ disk: SimulatedDisk; seen: SeenRecord[] }> {
  const disk = await createDisk();
  const { log, seen } = await openLog(disk, { segmentBytes: 600 });
  await appendEach(log, NAMES, 60);
  return { disk: disk.kill(), seen };
}

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
      t.throws(() => reader.readSync(location), damage);
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

async function storeWithCaptures() {
  const disk = await createDisk();
  await disk.makeDirectory(CAPTURES);
  const captures = new CaptureStore({ fileSystem: disk, capturesPath: CAPTURES });
  const { log } = await openLog(disk, { segmentBytes: 2_000 });
  const paths: string[] = [];
  const extents: Extent[] = [];
  for (let run = 0; run < 3; run++) {
    const path = capturePath(generateUuidV7(1_800_000_000_000 + run, new Uint8Array(10)), "capture");
    const file = captures.file(path.slice(7, 43), "capture", 0);
    for (let i = 0; i < 3; i++) {
      const extent = file.append(new Uint8Array(5_000).fill(run + i));
      const index = Buffer.from(JSON.stringify({ path, extent }));
      await log.whenCommitted(log.append({ ...recordOf("x", 300), index, needs: file }));
      extents.push(extent);
    }
    paths.push(path);
  }
  await log.close();
  await captures.close();
  /** @param removed the path of which all records are taken for tombstones */
  const check = (checked = disk, removed?: string) =>
    checkStore({
      ...{ dataDirectory, fileSystem: checked, understandsType: () => true },
      inspectRecord: ({ index }) => {
        const { path, extent } = JSON.parse(Buffer.from(index).toString()) as { path: string; extent: Extent };
        return [path === removed ? { path, extents: [], isRemoved: true } : { path, extents: [extent] }];
      },
    });
  return { disk, paths, extents, check };
}

t.test("captures that the disk does not give are damaged, for who reads them", async (t) => {
  const { disk, paths, extents } = await storeWithCaptures();
  const reader = new CaptureReader({ fileSystem: disk });
  const path = `${CAPTURES}/${paths[0]}`;
  disk.onRead = (read, position) => (read === path && position >= 5_000 ? "EIO" : undefined);
  const slices = await reader.openSlices(path, extents.slice(0, 2));
  t.equal((await slices.read(0, 5_000)).length, 5_000);
  await t.rejects(slices.read(4_000, 2_000), { code: "capture_damaged", message: /cannot read these bytes \(EIO\)/ });
  slices.close();
  await t.rejects(verifyExtents(disk, path, extents.slice(1, 2)), { code: "EIO" });
});

t.test("check goes on where the disk does not give bytes, and tells them and what they are a part of", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  t.match(await check(), { ok: true, findings: { length: 0 } });
  const files = [
    ...disk.paths().filter((path) => path.startsWith(META)),
    ...paths.map((path) => `${CAPTURES}/${path}`),
  ];
  const places: [string, number][] = files.flatMap((path) => {
    const blocks = Math.ceil(disk.bytesOf(path).length / 4096);
    return Array.from({ length: blocks }, (_, block): [string, number] => [path, block * 4096]);
  });
  let wrong = 0;
  for (const [path, offset] of places) {
    // A read that touches the block fails as a whole.
    disk.onRead = (read, position, lengthBytes) =>
      read === path && position < offset + 4096 && position + lengthBytes > offset ? "EIO" : undefined;
    const { ok, findings, summary } = await check();
    const name = path.slice("/data/".length);
    const isTold = findings.some((one) => one.code === "unreadable" && one.file === name && one.offset === offset);
    const isNamed = findings.some((one) => one.code !== "unreadable" && one.file === name);
    const others = findings.filter((one) => one.file !== name && one.code !== "capture_unjudged");
    if (ok || !isTold || !isNamed || others.length > 0 || summary.captureFiles !== 3) wrong++;
  }
  t.equal(wrong, 0);
  t.comment(`EIO at each of ${places.length} blocks: ${wrong} not told by check`);
  disk.onRead = (path) => (path.includes("meta/") ? "EIO" : undefined);
  const { ok, findings } = await check();
  t.notOk(ok);
  t.ok(findings.some(({ code }) => code === "segment_unreadable"));
  disk.onRead = () => undefined;
  const open = disk.open.bind(disk);
  disk.open = (path, mode) =>
    path.endsWith(paths[0] as string) ? Promise.reject(new FileSystemError("EACCES", "open", path)) : open(path, mode);
  t.match(await check(), {
    ok: false,
    summary: { damages: 3 },
    findings: listOf(...Array(3).fill({ code: "unreadable", file: `captures/${paths[0]}`, message: /EACCES/ })),
  });
});

/** What is asked about a name: of the path that it fails for, with the code. */
type Lookup = "readDirectory" | "sizeOf" | "exists" | "open";

function failing(disk: SimulatedDisk, operation: Lookup, failingPath: string, code: string): SimulatedDisk {
  const copy = disk.copy();
  const answer = copy[operation].bind(copy) as (path: string, mode: OpenMode) => Promise<unknown>;
  Object.assign(copy, {
    [operation]: (path: string, mode: OpenMode) =>
      path === failingPath ? Promise.reject(new FileSystemError(code, operation, path)) : answer(path, mode),
  });
  return copy;
}

t.test("check goes on where a folder cannot be listed or a file's size be asked for, and names it", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  const [first, , third] = paths as [string, string, string];
  // To be found in each case, by what is read behind the place.
  const bytes = disk.bytesOf(`${CAPTURES}/${third}`);
  bytes[14_000]! ^= 1;
  disk.setBytes(`${CAPTURES}/${third}`, bytes);
  disk.setBytes(`${QUARANTINE}/${segmentName(1)}-64-80.bin`, new Uint8Array(80));
  const month = first.slice(0, 6);
  const places: [Lookup, string, string][] = [
    ["readDirectory", "captures", "EIO"],
    ["readDirectory", `captures/${month}`, "EIO"],
    ["readDirectory", "quarantine", "EIO"],
    ["sizeOf", `captures/${first}`, "ELOOP"],
    ["sizeOf", `meta/${segmentName(1)}`, "EIO"],
    ["sizeOf", `quarantine/${segmentName(1)}-64-80.bin`, "EIO"],
  ];
  const whole = await check();
  t.match([whole.ok, whole.summary.damages], listOf(false, 2));
  for (const [operation, file, code] of places) {
    const { ok, findings, summary } = await check(failing(disk, operation, `/data/${file}`, code));
    const told = findings.filter((one) => one.code === "unreadable");
    t.match(told, listOf({ file, offset: 0, lengthBytes: 0, message: new RegExp(code) }), `${operation} ${file}`);
    t.equal(told.length, 1);
    t.ok(findings.some((one) => one.code === "capture_damaged" && one.file === `captures/${third}`));
    t.match([ok, summary.records, summary.extents], listOf(false, whole.summary.records, 9));
    t.notOk(findings.some((one) => one.code === "capture_unnamed" || one.code === "capture_missing"));
  }
  const unlisted = await check(failing(disk, "readDirectory", META, "EIO"));
  const codes = unlisted.findings.map((one) => `${one.code} ${one.file}`);
  const unjudged = paths.map((path) => `capture_unjudged captures/${path}`);
  t.same(codes, ["unreadable meta", ...unjudged, `quarantined quarantine/${segmentName(1)}-64-80.bin`]);
});

t.test("check goes on where the disk does not say whether a removed run's captures are there", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  const whole = await check();
  const [first] = paths as [string];
  const { findings, summary } = await check(failing(disk, "exists", `${CAPTURES}/${first}`, "EIO"), first);
  t.match(findings, listOf({ code: "unreadable", file: `captures/${first}` }));
  t.match(summary, { records: whole.summary.records, extents: 6, damages: 1 });
});

t.test("check goes on behind each segment that cannot be opened, and calls no capture a stray for it", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  const whole = await check();
  const segments = disk.paths().filter((path) => path.startsWith(META));
  t.ok(segments.length > 2);
  let unjudged = 0;
  for (const path of segments) {
    const alone = disk.copy();
    for (const other of segments) if (other !== path) alone.removeFile(other);
    const { summary: own } = await check(alone);
    const { ok, findings, summary } = await check(failing(disk, "open", path, "EIO"));
    const file = path.slice("/data/".length);
    const ofLog = findings.filter((one) => one.file.startsWith("meta/"));
    t.same(ofLog.map((one) => `${one.code} ${one.file}`).sort(), [`segment_unreadable ${file}`, `unreadable ${file}`]);
    t.same([ok, summary.records, summary.damages], [false, whole.summary.records - own.records, 2], file);
    t.equal(summary.extents, whole.summary.extents - own.extents, "what the others name is verified");
    const ofCaptures = findings.filter((one) => one.file.startsWith("captures/"));
    t.ok(
      ofCaptures.every((one) => one.code === "capture_unjudged" && /an unreadable one may name it/.test(one.message)),
    );
    unjudged += ofCaptures.length;
  }
  t.ok(unjudged > 0 && unjudged < paths.length, `${unjudged} captures that one segment alone names`);
});

t.test("check goes on at a capture file and at a segment that are links to themselves", async (t) => {
  const path = t.testdir();
  await (await openDataDirectory({ path, creates: true })).release();
  const loops = [`captures/${PATH_OF_LOOP}`, `meta/${segmentName(1)}`];
  await mkdir(join(path, "captures", PATH_OF_LOOP.slice(0, 6)));
  for (const loop of loops) await symlink(join(path, loop), join(path, loop));
  await writeFile(join(path, "quarantine", "left.bin"), "left");
  const { ok, findings, summary } = await checkDirectory(path);
  const codes = findings.map(({ code, file }) => `${code} ${file}`).sort();
  t.same(codes, [
    `capture_unjudged ${loops[0]}`,
    "quarantined quarantine/left.bin",
    `segment_unreadable ${loops[1]}`,
    ...loops.map((loop) => `unreadable ${loop}`),
  ]);
  t.match([ok, summary.segments, summary.captureFiles, summary.damages], listOf(false, 1, 1, 4));
  const opening = await openDataDirectory({ path, creates: true }).catch((error: unknown) => error);
  const message = new RegExp(`^${join(path, loops[1] as string)} leads through a loop of symbolic links`);
  t.match(opening, { code: "directory_unusable", message }, "a start is refused all the same");
});

async function inspected(fileSystem: SimulatedDisk, describe: (record: LogRecord) => unknown = () => null) {
  const items: InspectedItem[] = [];
  await inspectStore({
    ...{ dataDirectory, fileSystem, understandsType: () => true, describe },
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

t.test("records behind bytes that the disk does not give are read, also where nothing proves them", async (t) => {
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

t.test("files that no record names are told, and so is what quarantine keeps", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  const orphan = capturePath(generateUuidV7(1_800_000_000_999, new Uint8Array(10)), "capture");
  disk.setBytes(`${CAPTURES}/${orphan}`, new Uint8Array(77));
  disk.setBytes(`${CAPTURES}/${paths[0]?.replace(/cap$/, "rep")}`, new Uint8Array(3));
  disk.setBytes(`${CAPTURES}/notes.txt`, new Uint8Array(5));
  disk.setBytes(`${QUARANTINE}/${segmentName(1)}-64-80.bin`, new Uint8Array(80));
  const { ok, findings, summary } = await check();
  t.match([ok, summary.damages], listOf(false, 1), "what quarantine keeps was lost, and nobody has looked at it yet");
  t.match(
    findings.map(({ code, file, lengthBytes }) => `${code} ${file} ${lengthBytes}`).sort(),
    [
      `capture_unnamed captures/${orphan} 77`,
      `capture_unnamed captures/${paths[0]?.replace(/cap$/, "rep")} 3`,
      "file_unknown captures/notes.txt 5",
      `quarantined quarantine/${segmentName(1)}-64-80.bin 80`,
    ].sort(),
  );
  t.match(summary, { captureFiles: 6, captureBytes: 45_085, extents: 9, quarantineFiles: 1, quarantineBytes: 80 });
});
