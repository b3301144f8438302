import type { DataDirectory } from "../disk/data-directory.js";
import { nodeFileSystem } from "../disk/file-system.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { tolerantDisk } from "../disk/tolerant-reads.js";
import { type UnreadablePlace, UnreadablePlaces } from "../disk/unreadable-places.js";
import { type CommittedBatch, forEachRecord, type LogRecord, type RecordLocation } from "../log/committed-batch.js";
import { LOG_RECORD_TYPE } from "../log/record-format.js";
import { walkLog } from "../recovery/log-walk.js";
import { type RecoveryFinding, RecoveryReportBuilder } from "../recovery/recovery-report.js";

export interface InspectOptions {
  dataDirectory: DataDirectory;
  fileSystem?: FileSystem;
  /** False for a record that is not wanted; default: all are. */
  selects?(record: LogRecord, location: RecordLocation): boolean;
  /** False for a finding that is not wanted; default: all are. */
  selectsFinding?(finding: RecoveryFinding): boolean;
  /** A record's content in a readable form. Also called for the log's own records, except marks. */
  describe(record: LogRecord): unknown;
  /** Called for one item at a time; the next is read when it resolves. */
  onItem(item: InspectedItem): Promise<void> | void;
}

export type InspectedItem =
  | InspectedRecord
  | { kind: "finding"; finding: RecoveryFinding }
  /** Bytes that the disk cannot read. The findings that follow from them come before. */
  | ({ kind: "unreadable" } & UnreadablePlace);

export interface InspectedRecord {
  kind: "record";
  sequence: number;
  /** `opening_state`, `mark`, or the type's number. */
  type: string;
  flags: number;
  timeUs: number;
  location: RecordLocation;
  indexBytes: number;
  bodyBytes: number;
  /** What `describe` returned, or why it failed. */
  content: unknown;
  error: string | null;
}

const OWN_NAMES = new Map<number, string>([
  [LOG_RECORD_TYPE.openingState, "opening_state"],
  [LOG_RECORD_TYPE.mark, "mark"],
]);

/**
 * Reads the whole log in order, in bounded memory, without changing anything: first its records, then the findings, then the unreadable bytes.
 */
export async function inspectStore(options: InspectOptions): Promise<void> {
  const { dataDirectory, onItem } = options;
  const unreadable = new UnreadablePlaces();
  const builder = new RecoveryReportBuilder();
  await walkLog({
    fileSystem: tolerantDisk(options.fileSystem ?? nodeFileSystem, unreadable.note),
    isUnreadable: (path) => unreadable.has(path),
    directory: dataDirectory.metaPath,
    builder,
    quarantine: async () => null,
    deliversTail: true,
    onRecords: async (batch) => {
      for (const record of inspected(batch, options)) await onItem(record);
    },
  });
  for (const finding of builder.report.findings) {
    if (options.selectsFinding?.(finding) ?? true) await onItem({ kind: "finding", finding });
  }
  for (const place of unreadable.all) await onItem({ kind: "unreadable", ...place });
}

function inspected(batch: CommittedBatch, { selects, describe }: InspectOptions): InspectedRecord[] {
  const records: InspectedRecord[] = [];
  forEachRecord(batch, (record, location) => {
    const { sequence, flags, timeUs, type } = record;
    if (selects !== undefined && !selects(record, location)) return;
    const item: InspectedRecord = {
      kind: "record",
      sequence,
      type: OWN_NAMES.get(type) ?? String(type),
      flags,
      timeUs,
      location,
      indexBytes: record.index.length,
      bodyBytes: record.body.length,
      content: null,
      error: null,
    };
    if (type !== LOG_RECORD_TYPE.mark) {
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
