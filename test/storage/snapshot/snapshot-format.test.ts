import { crc32 } from "node:zlib";
import t from "tap";
import {
  decodeSnapshotHead,
  encodeSnapshotHead,
  headBytesOf,
  SNAPSHOT_SECTIONS,
  SnapshotError,
  type SnapshotHead,
  type SnapshotSection,
  snapshotName,
  snapshotSequenceOf,
} from "../../../storage/snapshot/snapshot-format.js";
import { SnapshotReader } from "../../../storage/snapshot/snapshot-reader.js";
import { writeSnapshot } from "../../../storage/snapshot/snapshot-writer.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { createHistoryDisk, SNAPSHOTS } from "../../helpers/store/history-store.js";
import { longOnly } from "../../helpers/test-size.js";

const HEAD: SnapshotHead = {
  position: { sequence: 7, segmentBase: 1, offset: 176, headerCrc: 0xefbeadde },
  timeUs: 1_700_000_000_000_001,
  segments: [{ base: 1, salt: 0x12345678 }],
  sections: [{ id: 1, crc: crc32(Uint8Array.of(1, 2, 3, 4)), offset: 104, length: 4 }],
};
const GOLDEN =
  "495253534e415031 01000000 04000000 0700000000000000 01401e18240a0600 0100000000000000 b000000000000000 " +
  "deadbeef 01000000 01000000 00000000 0100000000000000 78563412 " +
  "01000000 cdfb3cb6 6800000000000000 0400000000000000 38414669";

const SECTIONS = Object.keys(SNAPSHOT_SECTIONS) as SnapshotSection[];

/** Every section holds its own place among them, some times over. */
function valuesOf(section: SnapshotSection): Uint8Array | Uint32Array | Float64Array {
  const nth = SECTIONS.indexOf(section);
  return new SNAPSHOT_SECTIONS[section].Type(nth).fill(nth);
}

async function written(): Promise<{ disk: SimulatedDisk; path: string; bytes: Uint8Array }> {
  const disk = await createHistoryDisk();
  const { position, timeUs, segments } = HEAD;
  const size = await writeSnapshot(disk, SNAPSHOTS, { position, timeUs, segments }, async (sink) => {
    for (const section of SECTIONS) await sink.write(section, [valuesOf(section)] as never);
  });
  const path = `${SNAPSHOTS}/${snapshotName(7)}`;
  const bytes = disk.bytesOf(path);
  if (bytes.length !== size) throw new Error("not the size that it says");
  return { disk, path, bytes };
}

/** What reading all of it says; null: nothing is wrong. */
async function refusalOf(disk: SimulatedDisk, path: string, bytes: Uint8Array): Promise<string | null> {
  disk.setBytes(path, bytes);
  try {
    const reader = await SnapshotReader.open(disk, path);
    await reader.verify();
    return null;
  } catch (error) {
    if (!(error instanceof SnapshotError)) throw error;
    return error.message;
  }
}

t.test("the head has the bytes of the table, and reads back", async (t) => {
  const bytes = encodeSnapshotHead(HEAD);
  t.equal(Buffer.from(bytes).toString("hex"), GOLDEN.replaceAll(" ", ""));
  t.equal(headBytesOf(bytes.subarray(0, 64)), bytes.length);
  t.same(decodeSnapshotHead(bytes), HEAD);
  const large = { ...HEAD, timeUs: 2 ** 53 - 1, position: { ...HEAD.position, sequence: 2 ** 53 - 1 } };
  t.same(decodeSnapshotHead(encodeSnapshotHead(large)), large, "53 bits");
});

t.test("names carry the sequence number and sort by it", async (t) => {
  t.equal(snapshotName(42), "0000000000000042.snap");
  t.equal(snapshotSequenceOf("0000000000000042.snap"), 42);
  for (const other of ["42.snap", "0000000000000042.snap.tmp", "0000000000000042.seg"]) {
    t.equal(snapshotSequenceOf(other), undefined, other);
  }
});

t.test("no two sections have the same id", async (t) => {
  t.equal(new Set(SECTIONS.map((section) => SNAPSHOT_SECTIONS[section].id)).size, SECTIONS.length);
});

