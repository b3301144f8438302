import type { Extent } from "../core/capture.js";
import type { Change } from "../core/change.js";
import { type CaptureKind, capturePath, FILE_OF_KIND } from "../storage/capture-path.js";
import { decodeChanges, decodeRefusal } from "../storage/change-record.js";
import type { NamedExtents } from "../storage/check-store.js";
import type { LogRecord } from "../storage/log-batch.js";
import { decodeIndex, isChangeRecordType, RECORD_TYPE } from "../storage/record-index.js";

/**
 * Decodes a record and gives the stored bytes that it is the first to name: a consolidated record repeats those of the run's deltas,
 * but may be the tombstone of its captures.
 * @throws RecordDecodeError
 */
export function extentsFirstNamedBy(record: LogRecord): NamedExtents[] {
  const { type } = record;
  if (!isChangeRecordType(type)) throw new Error(`records of type ${type} are not known to this release`);
  decodeIndex(type, record.index);
  if (type === RECORD_TYPE.refusal) {
    decodeRefusal(record.body);
    return [];
  }
  return decodeChanges(type, record.body).flatMap(extentsOf);
}

function extentsOf(change: Change): NamedExtents[] {
  switch (change.kind) {
    case "frame_lines_stored":
      return [named(change.runId, "capture", change.batch)];
    case "series_appended":
      return [named(change.runId, "capture", change.append)];
    case "file_stored":
      if (change.file.lengthBytes === 0) return [];
      return [named(change.runId, FILE_OF_KIND[change.file.storedIn ?? "reports"], change.file)];
    case "run_ended":
      if (change.run.capturesRemovedAtUs === null) return [];
      return [{ path: capturePath(change.runId, "capture"), extents: [], isRemoved: true }];
    default:
      return [];
  }
}

function named(runId: string, kind: CaptureKind, { offset, lengthBytes, crc32 }: Extent): NamedExtents {
  return { path: capturePath(runId, kind), extents: [{ offset, lengthBytes, crc32 }] };
}
