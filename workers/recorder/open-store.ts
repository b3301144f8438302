import type { DataDirectory } from "../../storage/disk/data-directory.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import type { WriteRoom } from "../../storage/disk/retried-writes.js";
import { type CommittedBatch, forEachRecord } from "../../storage/log/committed-batch.js";
import { Log } from "../../storage/log/log.js";
import type { LogOptions } from "../../storage/log/log-options.js";
import { findLogEvidence, noteLostLog } from "../../storage/recovery/log-evidence.js";
import { quarantinedFiles, withoutFoundAgain } from "../../storage/recovery/quarantine.js";
import type { LogLine } from "./recorder-messages.js";
import type { RecorderState } from "./recorder-state.js";

/**
 * The link bounds what its own messages add to the log. The service also appends records by itself, such as a run's end
 * of up to 16 MiB. This leaves room for many of the largest at once.
 */
const MAXIMUM_LOG_PENDING_BYTES = 1024 * 1024 * 1024;

export interface OpenStoreOptions
  extends Pick<LogOptions, "durability" | "segmentBytes" | "timers" | "beforeWrite" | "onCommitted" | "onFailure"> {
  fileSystem: FileSystem;
  directory: DataDirectory;
  room: WriteRoom;
  wallUs(): number;
  /** The state that the log is folded into. It must be empty. */
  state: RecorderState;
  /** Gives a batch that the log held. The next batch is read when the promise has resolved. */
  onReplayed(batch: CommittedBatch): Promise<void> | undefined;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

export interface OpenedStore {
  log: Log;
  state: RecorderState;
  /** ISO 8601. */
  openedAt: string;
  /** Names of files in the quarantine folder that earlier starts put there. */
  earlierDamage: string[];
  /** Number of runs that lost records in the log. */
  damagedRuns: number;
}

/**
 * Opens the store in a data directory. It reads hint files and the newest segment, and reports what it found.
 *
 * @throws StorageError, FileSystemError; the log is closed then
 */
export async function openStore(options: OpenStoreOptions): Promise<OpenedStore> {
  const { fileSystem, directory, room, state, line } = options;
  const earlier = await quarantinedFiles(fileSystem, directory.quarantinePath);
  const evidence = await findLogEvidence(fileSystem, directory);
  const openedAt = new Date(options.wallUs() / 1000).toISOString();
  if (evidence !== null) await room.attempt(() => noteLostLog(fileSystem, directory, evidence, openedAt));
  const log = await Log.open({
    ...options,
    directory: directory.metaPath,
    quarantineDirectory: directory.quarantinePath,
    maximumPendingBytes: MAXIMUM_LOG_PENDING_BYTES,
    usesHints: true,
    evidence,
    openingState: () => state.openingState(),
    onRecords(batch) {
      forEachRecord(batch, (record, location) => state.replay(record, location, batch.isHint));
      return options.onReplayed(batch);
    },
  });
  try {
    const damagedRuns = state.finishReplay();
    for (const { runId, lostChanges, message } of damagedRuns) {
      line("warn", "a run lost records because the log is damaged", {
        run_id: runId,
        lost_changes: lostChanges,
        message,
      });
    }
    reportRecovery(log, line);
    const earlierDamage = withoutFoundAgain(earlier, log.recovery);
    return { log, state, openedAt, earlierDamage, damagedRuns: damagedRuns.length };
  } catch (error) {
    // A failed log rejects here too. The error that made the start fail is the one to report.
    await log.close().catch(() => {});
    throw error;
  }
}

function reportRecovery(log: Log, line: OpenStoreOptions["line"]): void {
  const { findings, segments, hints, records, bytes, corruptionCount, lostRecords } = log.recovery;
  const counts = { segments, hints, records, bytes, damages: corruptionCount, lost_records: lostRecords };
  const level = corruptionCount > 0 ? "warn" : "info";
  line(level, "opened the log", counts);
  for (const finding of findings) line(level, "found while opening the log", { ...finding });
}
