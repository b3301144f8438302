import t from "tap";
import type { Extent } from "../../../core/capture/capture.js";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { CaptureStore } from "../../../storage/captures/capture-store.js";
import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import { segmentName } from "../../../storage/log/segment.js";
import { type CheckResult, checkStore, type NamedExtents } from "../../../storage/repair/check-store.js";
import { type InspectedItem, inspectStore } from "../../../storage/repair/inspect-store.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { listOf } from "../../helpers/list-of.js";
import { createDisk, META, openLog, QUARANTINE, recordOf } from "../../helpers/store/log-harness.js";

const CAPTURES = "/data/captures";
const PATH = capturePath(generateUuidV7(1_800_000_000_000, new Uint8Array(10)), "capture");
const directory: DataDirectory = {
  path: "/data",
  metaPath: META,
  capturesPath: CAPTURES,
  quarantinePath: QUARANTINE,
  storeId: null,
  release: async () => {},
};

/** A store of 13 records in several segments, each naming an extent by JSON in its index section. */
async function createStore(): Promise<SimulatedDisk> {
  const disk = await createDisk();
  await disk.makeDirectory(CAPTURES);
  const captures = new CaptureStore({ fileSystem: disk, capturesPath: CAPTURES });
  const { log } = await openLog(disk, {
    segmentBytes: 1_000,
    openingState: () => ({ index: new Uint8Array(0), body: new Uint8Array(0) }),
  });
  const file = captures.file(PATH.slice(7, 43), "capture", 0);
  for (let i = 0; i < 13; i++) {
    const extent = file.append(new Uint8Array(40).fill(i));
    const record = { ...recordOf("x", 150), index: Buffer.from(JSON.stringify(extent)), needs: file };
    await log.whenCommitted(log.append(record));
  }
  await log.close();
  await captures.close();
  return disk;
}

function namedExtents(index: Uint8Array): NamedExtents[] {
  return [{ path: PATH, extents: [JSON.parse(Buffer.from(index).toString()) as Extent] }];
}

function check(disk: SimulatedDisk): Promise<CheckResult> {
  return checkStore({
    dataDirectory: directory,
    fileSystem: disk,
    inspectRecord: ({ index }) => namedExtents(index),
  });
}

t.test("an intact store is ok, and the check counts what it saw", async (t) => {
  const disk = await createStore();
  const progress: number[] = [];
  const before = disk.paths().map((path) => [path, Buffer.from(disk.bytesOf(path)).toString("hex")]);
  const result = await checkStore({
    dataDirectory: directory,
    fileSystem: disk,
    inspectRecord: ({ index }) => namedExtents(index),
    onProgress: ({ records }) => progress.push(records),
  });
  t.equal(result.ok, true);
  t.same(result.findings, []);
  const segments = disk.paths().filter((path) => path.startsWith(META)).length;
  t.match(result.summary, { segments, records: 13 + segments + 1, extents: 13, extentBytes: 520, lastSequence: 14 });
  t.equal(progress.at(-1), result.summary.records);
  t.same(
    disk.paths().map((path) => [path, Buffer.from(disk.bytesOf(path)).toString("hex")]),
    before,
    "nothing was changed",
  );
});

t.test("a flip of any byte of log or captures is found", async (t) => {
  const disk = await createStore();
  let checks = 0;
  let missed = 0;
  for (const path of disk.paths()) {
    const whole = disk.bytesOf(path);
    for (let at = 0; at < whole.length; at += 7) {
      const bytes = whole.slice();
      bytes[at]! ^= 0x40;
      disk.setBytes(path, bytes);
      const { findings } = await check(disk);
      checks++;
      if (findings.length === 0) missed++;
    }
    disk.setBytes(path, whole);
  }
  t.equal(missed, 0);
  t.comment(`${checks} flipped bytes: ${missed} missed by check`);
});

t.test("missing and shortened files are found and named", async (t) => {
  const capture = await createStore();
  capture.setBytes(`${CAPTURES}/${PATH}`, capture.bytesOf(`${CAPTURES}/${PATH}`).slice(0, 510));
  const shortened = await check(capture);
  t.match(shortened, {
    ok: false,
    findings: listOf({ code: "capture_damaged", file: `captures/${PATH}`, offset: 480 }),
  });
  capture.removeFile(`${CAPTURES}/${PATH}`);
  const missing = await check(capture);
  t.equal(missing.summary.damages, 13);
  t.match(missing.findings[0], { code: "capture_missing", file: `captures/${PATH}` });
  const log = await createStore();
  const second = log.paths().filter((path) => path.startsWith(META))[1]!;
  log.removeFile(second);
  t.match(await check(log), { ok: false, findings: listOf({ code: "sequences_missing" }) });
});

