import t from "tap";
import type { Extent } from "../../core/capture.js";
import { generateUuidV7 } from "../../core/identifiers.js";
import { capturePath } from "../../storage/capture-path.js";
import { CaptureReader } from "../../storage/capture-reader.js";
import { CaptureStore } from "../../storage/capture-store.js";
import { checkStore } from "../../storage/check-store.js";
import type { DataDirectory } from "../../storage/data-directory.js";
import { FileSystemError } from "../../storage/file-system.js";
import { inspectStore } from "../../storage/inspect-store.js";
import { LogReader } from "../../storage/log-reader.js";
import { segmentName } from "../../storage/segment.js";
import {
  appendEach,
  createDisk,
  META,
  openLog,
  QUARANTINE,
  recordOf,
  type SeenRecord,
} from "../helpers/log-harness.js";
import type { SimulatedDisk } from "../helpers/simulated-disk.js";

const CAPTURES = "/data/captures";
const NAMES = ["a", "bb", "ccc", "d", "ee", "fff", "g", "hh", "iii", "j", "kk", "lll"];
const dataDirectory: DataDirectory = {
  ...{
    path: "/data",
    metaPath: META,
    capturesPath: CAPTURES,
    quarantinePath: QUARANTINE,
    snapshotPath: "/data/snapshot",
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
  const damage = { code: "record_damaged", message: /offset \d+: the disk does not give it \(EIO\)/ };
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
  const check = () =>
    checkStore({
      ...{ dataDirectory, fileSystem: disk, understandsType: () => true },
      inspectRecord: ({ index }) => {
        const { path, extent } = JSON.parse(Buffer.from(index).toString()) as { path: string; extent: Extent };
        return [{ path, extents: [extent] }];
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
  await t.rejects(slices.read(4_000, 2_000), { code: "capture_damaged", message: /does not give it \(EIO\)/ });
  slices.close();
});

t.test("check goes on where the disk does not give bytes, and tells them and what they are a part of", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  t.match(await check(), { ok: true, findings: [] });
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
    const others = findings.filter((one) => one.file !== name && one.code !== "capture_unnamed");
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
  t.match(await check(), { ok: false, summary: { damages: 3 }, findings: [{ code: "unreadable", message: /EACCES/ }] });
});

t.test("inspect tells what the disk does not give, and prints the rest", async (t) => {
  const { disk, seen } = await someSegments();
  const path = `${META}/${segmentName(1)}`;
  disk.onRead = (read) => (read === path ? "EIO" : undefined);
  const kinds = new Map<string, number>();
  await inspectStore({
    ...{ dataDirectory, fileSystem: disk, understandsType: () => true, describe: () => null },
    onItem: ({ kind }) => {
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    },
  });
  t.equal(kinds.get("unreadable"), 1);
  t.ok((kinds.get("record") ?? 0) > seen.length / 2);
  t.equal(kinds.get("finding"), 1);
});

t.test("files that no record names are told, and so is what quarantine keeps", async (t) => {
  const { disk, paths, check } = await storeWithCaptures();
  const orphan = capturePath(generateUuidV7(1_800_000_000_999, new Uint8Array(10)), "capture");
  disk.setBytes(`${CAPTURES}/${orphan}`, new Uint8Array(77));
  disk.setBytes(`${CAPTURES}/${paths[0]?.replace(/cap$/, "rep")}`, new Uint8Array(3));
  disk.setBytes(`${CAPTURES}/notes.txt`, new Uint8Array(5));
  disk.setBytes(`${QUARANTINE}/${segmentName(1)}-64-80.bin`, new Uint8Array(80));
  const { ok, findings, summary } = await check();
  t.match([ok, summary.damages], [false, 1], "what quarantine keeps was lost, and nobody has looked at it yet");
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
