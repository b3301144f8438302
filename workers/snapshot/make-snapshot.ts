import { CaptureIndex } from "../../storage/captures/capture-index.js";
import { FileSystemError, shortageOf } from "../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import { forEachRecord } from "../../storage/log/log-batch.js";
import type { LogStart } from "../../storage/log/log-options.js";
import { asReadDamage } from "../../storage/log/read-damage.js";
import { readLogThrough } from "../../storage/log/read-log-through.js";
import { isKnownRecordType } from "../../storage/records/record-index.js";
import { findSnapshotDamage } from "../../storage/snapshot/snapshot-damage.js";
import { quarantineSnapshot, snapshotsIn } from "../../storage/snapshot/snapshot-folder.js";
import { SnapshotError } from "../../storage/snapshot/snapshot-format.js";
import { placeInLog } from "../../storage/snapshot/snapshot-place.js";
import { SnapshotReader } from "../../storage/snapshot/snapshot-reader.js";
import { writeSnapshot } from "../../storage/snapshot/snapshot-writer.js";
import { StorageError } from "../../storage/storage-error.js";
import { View } from "../../storage/view/view.js";
import { RecorderState } from "../recorder/recorder-state.js";

export interface SnapshotRequest {
  /** Folder of the log's segments. The log may be written to meanwhile. */
  metaPath: string;
  /** Folder of the snapshots. */
  snapshotPath: string;
  /** Folder where a last snapshot that is damaged is kept. */
  quarantinePath: string;
  /** The last record to be in it; it is durable. */
  throughSequence: number;
}

/** What was made. */
export interface SnapshotMade {
  sequence: number;
  runs: number;
  bytes: number;
  /** The snapshot that it began from; null when it read the log from its start. */
  fromSequence: number | null;
}

/** Both folds of the log, as they stand behind `start`; null: at the log's start. */
export interface Folded {
  view: View;
  state: RecorderState;
  start: LogStart | null;
  /** Of the snapshot file; 0 without one. */
  sizeBytes: number;
}

/**
 * Makes a snapshot of a store: takes the last one, folds the log from there on with the very classes that open a store, and writes the
 * file, unless the last one has it all. It changes nothing else, and removes the older ones only when the new one is durable.
 *
 * @param onDamage told of stored bytes, of the log or of the last snapshot, that are damaged or that the disk does not give
 * @throws {SnapshotError} The log is damaged on the way: what was lost there is for an opening to find and to report, again and again.
 * @throws {FileSystemError} Something could not be read, or the file not be written; there is none of it then.
 */
export async function makeSnapshot(
  fileSystem: FileSystem,
  request: SnapshotRequest,
  onDamage: (error: StorageError) => void = () => {},
): Promise<SnapshotMade> {
  try {
    return await make(fileSystem, request, onDamage);
  } catch (error) {
    const damage = asReadDamage(error instanceof SnapshotError ? error.cause : error);
    if (damage !== null) onDamage(damage);
    throw error;
  }
}

async function make(
  fileSystem: FileSystem,
  request: SnapshotRequest,
  onDamage: (error: StorageError) => void,
): Promise<SnapshotMade> {
  const { metaPath, snapshotPath, throughSequence } = request;
  const { view, state, start, sizeBytes } = await lastFolded(fileSystem, request, onDamage);
  // Whoever could not read it at the start knows nothing of it.
  if (start?.sequence === throughSequence) {
    return { sequence: throughSequence, runs: view.runCount, bytes: sizeBytes, fromSequence: throughSequence };
  }
  const head = await readLogThrough({
    fileSystem,
    directory: metaPath,
    from: start,
    throughSequence,
    understandsType: isKnownRecordType,
    onRecords: (batch) => {
      view.applyBatch(batch);
      forEachRecord(batch, (record, location) => state.replay(record, location));
    },
  });
  const bytes = await writeSnapshot(fileSystem, snapshotPath, head, async (sink) => {
    await view.writeSnapshot(sink);
    await state.writeSnapshot(sink);
  });
  return { sequence: throughSequence, runs: view.runCount, bytes, fromSequence: start?.sequence ?? null };
}

/** From the last snapshot where it is of use, else from nothing; a damaged one is kept in quarantine, as an opening does it. */
async function lastFolded(
  fileSystem: FileSystem,
  request: SnapshotRequest,
  onDamage: (error: StorageError) => void,
): Promise<Folded> {
  const { newest } = await snapshotsIn(fileSystem, request.snapshotPath);
  if (newest === null) return nothingFolded();
  const path = `${request.snapshotPath}/${newest}`;
  try {
    return await readFolded(fileSystem, request.metaPath, path);
  } catch (error) {
    const damage = await damageOf(fileSystem, path);
    if (damage === null) {
      if (error instanceof SnapshotError || isOf(path, error)) return nothingFolded();
      throw error;
    }
    onDamage(new StorageError("snapshot_damaged", `snapshot ${newest}: ${damage}`));
    try {
      // The new one would take its place, and with it what tells of the disk.
      await quarantineSnapshot(fileSystem, request, newest);
    } catch (failure) {
      const cause = failure instanceof Error ? failure.message : String(failure);
      onDamage(new StorageError("snapshot_damaged", `snapshot ${newest} could not be kept in quarantine: ${cause}`));
    }
    return nothingFolded();
  }
}

/** What is wrong with its bytes; null where nothing is, or where it cannot be read for as long as something else stands in the way. */
async function damageOf(fileSystem: FileSystem, path: string): Promise<string | null> {
  try {
    return await findSnapshotDamage(fileSystem, path);
  } catch (error) {
    if (isOf(path, error)) return null;
    throw error;
  }
}

/**
 * True for a file that this service cannot read however often it tries: a link to nowhere, a pipe, one that belongs to another account. A snapshot made
 * from the log holds all that it could.
 */
function isOf(path: string, error: unknown): boolean {
  return error instanceof FileSystemError && error.path === path && shortageOf(error) === null;
}

export function nothingFolded(): Folded {
  return {
    view: new View({ reader: { read: noRead, readMany: noRead } }),
    // Whether this process retains or not: the next one may.
    state: new RecorderState(new CaptureIndex({ keepsRuns: true })),
    start: null,
    sizeBytes: 0,
  };
}

/** A snapshot, held against the log. @throws {SnapshotError} */
export async function readFolded(fileSystem: FileSystem, metaPath: string, path: string): Promise<Folded> {
  const folded = nothingFolded();
  const reader = await SnapshotReader.open(fileSystem, path);
  try {
    const start = await placeInLog(fileSystem, metaPath, reader.head);
    folded.start = start;
    folded.sizeBytes = reader.sizeBytes;
    await folded.view.loadSnapshot(reader, start.sequence);
    await folded.state.loadSnapshot(reader);
    return folded;
  } finally {
    await reader.close();
  }
}

/** A view that is only folded reads no record back. */
function noRead(): never {
  throw new Error("a fold reads nothing back");
}
