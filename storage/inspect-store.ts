import type { DataDirectory } from "./data-directory.js";
import { droppedFrom } from "./dropped-record.js";
import { type FileSystem, nodeFileSystem } from "./file-system.js";
import { type CommittedBatch, forEachRecord, type LogRecord, type RecordLocation } from "./log-batch.js";
import { walkLog } from "./log-walk.js";
import { LOG_RECORD_TYPE } from "./record-format.js";
import { type RecoveryFinding, RecoveryReportBuilder } from "./recovery-report.js";

export interface InspectOptions {
  /** Open, so that nobody changes it meanwhile. */
  dataDirectory: DataDirectory;
  fileSystem?: FileSystem;
  understandsType(type: number): boolean;
  /** Only records from this sequence number on; default: all. */
  fromSequence?: number;
  /** What a record of the owner's says, readable. */
  describe(record: LogRecord): unknown;
  /** One item at a time; the next is read when it resolves. */
  onItem(item: InspectedItem): Promise<void> | void;
}

export type InspectedItem = InspectedRecord | { kind: "finding"; finding: RecoveryFinding };

export interface InspectedRecord {
  kind: "record";
  sequence: number;
  /** `opening_state`, `mark`, `dropped`, or the type's number. */
  type: string;
  flags: number;
  timeUs: number;
  location: RecordLocation;
  indexBytes: number;
  bodyBytes: number;
  /** What `describe` made of it, or why it could not. */
  content: unknown;
  error: string | null;
}

const OWN_NAMES = new Map<number, string>([
  [LOG_RECORD_TYPE.openingState, "opening_state"],
  [LOG_RECORD_TYPE.mark, "mark"],
  [LOG_RECORD_TYPE.dropped, "dropped"],
]);

/** Reads the whole log in order, in bounded memory, changing nothing: its records, then what was found to be wrong with it. */
export async function inspectStore(options: InspectOptions): Promise<void> {
  const { dataDirectory, fileSystem = nodeFileSystem, fromSequence = 0, describe, onItem } = options;
  const builder = new RecoveryReportBuilder();
  await walkLog({
    fileSystem,
    directory: dataDirectory.metaPath,
    firstSequence: 1,
    understandsType: (type) => options.understandsType(type),
    builder,
    quarantine: async () => null,
    deliversTail: true,
    onRecords: async (batch) => {
      for (const record of inspected(batch, fromSequence, describe)) await onItem(record);
    },
  });
  for (const finding of builder.report.findings) await onItem({ kind: "finding", finding });
}

function inspected(
  batch: CommittedBatch,
  fromSequence: number,
  describe: (record: LogRecord) => unknown,
): InspectedRecord[] {
  const records: InspectedRecord[] = [];
  forEachRecord(batch, (record, location) => {
    if (record.sequence < fromSequence) return;
    const { sequence, flags, timeUs } = record;
    const own = OWN_NAMES.get(record.type);
    const item: InspectedRecord = {
      kind: "record",
      sequence,
      type: own ?? String(record.type),
      flags,
      timeUs,
      location,
      indexBytes: record.index.length,
      bodyBytes: record.body.length,
      content: record.type === LOG_RECORD_TYPE.dropped ? { from: droppedFrom(record.index) } : null,
      error: null,
    };
    if (own === undefined) {
      try {
        item.content = describe(record);
      } catch (error) {
        item.error = error instanceof Error ? error.message : String(error);
      }
    }
    records.push(item);
  });
  return records;
}
