import type { Change } from "../../core/link/change.js";
import type { LogRecord } from "../../storage/log/committed-batch.js";
import { decodeChanges } from "../../storage/records/change-record.js";
import { type Origin, RecordDecodeError } from "../../storage/records/record-index.js";
import { StorageError } from "../../storage/storage-error.js";

interface UnfoldedRecord {
  type: number;
  timeUs: number;
  producer: string | null;
  body: Uint8Array;
}

/** A run that lost records in the log. */
export interface DamagedRun {
  runId: string;
  lostChanges: number;
  message: string;
}

/**
 * Records of runs that have not ended, kept while the log is read. Most runs end in it, and their deltas are never
 * decoded. A run that has ended, but has something to be made of its captures, keeps its last record.
 */
export class UnfoldedRuns {
  readonly #records = new Map<string, UnfoldedRecord[]>();

  /** Copies what it keeps. */
  keep(runId: string, { type, timeUs, body }: LogRecord, origin: Origin | null): void {
    const record = { type, timeUs, producer: origin?.producer ?? null, body: body.slice() };
    const records = this.#records.get(runId);
    if (records === undefined) this.#records.set(runId, [record]);
    else records.push(record);
  }

  delete(runId: string): void {
    this.#records.delete(runId);
  }

  /**
   * Applies all changes, run by run. An error from `apply` means that an earlier change was lost.
   *
   * @throws StorageError `record_undecodable`
   */
  fold(apply: (change: Change, timeUs: number, producer: string | null) => void): DamagedRun[] {
    const damaged: DamagedRun[] = [];
    for (const [runId, records] of this.#records) {
      let lostChanges = 0;
      let message = "";
      for (const record of records) {
        for (const change of changesOf(runId, record)) {
          try {
            apply(change, record.timeUs, record.producer);
          } catch (error) {
            lostChanges++;
            message = error instanceof Error ? error.message : String(error);
          }
        }
      }
      if (lostChanges > 0) damaged.push({ runId, lostChanges, message });
    }
    return damaged;
  }
}

function changesOf(runId: string, { type, body }: UnfoldedRecord): Change[] {
  try {
    return decodeChanges(type, body);
  } catch (error) {
    if (!(error instanceof RecordDecodeError)) throw error;
    throw undecodable(`a record of run ${runId}`, error);
  }
}

/**
 * The CRCs of this record are right. So it is no damage, but something that no release wrote. If it were left out,
 * acknowledged data could be lost.
 */
export function undecodable(which: string, error: RecordDecodeError): StorageError {
  return new StorageError("record_undecodable", `${which} cannot be decoded: ${error.message}`);
}
