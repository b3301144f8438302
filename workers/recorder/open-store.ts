import type { DataDirectory } from "../../storage/disk/data-directory.js";
import type { FileSystem } from "../../storage/disk/file-system.js";
import type { WriteRoom } from "../../storage/disk/write-room.js";
import { Log } from "../../storage/log/log.js";
import { type CommittedBatch, forEachRecord } from "../../storage/log/log-batch.js";
import type { LogOptions } from "../../storage/log/log-options.js";
import { quarantinedFiles, withoutFoundAgain } from "../../storage/log/quarantine.js";
import { isKnownRecordType } from "../../storage/records/record-index.js";
import { findLogEvidence, noteLostLog } from "../../storage/recovery/log-evidence.js";
import {
  type OpenedSnapshot,
  openSnapshot,
  type SnapshotOpeningOptions,
  settleUnusable,
} from "../snapshot/snapshot-opening.js";
import type { LogLine } from "./recorder-messages.js";
import type { RecorderState } from "./recorder-state.js";

/**
 * Records of the service's own (a run's end of up to 16 MiB each) come beside those of the link, which the link bounds: room for the
 * largest of them at once.
 */
const MAXIMUM_LOG_PENDING_BYTES = 1024 * 1024 * 1024;

export interface OpenStoreOptions
  extends Pick<SnapshotOpeningOptions, "createState" | "askFront" | "discard">,
    Pick<LogOptions, "durability" | "segmentBytes" | "timers" | "onCommitted" | "onFailure"> {
  fileSystem: FileSystem;
  directory: DataDirectory;
  room: WriteRoom;
  wallUs(): number;
  /** The state that the log is folded into: that of the snapshot, or one that is new. Called once, before the log is read. */
  onState(state: RecorderState): void;
  /** A batch that the log held, behind the snapshot; the next one comes when the promise has resolved. */
  onReplayed(batch: CommittedBatch): Promise<void> | undefined;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

export interface OpenedStore {
  log: Log;
  state: RecorderState;
  snapshot: OpenedSnapshot | null;
  /** ISO 8601. */
  openedAt: string;
  /** Names of what the quarantine folder has of earlier starts. */
  earlierDamage: string[];
  /** The snapshot that was found damaged, and what is wrong with it. */
  damagedSnapshot: { name: string; cause: string } | null;
  /** Runs of which the log lost records. */
  damagedRuns: number;
}

/**
 * Opens what a data directory holds: takes the newest snapshot, reads the log behind it, and says what was found.
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
      line("warn", "a run lost records to damage of the log", { run_id: runId, lost_changes: lostChanges, message });
    }
    reportRecovery(log, line);
    const earlierDamage = withoutFoundAgain(earlier, log.recovery);
    const damagedSnapshot = unusable?.verdict === "damaged" ? unusable : null;
    return { log, state, snapshot, openedAt, earlierDamage, damagedSnapshot, damagedRuns: damagedRuns.length };
  } catch (error) {
    // A log that failed says so again; what made the start fail is told.
    await log.close().catch(() => {});
    throw error;
  }
}

function reportRecovery(log: Log, line: OpenStoreOptions["line"]): void {
  const { findings, ...counts } = log.recovery;
  const level = log.recovery.corruptionCount > 0 ? "warn" : "info";
  line(level, "opened the log", { ...counts });
  for (const finding of findings) line(level, "found while opening the log", { ...finding });
}
