import type { DataDirectory } from "../../storage/disk/data-directory.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import type { WriteRoom } from "../../storage/disk/write-room.js";
import { Log } from "../../storage/log/log.js";
import { type CommittedBatch, forEachRecord } from "../../storage/log/log-batch.js";
import type { LogOptions } from "../../storage/log/log-options.js";
import { isKnownRecordType } from "../../storage/records/record-index.js";
import { findLogEvidence, noteLostLog } from "../../storage/recovery/log-evidence.js";
import { quarantinedFiles, withoutFoundAgain } from "../../storage/recovery/quarantine.js";
import {
  type OpenedSnapshot,
  openSnapshot,
  type SnapshotOpeningOptions,
  settleUnusable,
} from "../snapshot/snapshot-opening.js";
import type { LogLine } from "./recorder-messages.js";
import type { RecorderState } from "./recorder-state.js";

/**
 * The link bounds what its own messages add to the log. Beside them the service appends records itself, such as a run's end of up to
 * 16 MiB. This leaves room for many of the largest at once.
 */
const MAXIMUM_LOG_PENDING_BYTES = 1024 * 1024 * 1024;

export interface OpenStoreOptions
  extends Pick<SnapshotOpeningOptions, "createState" | "askFront" | "discard">,
    Pick<LogOptions, "durability" | "segmentBytes" | "timers" | "onCommitted" | "onFailure"> {
  fileSystem: FileSystem;
  directory: DataDirectory;
  room: WriteRoom;
  wallUs(): number;
  /** Gives the state that the log is folded into: the snapshot's or a new one. Called once, before the log is read. */
  onState(state: RecorderState): void;
  /** Gives a batch that the log held behind the snapshot. The next batch is read when the promise has resolved. */
  onReplayed(batch: CommittedBatch): Promise<void> | undefined;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

export interface OpenedStore {
  log: Log;
  state: RecorderState;
  snapshot: OpenedSnapshot | null;
  /** ISO 8601. */
  openedAt: string;
  /** Names of files in the quarantine folder that earlier starts put there. */
  earlierDamage: string[];
  /** The snapshot that was found damaged, and what is wrong with it. */
  damagedSnapshot: { name: string; cause: string } | null;
  /** Number of runs that lost records in the log. */
  damagedRuns: number;
}

/**
 * Opens the store in a data directory: takes the newest snapshot, reads the log behind it, and reports what was found.
 *
 * @throws StorageError, FileSystemError; the log is closed then
 */
export async function openStore(options: OpenStoreOptions): Promise<OpenedStore> {
  const { fileSystem, directory, room, line } = options;
  const { opened: snapshot, unusable } = await openSnapshot(options);
  const state = snapshot?.state ?? options.createState();
  options.onState(state);
  const earlier = await quarantinedFiles(fileSystem, directory.quarantinePath);
  const evidence = snapshot === null ? await findLogEvidence(fileSystem, directory) : null;
  const openedAt = new Date(options.wallUs() / 1000).toISOString();
  if (evidence !== null) await room.attempt(() => noteLostLog(fileSystem, directory, evidence, openedAt));
  const log = await Log.open({
    ...options,
    directory: directory.metaPath,
    quarantineDirectory: directory.quarantinePath,
    maximumPendingBytes: MAXIMUM_LOG_PENDING_BYTES,
    understandsType: isKnownRecordType,
    from: snapshot?.start,
    usesHints: true,
    evidence,
    openingState: () => state.openingState(),
    onRecords(batch) {
      forEachRecord(batch, (record, location) => state.replay(record, location));
      return options.onReplayed(batch);
    },
  });
  try {
    if (unusable !== null) await settleUnusable(options, unusable, log.recovery);
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
    const damagedSnapshot = unusable?.verdict === "damaged" ? unusable : null;
    return { log, state, snapshot, openedAt, earlierDamage, damagedSnapshot, damagedRuns: damagedRuns.length };
  } catch (error) {
    // A failed log rejects here too. The error that made the start fail is the one to report.
    await log.close().catch(() => {});
    throw error;
  }
}

function reportRecovery(log: Log, line: OpenStoreOptions["line"]): void {
  const { findings, unhinted: _, ...counts } = log.recovery;
  const level = log.recovery.corruptionCount > 0 ? "warn" : "info";
  line(level, "opened the log", { ...counts });
  for (const finding of findings) line(level, "found while opening the log", { ...finding });
}
