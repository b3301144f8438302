import t, { type Test } from "tap";
import {
  type DroppedStretch,
  droppedFrom,
  droppedRecordBytes,
  encodeDroppedRecord,
} from "../../../storage/compaction/dropped-record.js";
import { forEachRecord } from "../../../storage/log/log-batch.js";
import {
  isContentIntact,
  isRecordHeader,
  LOG_RECORD_TYPE,
  readRecordHeader,
  sealRecordHeader,
} from "../../../storage/log/record-format.js";
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES, segmentName } from "../../../storage/log/segment.js";
import { inspectStore } from "../../../storage/repair/inspect-store.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { listOf } from "../../helpers/list-of.js";
import { appendEach, createDisk, META, openLog, QUARANTINE } from "../../helpers/store/log-harness.js";

const GONE = Buffer.from("gone");
const pathOf = (base: number): string => `${META}/${segmentName(base)}`;

t.test("a dropped stretch has the bytes that the format's example shows", async (t) => {
  const stretch = { firstSequence: 3, lastSequence: 7, durableUpTo: 9, timeUs: 1_700_000_000_000_001, body: GONE };
  const bytes = encodeDroppedRecord(stretch, 0x12345678, 64);
  const example =
    "52454331 0300 01 01 0700000000000000 0900000000000000 01401e18240a0600 " +
    "08000000 04000000 1efc8f01 0a9db08f 0300000000000000 676f6e65 00000000";
  t.equal(Buffer.from(bytes).toString("hex"), example.replaceAll(" ", ""));
  const view = new DataView(bytes.buffer);
  t.ok(isRecordHeader(bytes, view, 0, 0x12345678, 64));
  t.ok(isContentIntact(bytes, 0, readRecordHeader(view, 0)));
  t.equal(bytes.length, droppedRecordBytes(GONE.length));
  const far = encodeDroppedRecord({ ...stretch, firstSequence: 2 ** 40 + 1, lastSequence: 2 ** 40 + 2 }, 1, 64);
  t.equal(droppedFrom(far.subarray(48, 56)), 2 ** 40 + 1);
  t.equal(droppedFrom(far.subarray(48, 55)), null);
});

/** Segments 1 (a, b, c, d), 5 (e, f, g, h), 9 (i) and a mark, closed. */
async function threeSegments(): Promise<SimulatedDisk> {
  const disk = await createDisk();
  const { log } = await openLog(disk, { segmentBytes: 900 });
  await appendEach(log, ["a", "b", "c", "d", "e", "f", "g", "h", "i"], 200);
  await log.close();
  t.same(
    disk.paths().filter((path) => path.startsWith(META)),
    [1, 5, 9].map(pathOf),
  );
  return disk;
}

type Piece = number | Partial<DroppedStretch>;

/** Writes a segment anew: of its records those whose numbers are listed, and dropped stretches, in this order. */
function rewrite(disk: SimulatedDisk, base: number, pieces: readonly Piece[]): { offset: number; length: number }[] {
  const old = disk.bytesOf(pathOf(base));
  const salt = decodeSegmentHeader(old).header!.salt;
  const records = new Map<number, Uint8Array>();
  let opening = new Uint8Array(0);
  const batch = { bytes: old.subarray(SEGMENT_HEADER_BYTES), segmentBase: base, offset: SEGMENT_HEADER_BYTES };
  forEachRecord(batch, ({ type, sequence }, { offset, length }) => {
    const bytes = old.slice(offset, offset + length);
    if (type === LOG_RECORD_TYPE.openingState) opening = bytes;
    else records.set(sequence, bytes);
  });
  const parts = [old.slice(0, SEGMENT_HEADER_BYTES), opening];
  let offset = SEGMENT_HEADER_BYTES + opening.length;
  const places: { offset: number; length: number }[] = [];
  for (const piece of pieces) {
    const whole = { firstSequence: 0, lastSequence: 0, durableUpTo: base + 3, timeUs: 5, body: GONE };
    let bytes: Uint8Array<ArrayBuffer>;
    if (typeof piece === "number") {
      bytes = records.get(piece)!.slice();
      sealRecordHeader(bytes, new DataView(bytes.buffer), 0, salt, offset);
    } else {
      bytes = new Uint8Array(encodeDroppedRecord({ ...whole, ...piece }, salt, offset));
    }
    places.push({ offset, length: bytes.length });
    parts.push(bytes);
    offset += bytes.length;
  }
  disk.setBytes(pathOf(base), new Uint8Array(Buffer.concat(parts)));
  return places;
}

const stretch = (firstSequence: number, lastSequence: number, more: Partial<DroppedStretch> = {}) => ({
  firstSequence,
  lastSequence,
  ...more,
});