t.test("a written file gives every section back, in a buffer of its own", async (t) => {
  const { disk, path } = await written();
  const reader = await SnapshotReader.open(disk, path);
  t.same({ ...reader.head, sections: [] }, { ...HEAD, sections: [] });
  for (const section of SECTIONS) {
    const values = await reader.read(section);
    t.same([...values], [...valuesOf(section)], section);
    t.equal(values.byteLength, values.buffer.byteLength);
  }
  await reader.close();
  t.same(
    disk.paths().filter((name) => name.startsWith(SNAPSHOTS)),
    [path],
    "and no temporary file",
  );
});

t.test("the older snapshots go when the new one is durable", async (t) => {
  const { disk, path } = await written();
  const { timeUs, segments } = HEAD;
  const position = { ...HEAD.position, sequence: 8 };
  await writeSnapshot(disk, SNAPSHOTS, { position, timeUs, segments }, async (sink) => {
    t.ok(disk.paths().includes(path), "still there");
    for (const section of SECTIONS) await sink.write(section, []);
  });
  t.same(
    disk.paths().filter((name) => name.startsWith(SNAPSHOTS)),
    [`${SNAPSHOTS}/${snapshotName(8)}`],
  );
});

t.test("damage: a flipped bit in any byte is found", longOnly, async (t) => {
  const { disk, path, bytes } = await written();
  t.equal(await refusalOf(disk, path, bytes), null);
  let undetected = 0;
  for (let at = 0; at < bytes.length; at++) {
    const flipped = bytes.slice();
    flipped[at]! ^= 1 << (at & 7);
    if ((await refusalOf(disk, path, flipped)) === null) undetected++;
  }
  t.comment(`${bytes.length} flipped bits, ${undetected} undetected`);
  t.equal(undetected, 0);
});

t.test("damage: a file that is empty, cut anywhere, or longer", async (t) => {
  const { disk, path, bytes } = await written();
  for (let length = 0; length < bytes.length; length += 7) {
    t.match(await refusalOf(disk, path, bytes.subarray(0, length)), /shorter|instead of/) || t.fail(`cut at ${length}`);
  }
  t.match(await refusalOf(disk, path, Buffer.concat([bytes, Uint8Array.of(0)])), /instead of/);
});

t.test("damage: another file's bytes, another version, a section that is missing or twice as long", async (t) => {
  const { disk, path, bytes } = await written();
  t.match(await refusalOf(disk, path, new Uint8Array(200)), /does not begin/);
  const resealed = (change: (view: DataView) => void): Uint8Array => {
    const copy = bytes.slice();
    const view = new DataView(copy.buffer);
    change(view);
    // Of the file as it was: another version may have it elsewhere.
    const crcAt = headBytesOf(bytes.subarray(0, 64)) - 4;
    view.setUint32(crcAt, crc32(copy.subarray(0, crcAt)), true);
    return copy;
  };
  t.match(
    await refusalOf(
      disk,
      path,
      resealed((view) => view.setUint32(8, 2, true)),
    ),
    /format version 2/,
  );
  t.match(
    await refusalOf(
      disk,
      path,
      resealed((view) => view.setUint32(12, 9, true)),
    ),
    /content version 9/,
  );
  t.match(
    await refusalOf(
      disk,
      path,
      resealed((view) => view.setUint32(76, 99, true)),
    ),
    /no section/,
  );
  t.match(
    await refusalOf(
      disk,
      path,
      resealed((view) => view.setUint32(76 + 24 + 16, 8, true)),
    ),
    /follow one another/,
  );
  const manySegments = bytes.slice();
  new DataView(manySegments.buffer).setUint32(52, 0xffff_ff00, true);
  t.match(await refusalOf(disk, path, manySegments), /shorter than its head/, "and no memory is asked for");
});

t.test("a snapshot without all of its sections is not written", async (t) => {
  const disk = await createHistoryDisk();
  const { position, timeUs, segments } = HEAD;
  const writing = writeSnapshot(disk, SNAPSHOTS, { position, timeUs, segments }, async (sink) => {
    await sink.write("viewCell", []);
  });
  await t.rejects(writing, /without all/);
  t.same(disk.paths(), []);
});
