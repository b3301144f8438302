import { foldRun } from "../core/run-fold.js";
import type { RunState } from "../core/run-state.js";
import { decodeChanges } from "./change-record.js";
import type { DataDirectory } from "./data-directory.js";
import { type FileSystem, nodeFileSystem } from "./file-system.js";
import { forEachRecord, type LogRecord } from "./log-batch.js";
import { walkLog } from "./log-walk.js";
import { decodeIndex, isChangeRecordType, isKnownRecordType, RECORD_TYPE, type RecordIndex } from "./record-index.js";
import { RecoveryReportBuilder } from "./recovery-report.js";
import { StorageError } from "./storage-error.js";

export interface ReadRunOptions {
  /** Open, so that nobody changes it meanwhile. */
  dataDirectory: DataDirectory;
  fileSystem?: FileSystem;
  runId: string;
}

/**
 * One run as the log of a store that is not being served has it; undefined when no record is of it. Reads the whole log, in bounded
 * memory, and decodes the bodies of this run's records only. Damage elsewhere in the log is no concern of the run.
 *
 * @throws StorageError when the log is of a format that this release does not read, or damage took a part of the run
 */
export async function readRun({
  dataDirectory,
  fileSystem = nodeFileSystem,
  runId,
}: ReadRunOptions): Promise<RunState | undefined> {
  let run: RunState | undefined;
  let missing: StorageError | undefined;
  const fold = (record: LogRecord): void => {
    for (const change of decodeChanges(record.type, record.body)) {
      if (!("runId" in change)) continue;
      try {
        run = foldRun(run, change, record.timeUs);
        // It is the whole run: what compaction dropped before it is no loss.
        if (change.kind === "run_ended") missing = undefined;
      } catch (error) {
        missing ??= new StorageError(
          "record_missing",
          `damage to the log took a part of run ${runId}: ${(error as Error).message}`,
        );
      }
    }
  };
  await walkLog({
    fileSystem,
    directory: dataDirectory.metaPath,
    firstSequence: 1,
    understandsType: isKnownRecordType,
    builder: new RecoveryReportBuilder(),
    quarantine: async () => null,
    deliversTail: true,
    onRecords: (batch) => {
      forEachRecord(batch, (record) => {
        if (isChangeRecordType(record.type) && runIdOf(decodeIndex(record.type, record.index)) === runId) fold(record);
      });
    },
  });
  if (missing !== undefined) throw missing;
  return run;
}

function runIdOf(index: RecordIndex): string | null {
  switch (index.type) {
    case RECORD_TYPE.runCreated:
    case RECORD_TYPE.runEnded:
      return index.summary.id;
    case RECORD_TYPE.runDelta:
      return index.runId;
    default:
      return null;
  }
}