const ALL = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
const without = (...names: string[]) => ALL.filter((name) => !names.includes(name));

t.test("the numbers of a stretch count as covered: at a segment's start, in it, at its end, all of it", async (t) => {
  const whole = await threeSegments();
  const cases: [Piece[], string[]][] = [
    [
      [stretch(5, 6), 7, 8],
      ["e", "f"],
    ],
    [
      [5, stretch(6, 7), 8],
      ["f", "g"],
    ],
    [[5, 6, 7, stretch(8, 8)], ["h"]],
    [[stretch(5, 8)], ["e", "f", "g", "h"]],
    [
      [stretch(5, 5), 6, stretch(7, 8)],
      ["e", "g", "h"],
    ],
    [
      [stretch(5, 5), stretch(6, 8)],
      ["e", "f", "g", "h"],
    ],
  ];
  for (const [pieces, dropped] of cases) {
    const disk = whole.copy();
    rewrite(disk, 5, pieces);
    const opened = await openLog(disk);
    t.same(opened.names, without(...dropped));
    t.match(opened.log.recovery, { findings: { length: 0 }, lostRecords: 0, corruptionCount: 0, lastSequence: 10 });
    t.same(opened.openingNames, ALL.slice(0, 8), "opening states stay");
    await appendEach(opened.log, ["later"]);
    await opened.log.close();
    t.same((await openLog(disk)).names, [...without(...dropped), "later"]);
  }
});

t.test("a stretch proves its segment: as the newest one it is no tail, and the log goes on behind it", async (t) => {
  const disk = await threeSegments();
  rewrite(disk, 5, [5, stretch(6, 8)]);
  disk.removeFile(pathOf(9));
  const { log, names } = await openLog(disk);
  t.match(log.recovery, { findings: { length: 0 }, provenSequence: 8, newSegmentBase: null });
  t.same(names, ["a", "b", "c", "d", "e"]);
  t.equal(log.nextSequence, 9);
});

interface Damage {
  code: "record_damaged" | "sequences_missing";
  /** Which of the pieces the finding names. */
  piece: number;
  firstLost: number;
  lastLost: number;
  detail: RegExp;
}

async function damages(t: Test, disk: SimulatedDisk, places: { offset: number }[], expected: Damage) {
  const { names, log } = await openLog(disk);
  const { piece, ...finding } = expected;
  t.match(log.recovery.findings, listOf({ ...finding, offset: places[piece]?.offset, segment: segmentName(5) }));
  t.equal(log.recovery.findings.length, 1);
  t.equal(log.recovery.lostRecords, expected.lastLost - expected.firstLost + 1);
  const again = await openLog(disk.kill());
  t.same(again.names, names, "a second recovery gives the same records");
  return names;
}

const CASES: { what: string; pieces: Piece[]; names: string[]; damage: Damage }[] = [
  {
    what: "goes backwards",
    pieces: [5, stretch(7, 6), 8],
    names: without("f", "g"),
    damage: { code: "record_damaged", piece: 1, firstLost: 6, lastLost: 7, detail: /from 7 back to 6/ },
  },
  {
    what: "overlaps the record before it",
    pieces: [5, 6, stretch(6, 7), 8],
    names: without("g"),
    damage: { code: "record_damaged", piece: 2, firstLost: 7, lastLost: 7, detail: /record 6 stands behind record 6/ },
  },
  {
    what: "overlaps a stretch before it",
    pieces: [stretch(5, 6), stretch(6, 7), 8],
    names: without("e", "f", "g"),
    damage: { code: "record_damaged", piece: 1, firstLost: 7, lastLost: 7, detail: /record 6 stands behind record 6/ },
  },
  {
    what: "overlaps the record behind it",
    pieces: [5, stretch(6, 7), 7, 8],
    names: without("f", "g"),
    damage: { code: "record_damaged", piece: 2, firstLost: 8, lastLost: 7, detail: /record 7 stands behind record 7/ },
  },
  {
    what: "leaves a hole before it",
    pieces: [5, stretch(7, 7), 8],
    names: without("f", "g"),
    damage: { code: "sequences_missing", piece: 1, firstLost: 6, lastLost: 6, detail: /sequence 7 behind 5/ },
  },
  {
    what: "leaves a hole behind it",
    pieces: [5, stretch(6, 6), 8],
    names: without("f", "g"),
    damage: { code: "sequences_missing", piece: 2, firstLost: 7, lastLost: 7, detail: /sequence 8 behind 6/ },
  },
  {
    what: "reaches into the next segment",
    pieces: [5, 6, stretch(7, 9, { durableUpTo: 9 })],
    names: without("g", "h"),
    damage: {
      code: "record_damaged",
      piece: 2,
      firstLost: 7,
      lastLost: 8,
      detail: /up to record 9 reaches into the next segment, which begins at 9/,
    },
  },
  {
    what: "begins at 0",
    pieces: [stretch(0, 6), 7, 8],
    names: without("e", "f"),
    damage: { code: "record_damaged", piece: 0, firstLost: 5, lastLost: 6, detail: /without its first number/ },
  },
  {
    what: "begins before its segment",
    pieces: [stretch(4, 6), 7, 8],
    names: without("e", "f"),
    damage: { code: "record_damaged", piece: 0, firstLost: 5, lastLost: 6, detail: /record 4 stands behind record 4/ },
  },
  {
    what: "claims less to be durable than it covers",
    pieces: [5, stretch(6, 7, { durableUpTo: 6 }), 8],
    names: without("f", "g"),
    damage: { code: "record_damaged", piece: 1, firstLost: 6, lastLost: 7, detail: /up to 7, of which 6 was durable/ },
  },
];

