import type { DataDirectory } from "../../storage/disk/data-directory.js";
import { FileSystemError } from "../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import type { LogStart } from "../../storage/log/log-options.js";
import type { RecoveryReport } from "../../storage/recovery/recovery-report.js";
import { findSnapshotDamage } from "../../storage/snapshot/snapshot-damage.js";
import { quarantineSnapshot, snapshotsIn } from "../../storage/snapshot/snapshot-folder.js";
import { placeInLog } from "../../storage/snapshot/snapshot-place.js";
import { SnapshotReader } from "../../storage/snapshot/snapshot-reader.js";
import type { LogLine } from "../recorder/recorder-messages.js";
import type { RecorderState } from "../recorder/recorder-state.js";

export interface SnapshotOpeningOptions {
  fileSystem: FileSystem;
  directory: DataDirectory;
  /** A state that nothing has been folded into. */
  createState(): RecorderState;
  /** Has the front take its part of the snapshot; rejects when it does not, with `SnapshotUnreadError` where it could not read it. */
  askFront(path: string, sequence: number): Promise<void>;
  /** What the front has taken does not count. */
  discard(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/** Recorder and front have taken a snapshot. */
export interface OpenedSnapshot {
  state: RecorderState;
  start: LogStart;
  bytes: number;
}

/** Where the newest snapshot is of no use. */
export interface UnusableSnapshot {
  /** Of the file in its folder. */
  name: string;
  cause: string;
  /**
   * - `damaged`: the file itself, which is more than a snapshot that does not fit.
   * - `misfit`: it is whole, and of another log or version.
   * - `unread`: it, or what it is held against, could not be read, for a reason that may pass: it may be as good as ever.
   */
  verdict: "damaged" | "misfit" | "unread";
}

/** The snapshot could not be read, which says nothing of what it is worth. */
export class SnapshotUnreadError extends Error {
  override name = "SnapshotUnreadError";
}

export interface SnapshotOpening {
  /** Null when everything is to be read from the log. */
  opened: OpenedSnapshot | null;
  /** Still there until `settleUnusable`: what it says of the log may be all that is left of that. */
  unusable: UnusableSnapshot | null;
}

/**
 * Begins from the newest snapshot, the front and the recorder each from its part, both at the same time. Whatever is wrong with it, in the
 * file or against the log or with the reading of either, makes it as if there had been none: the log is read from its start.
 */
export async function openSnapshot(options: SnapshotOpeningOptions): Promise<SnapshotOpening> {
  const { fileSystem, directory, line } = options;
  const { newest, left } = await snapshotsIn(fileSystem, directory.snapshotPath);
  for (const name of left) await remove(fileSystem, `${directory.snapshotPath}/${name}`);
  if (newest === null) return { opened: null, unusable: null };
  const path = `${directory.snapshotPath}/${newest}`;
  const startedMs = performance.now();
  try {
    const opened = await take(path, options);
    const duration_ms = Math.round(performance.now() - startedMs);
    const { start, bytes, state } = opened;
    line("info", "began from a snapshot", { sequence: start.sequence, bytes, runs: state.runCount, duration_ms });
    return { opened, unusable: null };
  } catch (error) {
    options.discard();
    return { opened: null, unusable: { name: newest, ...(await judged(fileSystem, path, error)) } };
  }
}

async function judged(
  fileSystem: FileSystem,
  path: string,
  error: unknown,
): Promise<Pick<UnusableSnapshot, "cause" | "verdict">> {
  try {
    const damage = await findSnapshotDamage(fileSystem, path);
    if (damage !== null) return { cause: damage, verdict: "damaged" };
  } catch (failure) {
    return { cause: messageOf(failure), verdict: "unread" };
  }
  return { cause: messageOf(error), verdict: isUnread(error) ? "unread" : "misfit" };
}

function isUnread(error: unknown): boolean {
  return error instanceof FileSystemError || error instanceof SnapshotUnreadError;
}

/**
 * Removes a snapshot that is of no use, once the log is open. Where records are lost it is kept in the quarantine folder instead, durably:
 * it may know what they were; and so is one that is damaged, since that says that the disk did not keep what it was given. One that could
 * only not be read stays where it is.
 */
export async function settleUnusable(
  { fileSystem, directory, line }: Pick<SnapshotOpeningOptions, "fileSystem" | "directory" | "line">,
  { name, cause, verdict }: UnusableSnapshot,
  { findings }: Pick<RecoveryReport, "findings">,
): Promise<void> {
  const hasLost = findings.some(({ firstLost }) => firstLost !== null);
  if (!hasLost && verdict === "unread") {
    line("warn", "a snapshot could not be read, and stays: everything is read from the log", { snapshot: name, cause });
    return;
  }
  if (!hasLost && verdict === "misfit") {
    line("warn", "a snapshot is of no use, and removed: everything is read from the log", { snapshot: name, cause });
    await remove(fileSystem, `${directory.snapshotPath}/${name}`);
    return;
  }
  try {
    await quarantineSnapshot(fileSystem, directory, name);
    const reason = hasLost ? "the log has lost records" : "it is damaged, and everything is read from the log";
    line("warn", `${reason}: a snapshot is kept in quarantine`, { snapshot: name, cause });
  } catch (error) {
    // It stays where it is, and is judged anew at the next start.
    line("warn", "a snapshot could not be kept in quarantine", { snapshot: name, cause: messageOf(error) });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function take(path: string, options: SnapshotOpeningOptions): Promise<OpenedSnapshot> {
  const { fileSystem, directory, createState, askFront } = options;
  const reader = await SnapshotReader.open(fileSystem, path);
  try {
    const start = await placeInLog(fileSystem, directory.metaPath, reader.head);
    const front = askFront(path, start.sequence);
    const state = createState();
    // The front is to have answered in either case: it must not load what is about to be removed.
    const [own, others] = await Promise.allSettled([state.loadSnapshot(reader), front]);
    if (own.status === "rejected") throw own.reason;
    if (others.status === "rejected") {
      const message = `the front refused it: ${messageOf(others.reason)}`;
      throw isUnread(others.reason) ? new SnapshotUnreadError(message) : new Error(message);
    }
    return { state, start, bytes: reader.sizeBytes };
  } finally {
    await reader.close();
  }
}

async function remove(fileSystem: FileSystem, path: string): Promise<void> {
  try {
    await fileSystem.unlink(path);
  } catch {
    // A disk that does not let it go: it is judged anew at every start.
  }
}
