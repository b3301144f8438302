/** Logs to fuzz from: one that is as it should be, and each kind of damage to it that recovery's table tells apart. */
import { LOG_RECORD_TYPE, RECORD_HEADER_BYTES } from "../../../storage/log/record-format.js";
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES, segmentName } from "../../../storage/log/segment.js";
import { appendAll, appendEach, createDisk, META, openLog, TEST_TYPE } from "../store/log-harness.js";
import {
  bytesOfSegment,
  type PlainSegment,
  recordOffsets,
  sealRecord,
  segmentOf,
  viewOf,
} from "../store/segment-bytes.js";
import { type CorpusEntry, corpusEntry } from "./fuzz-corpus.js";

const HEADER = { sequence: 8, durableUpTo: 16, indexLength: 32, bodyLength: 36 } as const;

/** The files of a log that was closed well: some segments, each of a few records, and a mark at the end. */
async function intactLog(): Promise<Map<string, Uint8Array>> {
  const disk = await createDisk();
  let salt = 0x5a17_0000;
  const { log } = await openLog(disk, { segmentBytes: 480, createSalt: () => salt++ });
  await appendEach(log, ["a", "bb", "ccc"], 20);
  await appendAll(log, ["d", "ee", "fff"], 24);
  await appendEach(log, ["g", "hh"], 9);
  await appendAll(log, ["i", "jj"], 30);
  await appendEach(log, ["kkk", "l"], 12);
  await appendAll(log, ["m", "nn"], 16);
  await log.close();
  return new Map(disk.paths().map((path) => [path.slice(META.length + 1), disk.bytesOf(path)]));
}

