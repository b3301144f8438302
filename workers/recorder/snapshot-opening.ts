import type { DataDirectory } from "../../storage/data-directory.js";
import type { FileSystem } from "../../storage/file-system.js";
import type { LogStart } from "../../storage/log-options.js";
import type { SegmentMoves } from "../../storage/segment-moves.js";
import { snapshotsIn } from "../../storage/snapshot-folder.js";
import { placeInLog } from "../../storage/snapshot-place.js";
import { SnapshotReader } from "../../storage/snapshot-reader.js";
import type { LogLine } from "./recorder-messages.js";
import type { RecorderState } from "./recorder-state.js";

export interface SnapshotOpeningOptions {
  fileSystem: FileSystem;
  directory: DataDirectory;
  /** A state that nothing has been folded into. */
  createState(): RecorderState;
  /** Has the front take its part of the snapshot; rejects when it does not. */
  askFront(path: string, sequence: number, moves: SegmentMoves[]): Promise<void>;
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

/**
 * Begins from the newest snapshot, the front and the recorder each from its part, both at the same time. Whatever is wrong with it, in the
 * file or against the log, makes it as if there had been none: it is removed, and the log is read from its start.
 */
export async function openSnapshot(options: SnapshotOpeningOptions): Promise<OpenedSnapshot | null> {
  const { fileSystem, directory, line } = options;
  const { newest, left } = await snapshotsIn(fileSystem, directory.snapshotPath);
  for (const name of left) await remove(fileSystem, `${directory.snapshotPath}/${name}`);
  if (newest === null) return null;
  const path = `${directory.snapshotPath}/${newest}`;
  const startedMs = performance.now();
  try {
    const opened = await take(path, options);
    const duration_ms = Math.round(performance.now() - startedMs);
    const { start, bytes, state } = opened;
    line("info", "began from a snapshot", { sequence: start.sequence, bytes, runs: state.runCount, duration_ms });
    return opened;
  } catch (error) {
    options.discard();
    const cause = error instanceof Error ? error.message : String(error);
    line("warn", "a snapshot is of no use, and removed: everything is read from the log", { snapshot: newest, cause });
    await remove(fileSystem, path);
    return null;
  }
}

async function take(path: string, options: SnapshotOpeningOptions): Promise<OpenedSnapshot> {
  const { fileSystem, directory, createState, askFront } = options;
  const reader = await SnapshotReader.open(fileSystem, path);
  try {
    const { start, moves } = await placeInLog(fileSystem, directory.metaPath, reader.head);
    const front = askFront(path, start.sequence, moves);
    const state = createState();
    // The front is to have answered in either case: it must not load what is about to be removed.
    const [own, others] = await Promise.allSettled([state.loadSnapshot(reader, moves), front]);
    if (own.status === "rejected") throw own.reason;
    if (others.status === "rejected") throw new Error(`the front refused it: ${(others.reason as Error).message}`);
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
