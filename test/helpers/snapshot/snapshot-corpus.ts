/** Snapshot files to fuzz from: one that is as it should be, and what is wrong with others. They hold two small sections. */
import { crc32 } from "node:zlib";
import {
  encodeSnapshotHead,
  SNAPSHOT_SECTIONS,
  type SnapshotHead,
  snapshotHeadBytes,
} from "../../../storage/snapshot/snapshot-format.js";
import { type CorpusEntry, corpusEntry } from "../fuzz/fuzz-corpus.js";

const { viewRunIds, viewRunStates } = SNAPSHOT_SECTIONS;
const COLUMNS = [
  { id: viewRunIds.id, bytes: new Uint8Array(Uint32Array.of(1, 2, 3, 4).buffer) },
  { id: viewRunStates.id, bytes: Uint8Array.of(3) },
];

/** The whole head of a file of these sections, in their order. */
function headOf(columns: readonly { id: number; bytes: Uint8Array }[]): SnapshotHead {
  const segments = [
    { base: 1, salt: 0x12345678 },
    { base: 40, salt: 0x9abcdef0 },
  ];
  let offset = snapshotHeadBytes(segments.length, columns.length);
  const sections = columns.map(({ id, bytes }) => {
    const place = { id, crc: crc32(bytes), offset, length: bytes.length };
    offset += bytes.length;
    return place;
  });
  const position = { sequence: 70, segmentBase: 40, offset: 176, headerCrc: 0xdeadbeef };
  return { position, timeUs: 1_700_000_000_000_001, segments, sections };
}

export function snapshotCorpus(): CorpusEntry[] {
  const head = headOf(COLUMNS);
  const bodies = COLUMNS.map(({ bytes }) => bytes);
  const file = (changed: SnapshotHead = head, parts: Uint8Array[] = bodies): Buffer =>
    Buffer.concat([encodeSnapshotHead(changed), ...parts]);
  const entries: CorpusEntry[] = [];
  const add = (name: string, about: string, bytes: Uint8Array): void => {
    entries.push(corpusEntry(name, about, { file: bytes }));
  };
  const edited = (edit: (bytes: Buffer) => unknown): Buffer => {
    const bytes = Buffer.from(file());
    edit(bytes);
    return bytes;
  };
  /** The same, with the head's CRC right again. */
  const sealed = (edit: (bytes: Buffer) => unknown): Buffer =>
    edited((bytes) => {
      edit(bytes);
      const crcAt = snapshotHeadBytes(head.segments.length, head.sections.length) - 4;
      bytes.writeUInt32LE(crc32(bytes.subarray(0, crcAt)), crcAt);
    });
  const sections = (...changes: Partial<SnapshotHead["sections"][0]>[]): SnapshotHead => ({
    ...head,
    sections: head.sections.map((section, nth) => ({ ...section, ...changes[nth] })),
  });
  add("intact", "a snapshot", file());
  add("empty", "no byte", new Uint8Array(0));
  add("short-head", "the end lies within the head", file().subarray(0, 100));
  add("short", "the end lies within the last section", file().subarray(0, -1));
  add("long", "a byte behind the last section", Buffer.concat([file(), Uint8Array.of(0)]));
  add(
    "magic",
    "another magic",
    edited((bytes) => bytes.write("IRSLOGS1")),
  );
  add(
    "head-bit",
    "one bit of the head",
    edited((bytes) => bytes.writeUInt8(1, 63)),
  );
  add(
    "section-bit",
    "one bit of a section",
    edited((bytes) => bytes.writeUInt8(9, bytes.length - 1)),
  );
  add(
    "sealed-format",
    "a newer format, its CRC right",
    sealed((bytes) => bytes.writeUInt32LE(2, 8)),
  );
  add(
    "sealed-content",
    "newer content, its CRC right",
    sealed((bytes) => bytes.writeUInt32LE(999, 12)),
  );
  add(
    "segments-of-4-gib",
    "a count of segments that no file has room for",
    edited((bytes) => bytes.writeUInt32LE(2 ** 32 - 1, 52)),
  );
  add(
    "sections-of-4-gib",
    "a count of sections that no file has room for",
    edited((bytes) => bytes.writeUInt32LE(2 ** 32 - 1, 56)),
  );
  add("section-of-2-53", "a section of 2^53 - 1 bytes, its CRC right", file(sections({}, { length: 2 ** 53 - 1 })));
  add(
    "section-overlap",
    "a section within another, its CRC right",
    file(sections({}, { offset: head.sections[0]?.offset ?? 0 })),
  );
  add(
    "section-twice",
    "a section that stands twice",
    file(headOf([...COLUMNS, COLUMNS[0] as (typeof COLUMNS)[0]]), [...bodies, bodies[0] as Uint8Array]),
  );
  add("section-unknown", "a section of an unknown id", file(sections({ id: 4_000 })));
  const half = { id: viewRunIds.id, bytes: Uint8Array.of(1, 2, 3) };
  add("section-half-value", "a section that ends in a value", file(headOf([half]), [half.bytes]));
  return entries;
}