for (const { what, pieces, names, damage } of CASES) {
  t.test(`a stretch that ${what} is damage`, async (t) => {
    const disk = await threeSegments();
    const places = rewrite(disk, 5, pieces);
    if (damage.lastLost < damage.firstLost) {
      // It stands where nothing is missing.
      const { log, names: seen } = await openLog(disk);
      t.same(seen, names);
      t.match(log.recovery, { lostRecords: 0, corruptionCount: 1 });
      t.match(log.recovery.findings, listOf({ code: damage.code, detail: damage.detail, firstLost: null }));
      return;
    }
    t.same(await damages(t, disk, places, damage), names);
  });
}

t.test("a flip of any byte of a stretch is found, and its numbers are lost", async (t) => {
  const whole = await threeSegments();
  const places = rewrite(whole, 5, [5, stretch(6, 7), 8]);
  const { offset, length } = places[1]!;
  for (let at = offset; at < offset + length; at++) {
    const disk = whole.copy();
    const bytes = disk.bytesOf(pathOf(5));
    bytes[at]! ^= 0x10;
    disk.setBytes(pathOf(5), bytes);
    const { log, names } = await openLog(disk);
    t.same(names, without("f", "g"));
    t.match(log.recovery.findings, listOf({ code: "record_damaged", offset, firstLost: 6, lastLost: 7 }), `byte ${at}`);
    const kept = disk.bytesOf(`${QUARANTINE}/${log.recovery.findings[0]?.quarantineFile}`);
    t.equal(kept.length, length);
  }
});

t.test("a stretch whose index section has another length is damage", async (t) => {
  const disk = await threeSegments();
  const places = rewrite(disk, 5, [5, stretch(6, 7), 8]);
  const { offset } = places[1]!;
  const bytes = disk.bytesOf(pathOf(5));
  const view = new DataView(bytes.buffer);
  // The same content in all: four bytes of the index section count as body.
  view.setUint32(offset + 32, 4, true);
  view.setUint32(offset + 36, 8, true);
  sealRecordHeader(bytes, view, offset, decodeSegmentHeader(bytes).header!.salt, offset);
  disk.setBytes(pathOf(5), bytes);
  const damage = { code: "record_damaged", piece: 1, firstLost: 6, lastLost: 7, detail: /first number/ } as const;
  t.same(await damages(t, disk, places, damage), without("f", "g"));
});

t.test("a segment that ends within a stretch has lost its numbers", async (t) => {
  const disk = await threeSegments();
  const places = rewrite(disk, 5, [5, stretch(6, 8)]);
  const { offset, length } = places[1]!;
  disk.setBytes(pathOf(5), disk.bytesOf(pathOf(5)).slice(0, offset + length - 1));
  const damage = { code: "record_damaged", piece: 1, firstLost: 6, lastLost: 8, detail: /ends within/ } as const;
  t.same(await damages(t, disk, places, damage), without("f", "g", "h"));
});

t.test("inspect shows a stretch with its first number", async (t) => {
  const disk = await threeSegments();
  rewrite(disk, 5, [5, stretch(6, 7), 8]);
  const items: unknown[] = [];
  await inspectStore({
    dataDirectory: {
      path: "/data",
      metaPath: META,
      capturesPath: "",
      quarantinePath: QUARANTINE,
      snapshotPath: "",
      release: async () => {},
    },
    fileSystem: disk,
    understandsType: () => true,
    selects: ({ sequence }) => sequence >= 6,
    describe: () => null,
    onItem: (item) => {
      items.push(item);
    },
  });
  t.match(items[0], { kind: "record", type: "dropped", sequence: 7, content: { from: 6 }, error: null });
});
