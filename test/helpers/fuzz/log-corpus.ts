/** Logs to fuzz from: one that is as it should be, and each kind of damage to it that recovery's table tells apart. */
import { LOG_RECORD_TYPE, RECORD_HEADER_BYTES } from "../../../storage/log/record-format.js";
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES, segmentName } from "../../../storage/log/segment.js";
import { appendAll, appendEach, createDisk, META, openLog } from "../store/log-harness.js";
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

type RecordChange = (bytes: Uint8Array, at: number) => void;

/** Entries that each have something changed in an intact log. */
class LogCorpus {
  readonly entries: CorpusEntry[] = [];
  readonly names: readonly string[];
  readonly #files: ReadonlyMap<string, Uint8Array>;

  constructor(files: ReadonlyMap<string, Uint8Array>) {
    this.#files = files;
    this.names = [...files.keys()];
  }

  get first(): string {
    return this.names[0] as string;
  }

  get second(): string {
    return this.names[1] as string;
  }

  get newest(): string {
    return this.names.at(-1) as string;
  }

  bytesOf(name: string): Uint8Array {
    return (this.#files.get(name) as Uint8Array).slice();
  }

  /** @param changes files by name; null for one that is not there */
  add(name: string, about: string, changes: Record<string, Uint8Array | null>): void {
    const parts = new Map([...this.#files, ...Object.entries(changes)]);
    const kept = [...parts].filter((part): part is [string, Uint8Array] => part[1] !== null);
    this.entries.push(corpusEntry(name, about, Object.fromEntries(kept)));
  }

  /** A segment with one record's header or content changed, which its CRCs do not match any more. */
  changed(file: string, nth: number, change: RecordChange): Uint8Array {
    const bytes = this.bytesOf(file);
    change(bytes, recordOffsets(bytes)[nth] as number);
    return bytes;
  }

  addChanged(name: string, about: string, file: string, nth: number, change: RecordChange): void {
    this.add(name, about, { [file]: this.changed(file, nth, change) });
  }

  /** As `addChanged`, with CRCs that match. */
  addSealed(name: string, about: string, file: string, nth: number, change: RecordChange): void {
    this.addChanged(name, about, file, nth, (bytes, at) => {
      change(bytes, at);
      sealRecord(bytes, at, segmentOf(this.bytesOf(file)).salt);
    });
  }

  /** A segment with other records, and every CRC right. */
  addRebuilt(name: string, about: string, file: string, change: (segment: PlainSegment) => void): void {
    const segment = segmentOf(this.bytesOf(file));
    change(segment);
    this.add(name, about, { [file]: bytesOfSegment(segment) });
  }
}

function u32(field: keyof typeof HEADER, value: number): RecordChange {
  return (bytes, at) => viewOf(bytes).setUint32(at + HEADER[field], value, true);
}

/** 2^53 - 1, the largest there is. */
function mostU64(field: "sequence" | "durableUpTo"): RecordChange {
  return (bytes, at) => viewOf(bytes).setBigUint64(at + HEADER[field], 2n ** 53n - 1n, true);
}

function flip(offset: number): RecordChange {
  return (bytes, at) => {
    bytes[at + offset]! ^= 0x10;
  };
}

export async function logCorpus(): Promise<CorpusEntry[]> {
  const corpus = new LogCorpus(await intactLog());
  addFolders(corpus);
  addTails(corpus);
  addDamagedHeaders(corpus);
  addDamagedRecords(corpus);
  addMisplacedRecords(corpus);
  addSealedRecords(corpus);
  addOtherTypes(corpus);
  return corpus.entries;
}

/** The log as it is, and folders with more or fewer files. */
function addFolders(corpus: LogCorpus): void {
  const none = Object.fromEntries(corpus.names.map((name) => [name, null]));
  corpus.add("intact", "a log that was closed well", {});
  corpus.add("empty", "a folder without a segment", none);
  corpus.add("temporary-file", "a segment that was being written", {
    [`${segmentName(99)}.tmp`]: corpus.bytesOf(corpus.first).slice(0, 70),
  });
}

/** Ends of the newest segment as a crash leaves them. */
function addTails(corpus: LogCorpus): void {
  const bytes = corpus.bytesOf(corpus.newest);
  const [lastRecord, mark] = recordOffsets(bytes).slice(-2) as [number, number];
  const add = (name: string, about: string, newest: Uint8Array): void => {
    corpus.add(name, about, { [corpus.newest]: newest });
  };
  const bodyEnd = lastRecord + RECORD_HEADER_BYTES + 5;
  add("torn-header", "the end lies within the last record's header", bytes.slice(0, -20));
  add("torn-body", "the end lies within the content of the last record but the mark", bytes.slice(0, bodyEnd));
  add("unproven-records", "whole records that nothing proves durable", bytes.slice(0, mark));
  add("zero-tail", "a tail of zeros, as file systems leave it", Buffer.concat([bytes, new Uint8Array(100)]));
  add("short-newest", "the newest segment is shorter than its header", bytes.slice(0, 63));
  add("empty-newest", "the newest segment has no byte", new Uint8Array(0));
}

function addDamagedHeaders(corpus: LogCorpus): void {
  const { first, second, newest } = corpus;
  const header = (name: string, ...at: number[]) => {
    const bytes = corpus.bytesOf(name);
    for (const place of at) bytes[place]! ^= 1;
    return { [name]: bytes };
  };
  corpus.add("header-first-copy", "the first copy of a segment's header", header(second, 12));
  corpus.add("header-second-copy", "the second copy of a segment's header", header(second, 44));
  corpus.add("header-both-copies", "both copies of a segment's header", header(second, 12, 44));
  corpus.add("header-newest", "both copies of the newest segment's header", header(newest, 0, 32));
  corpus.add("wrong-name", "a segment under another one's name", { [second]: corpus.bytesOf(first) });
  corpus.add("no-first", "the first segment is not there", { [first]: null });
  corpus.add("no-second", "a segment between others is not there", { [second]: null });
}

function addDamagedRecords(corpus: LogCorpus): void {
  const { first, second, newest } = corpus;
  const ofIndex = flip(RECORD_HEADER_BYTES);
  const ofPadding = flip(RECORD_HEADER_BYTES + 21);
  const tooLong = u32("bodyLength", 2 ** 32 - 1);
  corpus.addChanged("opening-state", "an opening state that does not match its CRC", second, 0, ofIndex);
  corpus.addChanged("record-header", "one bit of a proven record's header", first, 2, flip(9));
  corpus.addChanged("record-index", "one bit of a proven record's index section", first, 2, ofIndex);
  corpus.addChanged("record-padding", "one bit of the padding behind a proven record", first, 1, ofPadding);
  corpus.addChanged("record-length", "a body length of 4 GiB that its CRC does not know of", first, 1, tooLong);
  corpus.add("two-damages", "two records apart from each other", {
    [first]: corpus.changed(first, 1, flip(50)),
    [newest]: corpus.changed(newest, 1, flip(50)),
  });
  const last = recordOffsets(corpus.bytesOf(newest)).length - 1;
  corpus.addChanged("tail-damage", "one bit of what nothing proves durable", newest, last, flip(17));
}

/** Whole records that stand where they should not. */
function addMisplacedRecords(corpus: LogCorpus): void {
  const { first, second } = corpus;
  corpus.addRebuilt("hole", "a number left out, all else right", first, ({ records }) => records.splice(2, 1));
  corpus.addRebuilt("repeated", "a record that stands twice", first, ({ records }) => {
    records.splice(2, 0, records[1]!);
  });
  corpus.addRebuilt("swapped", "two records in each other's place", first, ({ records }) => {
    [records[1], records[2]] = [records[2]!, records[1]!];
  });
  corpus.addChanged("moved", "a record's bytes copied over another one's", first, 2, (bytes, at) => {
    bytes.copyWithin(at, recordOffsets(corpus.bytesOf(first))[1] as number, at);
  });
  corpus.addRebuilt("second-opening-state", "an opening state within the segment", first, ({ records }) => {
    records.splice(2, 0, { ...records[0]!, sequence: 1 });
  });
  corpus.addRebuilt("no-opening-state", "a segment that begins with a record", second, ({ records }) =>
    records.shift(),
  );
  corpus.addRebuilt("superseded", "records at a segment's end that the next one has", first, ({ records }) => {
    const next = segmentOf(corpus.bytesOf(second)).records;
    records.push(next[1]!, next[2]!);
  });
}

/** Headers that say what cannot be, with a right CRC. */
function addSealedRecords(corpus: LogCorpus): void {
  const { first, newest } = corpus;
  const indexLength = u32("indexLength", 2 ** 32 - 1);
  const bodyLength = u32("bodyLength", 2 ** 31);
  const claim = u32("durableUpTo", 5_000);
  const most = mostU64("durableUpTo");
  corpus.addSealed("sealed-index-length", "an index length of 4 GiB, its CRC right", first, 1, indexLength);
  const about = "a body length of 2 GiB in the newest segment, its CRC right";
  corpus.addSealed("sealed-body-length", about, newest, 1, bodyLength);
  const moved = "bytes of the body given to the index section, its CRC right";
  corpus.addSealed("sealed-lengths", moved, first, 1, (bytes, at) => {
    u32("indexLength", 5)(bytes, at);
    u32("bodyLength", 16)(bytes, at);
  });
  corpus.addSealed("sealed-sequence", "the number 2^53 - 1, its CRC right", newest, 1, mostU64("sequence"));
  corpus.addSealed("sealed-claim", "a record that claims a later one to be durable, its CRC right", newest, 1, claim);
  corpus.addSealed("sealed-claim-53", "a record that claims 2^53 - 1 to be durable, its CRC right", newest, 1, most);
}

/** Records and segments of other types and versions than there are. */
function addOtherTypes(corpus: LogCorpus): void {
  const { first, second, newest } = corpus;
  corpus.addSealed("newer-record", "a record of version 2", first, 1, (bytes, at) => {
    bytes[at + 7] = 2;
  });
  corpus.addRebuilt("unknown-type", "a record of an unknown type that may be skipped", first, ({ records }) => {
    records[1] = { ...records[1]!, type: 4_000, flags: 0 };
  });
  corpus.addRebuilt(
    "unknown-type-must",
    "a record of an unknown type that must be understood",
    first,
    ({ records }) => {
      records[1] = { ...records[1]!, type: 4_000, flags: 1 };
    },
  );
  corpus.add("newer-segment", "a segment of format version 2", {
    [second]: Buffer.concat([
      encodeSegmentHeader({ ...segmentOf(corpus.bytesOf(second)), version: 2 }),
      corpus.bytesOf(second).subarray(SEGMENT_HEADER_BYTES),
    ]),
  });
  corpus.addRebuilt("only-marks", "a segment of nothing but marks behind its opening state", newest, ({ records }) => {
    for (const record of records.slice(1))
      Object.assign(record, { type: LOG_RECORD_TYPE.mark, index: new Uint8Array(0), body: new Uint8Array(0) });
  });
}