export async function logCorpus(): Promise<CorpusEntry[]> {
  const files = await intactLog();
  const names = [...files.keys()];
  const [first, second] = names as [string, string];
  const newest = names.at(-1) as string;
  const entries: CorpusEntry[] = [];
  const add = (name: string, about: string, changes: Record<string, Uint8Array | null>): void => {
    const parts = new Map([...files, ...Object.entries(changes)]);
    const kept = [...parts].filter((part): part is [string, Uint8Array] => part[1] !== null);
    entries.push(corpusEntry(name, about, Object.fromEntries(kept)));
  };
  const bytesOf = (name: string): Uint8Array => (files.get(name) as Uint8Array).slice();
  /** With one record's header or content changed, and its CRCs right again or not. */
  const changed = (name: string, nth: number, change: (bytes: Uint8Array, at: number) => void, seals = false) => {
    const bytes = bytesOf(name);
    const at = recordOffsets(bytes)[nth] as number;
    change(bytes, at);
    if (seals) sealRecord(bytes, at, segmentOf(bytesOf(name)).salt);
    return { [name]: bytes };
  };
  const rebuilt = (name: string, change: (segment: PlainSegment) => void) => {
    const segment = segmentOf(bytesOf(name));
    change(segment);
    return { [name]: bytesOfSegment(segment) };
  };
  const u32 = (field: keyof typeof HEADER, value: number) => (bytes: Uint8Array, at: number) =>
    viewOf(bytes).setUint32(at + HEADER[field], value, true);
  const flip = (offset: number) => (bytes: Uint8Array, at: number) => {
    bytes[at + offset]! ^= 0x10;
  };

  add("intact", "a log that was closed well", {});
  add("empty", "a folder without a segment", Object.fromEntries(names.map((name) => [name, null])));
  add("temporary-file", "a segment that was being written", {
    [`${segmentName(99)}.tmp`]: bytesOf(first).slice(0, 70),
  });

  add("torn-header", "the end lies within the last record's header", { [newest]: bytesOf(newest).slice(0, -20) });
  const lastRecord = recordOffsets(bytesOf(newest)).at(-2) as number;
  add("torn-body", "the end lies within the content of the last record but the mark", {
    [newest]: bytesOf(newest).slice(0, lastRecord + RECORD_HEADER_BYTES + 5),
  });
  add("unproven-records", "whole records that nothing proves durable", {
    [newest]: bytesOf(newest).slice(0, recordOffsets(bytesOf(newest)).at(-1)),
  });
  add("zero-tail", "a tail of zeros, as file systems leave it", {
    [newest]: Buffer.concat([bytesOf(newest), new Uint8Array(100)]),
  });
  add("short-newest", "the newest segment is shorter than its header", { [newest]: bytesOf(newest).slice(0, 63) });
  add("empty-newest", "the newest segment has no byte", { [newest]: new Uint8Array(0) });

  const header = (name: string, ...at: number[]) => {
    const bytes = bytesOf(name);
    for (const place of at) bytes[place]! ^= 1;
    return { [name]: bytes };
  };
  add("header-first-copy", "the first copy of a segment's header", header(second, 12));
  add("header-second-copy", "the second copy of a segment's header", header(second, 44));
  add("header-both-copies", "both copies of a segment's header", header(second, 12, 44));
  add("header-newest", "both copies of the newest segment's header", header(newest, 0, 32));
  add("wrong-name", "a segment under another one's name", { [second]: bytesOf(first) });
  add("no-first", "the first segment is not there", { [first]: null });
  add("no-second", "a segment between others is not there", { [second]: null });

  add("opening-state", "an opening state that does not match its CRC", changed(second, 0, flip(RECORD_HEADER_BYTES)));
  add("record-header", "one bit of a proven record's header", changed(first, 2, flip(9)));
  add("record-index", "one bit of a proven record's index section", changed(first, 2, flip(RECORD_HEADER_BYTES)));
  add(
    "record-padding",
    "one bit of the padding behind a proven record",
    changed(first, 1, flip(RECORD_HEADER_BYTES + 21)),
  );
  add(
    "record-length",
    "a body length of 4 GiB that its CRC does not know of",
    changed(first, 1, u32("bodyLength", 2 ** 32 - 1)),
  );
  add("two-damages", "two records apart from each other", {
    ...changed(first, 1, flip(50)),
    ...changed(newest, 1, flip(50)),
  });
  add("tail-damage", "one bit of what nothing proves durable", {
    [newest]: changed(newest, -1 + recordOffsets(bytesOf(newest)).length, flip(17))[newest] as Uint8Array,
  });

  add(
    "hole",
    "a number left out, all else right",
    rebuilt(first, ({ records }) => void records.splice(2, 1)),
  );
  add(
    "repeated",
    "a record that stands twice",
    rebuilt(first, ({ records }) => void records.splice(2, 0, records[1]!)),
  );
  add(
    "swapped",
    "two records in each other's place",
    rebuilt(first, ({ records }) => {
      [records[1], records[2]] = [records[2]!, records[1]!];
    }),
  );
  add(
    "moved",
    "a record's bytes copied over another one's",
    changed(first, 2, (bytes, at) => {
      bytes.copyWithin(at, recordOffsets(bytesOf(first))[1] as number, at);
    }),
  );
  add(
    "second-opening-state",
    "an opening state within the segment",
    rebuilt(first, ({ records }) => {
      records.splice(2, 0, { ...records[0]!, sequence: 1 });
    }),
  );
  add(
    "no-opening-state",
    "a segment that begins with a record",
    rebuilt(second, ({ records }) => void records.shift()),
  );
  add(
    "superseded",
    "records at a segment's end that the next one has",
    rebuilt(first, ({ records }) => {
      const next = segmentOf(bytesOf(second)).records;
      records.push(next[1]!, next[2]!);
    }),
  );

  add(
    "sealed-index-length",
    "an index length of 4 GiB, its CRC right",
    changed(first, 1, u32("indexLength", 2 ** 32 - 1), true),
  );
  add(
    "sealed-body-length",
    "a body length of 2 GiB in the newest segment, its CRC right",
    changed(newest, 1, u32("bodyLength", 2 ** 31), true),
  );
  add(
    "sealed-lengths",
    "bytes of the body given to the index section, its CRC right",
    changed(
      first,
      1,
      (bytes, at) => {
        u32("indexLength", 5)(bytes, at);
        u32("bodyLength", 16)(bytes, at);
      },
      true,
    ),
  );
  add(
    "sealed-sequence",
    "the number 2^53 - 1, its CRC right",
    changed(
      newest,
      1,
      (bytes, at) => {
        u32("sequence", 2 ** 32 - 1)(bytes, at);
        viewOf(bytes).setUint32(at + HEADER.sequence + 4, 2 ** 21 - 1, true);
      },
      true,
    ),
  );
  add(
    "sealed-claim",
    "a record that claims a later one to be durable, its CRC right",
    changed(newest, 1, u32("durableUpTo", 5_000), true),
  );
  add(
    "sealed-claim-53",
    "a record that claims 2^53 - 1 to be durable, its CRC right",
    changed(
      newest,
      1,
      (bytes, at) => {
        u32("durableUpTo", 2 ** 32 - 1)(bytes, at);
        viewOf(bytes).setUint32(at + HEADER.durableUpTo + 4, 2 ** 21 - 1, true);
      },
      true,
    ),
  );
  add(
    "newer-record",
    "a record of version 2",
    changed(
      first,
      1,
      (bytes, at) => {
        bytes[at + 7] = 2;
      },
      true,
    ),
  );
  add(
    "unknown-type",
    "a record of an unknown type that may be skipped",
    rebuilt(first, ({ records }) => {
      records[1] = { ...records[1]!, type: 4_000, flags: 0 };
    }),
  );
  add(
    "unknown-type-must",
    "a record of an unknown type that must be understood",
    rebuilt(first, ({ records }) => {
      records[1] = { ...records[1]!, type: 4_000, flags: 1 };
    }),
  );
  add("newer-segment", "a segment of format version 2", {
    [second]: Buffer.concat([
      encodeSegmentHeader({ ...segmentOf(bytesOf(second)), version: 2 }),
      bytesOf(second).subarray(SEGMENT_HEADER_BYTES),
    ]),
  });
  add(
    "only-marks",
    "a segment of nothing but marks behind its opening state",
    rebuilt(newest, ({ records }) => {
      for (const record of records.slice(1))
        Object.assign(record, { type: LOG_RECORD_TYPE.mark, index: new Uint8Array(0), body: new Uint8Array(0) });
    }),
  );
  return entries;
}

export function understandsTestType(type: number): boolean {
  return type === TEST_TYPE;
}