t.test(
  "captures that have a tombstone may be missing; what a crash left of them is told and is no damage",
  async (t) => {
    const disk = await createStore();
    const checkWith = (tombstoneAt: number): Promise<CheckResult> =>
      checkStore({
        dataDirectory: directory,
        fileSystem: disk,
        inspectRecord: ({ index, sequence }) =>
          sequence === tombstoneAt ? [{ path: PATH, extents: [], isRemoved: true }] : namedExtents(index),
      });
    t.match(await checkWith(13), { ok: true, findings: listOf({ code: "capture_left", file: `captures/${PATH}` }) });
    disk.removeFile(`${CAPTURES}/${PATH}`);
    t.match(await checkWith(13), { ok: true, findings: { length: 0 }, summary: { damages: 0 } });
    const early = await checkWith(7);
    t.equal(early.ok, false, "what is named after the tombstone must be there");
    t.match(early.findings[0], { code: "capture_missing" });
  },
);

t.test("what is none of the service's beside segments is told, and is no damage", async (t) => {
  const disk = await createStore();
  disk.setBytes(`${META}/notes.txt`, new Uint8Array(5));
  disk.setBytes(`${META}/0000000000000001.seg.old`, new Uint8Array(7));
  await disk.makeDirectory(`${META}/backup.tmp`);
  const { ok, findings, summary } = await check(disk);
  t.same([ok, summary.damages, summary.findings], [true, 0, 3]);
  t.same(
    findings.map(({ code, file, lengthBytes }) => `${code} ${file} ${lengthBytes}`),
    ["file_unknown meta/0000000000000001.seg.old 7", "file_unknown meta/backup.tmp 0", "file_unknown meta/notes.txt 5"],
  );
});

t.test("a torn tail is told and is no damage; a record that cannot be decoded is one", async (t) => {
  const torn = await createStore();
  const path = torn
    .paths()
    .filter((name) => name.startsWith(META))
    .at(-1)!;
  const bytes = torn.bytesOf(path);
  torn.setBytes(path, bytes.slice(0, bytes.length - 3));
  t.match(await check(torn), { ok: true, findings: listOf({ code: "tail_cut" }) });
  const result = await checkStore({
    dataDirectory: directory,
    fileSystem: await createStore(),
    inspectRecord: ({ sequence }) => {
      if (sequence === 5) throw new Error("not this one");
      return [];
    },
  });
  t.match(result, {
    ok: false,
    findings: listOf(
      { code: "record_undecodable", message: /record 5 .*not this one/ },
      { code: "capture_unnamed", file: `captures/${PATH}` },
    ),
  });
  t.match(result.findings[0]?.file, /^meta\/\d{16}\.seg$/);
});

t.test("a store of a newer format is told as such", async (t) => {
  const disk = await createStore();
  const result = await checkStore({ dataDirectory: directory, fileSystem: disk });
  t.equal(result.ok, true);
  const { log } = await openLog(disk);
  await log.whenCommitted(log.append({ ...recordOf("x"), type: 4_000, flags: 1 }));
  await log.close();
  const unknown = await checkStore({ dataDirectory: directory, fileSystem: disk });
  t.match(unknown, {
    ok: false,
    findings: listOf(
      { code: "record_type_unsupported", file: "meta" },
      // Records that cannot be read are not used to judge captures.
      { code: "capture_unjudged", file: `captures/${PATH}` },
    ),
  });
});

t.test("inspect shows every record in order, and what is wrong", async (t) => {
  const disk = await createStore();
  const first = disk.paths().filter((name) => name.startsWith(META))[0]!;
  const bytes = disk.bytesOf(first);
  bytes[bytes.length - 20]! ^= 1;
  disk.setBytes(first, bytes);
  const inspect = async (fromSequence: number): Promise<InspectedItem[]> => {
    const items: InspectedItem[] = [];
    await inspectStore({
      dataDirectory: directory,
      fileSystem: disk,
      selects: ({ sequence }) => sequence >= fromSequence,
      describe: ({ index, sequence }) => {
        if (sequence === 7) throw new Error("odd");
        return JSON.parse(Buffer.from(index).toString());
      },
      onItem: (item) => {
        items.push(item);
      },
    });
    return items;
  };
  const items = await inspect(0);
  t.match(items[0], { kind: "record", type: "opening_state", sequence: 0, location: { segmentBase: 1, offset: 64 } });
  t.match(items[1], { type: "16", sequence: 1, bodyBytes: 150, content: { offset: 0 }, error: null });
  t.match(
    items.find((item) => item.kind === "record" && item.sequence === 7 && item.type === "16"),
    { content: null, error: "odd" },
  );
  t.match(items.at(-1), { kind: "finding", finding: { code: "record_damaged", segment: segmentName(1) } });
  const records = (await inspect(9)).filter((item) => item.kind === "record");
  t.ok(records.length > 0 && records.every((item) => item.sequence >= 9));
});
