import type { NamedExtents } from "../storage/check-store.js";
import type { LogRecord } from "../storage/log-batch.js";
import { decodeIndex, isChangeRecordType, RECORD_TYPE, RecordDecodeError } from "../storage/record-index.js";
import { UuidTable } from "../storage/uuid-table.js";
import { extentsFirstNamedBy } from "./stored-extents.js";

/** Decodes the records of a store one after the other, for `check`: each whole, and index section and body of the same run. */
export class RecordVerifier {
  readonly #runs = new UuidTable();

  /** Runs of which there was a record. */
  get runs(): number {
    return this.#runs.size;
  }

  /**
   * Gives what the record is the first to name.
   * @throws RecordDecodeError
   */
  verify(record: LogRecord): NamedExtents[] {
    const runId = runOf(record);
    if (runId !== null) this.#runs.set(runId, 0);
    const named = extentsFirstNamedBy(record);
    for (const { path } of named) {
      if (runId === null || !path.includes(runId))
        throw new RecordDecodeError(`the body names ${path}, the index ${runId}`);
    }
    return named;
  }
}

/** The run that the record is of, by its index section; null for one of no run. */
export function runOf({ type, index }: Pick<LogRecord, "type" | "index">): string | null {
  if (!isChangeRecordType(type)) return null;
  const decoded = decodeIndex(type, index);
  switch (decoded.type) {
    case RECORD_TYPE.runCreated:
    case RECORD_TYPE.runEnded:
      return decoded.summary.id;
    case RECORD_TYPE.runDelta:
      return decoded.runId;
    default:
      return null;
  }
}
