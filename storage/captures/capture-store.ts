import { LRUCache } from "lru-cache";
import { FileSystemError, isMissing, isNotEmpty } from "../disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { KEPT_FILES } from "../disk/open-files.js";
import { endedWithoutRoom, FAILS_WITHOUT_ROOM, type WriteRoom } from "../disk/retried-writes.js";
import { StorageError, type StorageErrorData } from "../storage-error.js";
import { CaptureFile, type CaptureFileHost } from "./capture-file.js";
import { type CaptureKind, captureMonth, capturePath } from "./capture-path.js";

/** A capture file, or the folder of its month, that should have been removed and is still there. */
export interface KeptFile {
  runId: string;
  error: FileSystemError;
}

/** What `CaptureStore.removeCaptures` did. */
export interface RemovedCaptures {
  /** Count of files that existed and were removed. */
  files: number;
  /** What could not be removed; it may be possible later. */
  kept: readonly KeptFile[];
}

/**
 * Writes the stored bytes of runs: one file for each run and kind, which grows while the run goes on. A failed write or sync ends the store for
 * good, as it ends the log: nothing that waited for it is acknowledged. It waits only when room, descriptors or memory are lacking.
 */
export class CaptureStore {
  readonly #fileSystem: FileSystem;
  readonly #capturesPath: string;
  readonly #onFailure: (failure: StorageErrorData) => void;
  readonly #files = new Map<string, CaptureFile>();
  readonly #open: LRUCache<CaptureFile, true>;
  readonly #releases = new Set<Promise<void>>();
  readonly #months = new Map<string, Promise<void>>();
  readonly #removedMonths = new Set<string>();
  /** Files that this process has created and whose names are not durable yet. Names that existed before are synced with their month. */
  readonly #newNames = new Set<string>();
  /** Descriptors that may be open at once: those kept, and as many again that are being closed. So there is always one that becomes free. */
  readonly #maximumDescriptors: number;
  #descriptors = 0;
  readonly #waiters: (() => void)[] = [];
  readonly #hosts: Record<CaptureKind, CaptureFileHost>;
  #pendingBytes = 0;
  #appendedBytes: Record<CaptureKind, number> = { capture: 0, report: 0 };
  #failure: StorageErrorData | null = null;
  readonly #room: WriteRoom;

  constructor(options: {
    fileSystem: FileSystem;
    /** The folder that holds the folders of the months. It exists. */
    capturesPath: string;
    /** Descriptors kept open; for a moment there can be twice as many. */
    maximumOpenFiles?: number;
    /** Called like `LogOptions.onFailure`. */
    onFailure?: (failure: StorageErrorData) => void;
    /** What to do when room or descriptors are lacking (retried-writes.ts). By default the operation fails, and the store with it. */
    room?: WriteRoom;
  }) {
    const room = options.room ?? FAILS_WITHOUT_ROOM;
    this.#room = room;
    this.#fileSystem = options.fileSystem;
    this.#capturesPath = options.capturesPath;
    this.#onFailure = options.onFailure ?? (() => {});
    const maximumOpenFiles = options.maximumOpenFiles ?? KEPT_FILES;
    this.#maximumDescriptors = 2 * maximumOpenFiles;
    this.#open = new LRUCache<CaptureFile, true>({ max: maximumOpenFiles, dispose: (_, file) => this.#release(file) });
    const hostOf = (kind: CaptureKind): CaptureFileHost => ({
      room,
      open: (path, keptBytes) => room.attempt(() => this.#openFile(path, keptBytes)),
      close: async (file) => {
        await file.close().finally(() => this.#leaveDescriptor());
      },
      syncName: (path) => this.#syncName(path),
      touch: (file) => this.#open.set(file, true),
      assertWorking: () => {
        if (this.#failure !== null)
          throw new StorageError(this.#failure.code, this.#failure.message, this.#failure.params);
      },
      fail: (error) => this.#fail(error),
      count: (bytes) => {
        this.#pendingBytes += bytes;
        if (bytes > 0) this.#appendedBytes[kind] += bytes;
      },
    });
    this.#hosts = { capture: hostOf("capture"), report: hostOf("report") };
  }

  /** Bytes appended and not yet written: their payloads are still in memory. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Bytes appended to files of each kind since the store was made. */
  get appendedBytes(): Readonly<Record<CaptureKind, number>> {
    return this.#appendedBytes;
  }

  /** Months whose folders this store has removed, or is removing, because they were empty. */
  get removedMonths(): ReadonlySet<string> {
    return this.#removedMonths;
  }

  get failure(): StorageErrorData | null {
    return this.#failure;
  }

  /**
   * The run's file of that kind; it stays the same object until `finish`.
   *
   * @param committedEnd where the bytes that the log's records name end; used only by the first call for this file
   */
  file(runId: string, kind: CaptureKind, committedEnd: number): CaptureFile {
    const path = `${this.#capturesPath}/${capturePath(runId, kind)}`;
    let file = this.#files.get(path);
    if (file === undefined) {
      file = new CaptureFile(this.#hosts[kind], path, committedEnd);
      this.#files.set(path, file);
    }
    return file;
  }

  /** Closes the run's files once they are written and synced. The run stores nothing more. */
  finish(runId: string): void {
    for (const kind of ["capture", "report"] as const) {
      const path = `${this.#capturesPath}/${capturePath(runId, kind)}`;
      const file = this.#files.get(path);
      if (file === undefined) continue;
      this.#files.delete(path);
      this.#open.delete(file);
    }
  }

  /** Does what `Log.verifyName` does, for all files that are open for writing. Never rejects. */
  async verifyNames(): Promise<void> {
    for (const [path, file] of this.#files) {
      if ((await file.hasName(this.#fileSystem)) || this.#files.get(path) !== file) continue;
      this.#fail(new Error(`somebody removed or replaced ${path}`), "a file that the service was writing is gone");
      return;
    }
  }

  /** Closes all files once they are written and synced. */
  async close(): Promise<void> {
    this.#open.clear();
    while (this.#releases.size > 0) await Promise.all(this.#releases);
    this.#files.clear();
  }

  #release(file: CaptureFile): void {
    const release = file.release().finally(() => this.#releases.delete(release));
    this.#releases.add(release);
  }

  /**
   * Removes the captures of ended runs for good: unlinks the files, makes that durable, then removes the folders of months that are empty now. A
   * missing file is no error, so a removal that a crash interrupted can simply be repeated. A file that cannot be unlinked does not hold up the
   * others; it is returned in `kept`, and so is a folder, with a run that was in it.
   *
   * @param mayRemoveMonth false for a month into which new runs can still fall
   * @throws FileSystemError for a failed sync; some files may be removed then. The store fails with it: a later sync could succeed without doing
   * what the failed one left undone, and the removal must not count as durable.
   */
  async removeCaptures(
    runIds: readonly string[],
    mayRemoveMonth: (month: string) => boolean,
  ): Promise<RemovedCaptures> {
    let files = 0;
    const kept: KeptFile[] = [];
    /** Months of the removed files, each with a run in it. */
    const months = new Map<string, string>();
    for (const runId of runIds) {
      const path = `${this.#capturesPath}/${capturePath(runId, "capture")}`;
      this.#files.get(path)?.loseName();
      try {
        await this.#fileSystem.unlink(path);
        files++;
      } catch (error) {
        if (!isMissing(error)) kept.push(keptFile(runId, error));
      }
      months.set(captureMonth(runId), runId);
    }
    let hasRemovedMonth = false;
    for (const [month, runId] of months) {
      const path = `${this.#capturesPath}/${month}`;
      // Also when every file was gone: whoever removed it may have crashed before this sync.
      const isThere = await this.#syncDirectory(path);
      if (!mayRemoveMonth(month)) continue;
      // Also when somebody else removed the folder: nothing in it is missed any more.
      this.#removedMonths.add(month);
      this.#months.delete(month);
      if (!isThere) continue;
      try {
        await this.#fileSystem.removeDirectory(path);
        hasRemovedMonth = true;
      } catch (error) {
        if (isMissing(error)) continue;
        this.#removedMonths.delete(month);
        if (!isNotEmpty(error)) kept.push(keptFile(runId, error));
      }
    }
    if (hasRemovedMonth) await this.#syncDirectory(this.#capturesPath);
    return { files, kept };
  }

  /** False when the folder does not exist. */
  async #syncDirectory(path: string): Promise<boolean> {
    try {
      await this.#room.attempt(() => this.#fileSystem.syncDirectory(path));
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      this.#fail(error);
      throw error;
    }
  }

  async #openFile(path: string, keptBytes: number | null): Promise<StoreFile> {
    while (this.#descriptors >= this.#maximumDescriptors) {
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
    this.#descriptors++;
    try {
      const file = await this.#openInMonth(path);
      try {
        const sizeBytes = await file.size();
        // An empty file is new. It may replace a lost one that records name, or come from a process that crashed before it wrote.
        if (sizeBytes === 0) this.#newNames.add(path);
        if (keptBytes !== null && sizeBytes > keptBytes) await file.truncate(keptBytes);
      } catch (error) {
        await file.close();
        throw error;
      }
      return file;
    } catch (error) {
      this.#leaveDescriptor();
      throw error;
    }
  }

  async #openInMonth(path: string): Promise<StoreFile> {
    const month = path.slice(this.#capturesPath.length + 1, path.lastIndexOf("/"));
    await this.#ensureMonth(month);
    try {
      return await this.#fileSystem.open(path, "createOrUpdate");
    } catch (error) {
      if (!isMissing(error)) throw error;
      // Retention has just removed the folder as empty, or somebody else has removed it. So it is made once more.
      this.#months.delete(month);
      await this.#ensureMonth(month);
      return this.#fileSystem.open(path, "createOrUpdate");
    }
  }

  async #syncName(path: string): Promise<void> {
    if (!this.#newNames.has(path)) return;
    await this.#room.attempt(() => this.#fileSystem.syncDirectory(path.slice(0, path.lastIndexOf("/"))));
    this.#newNames.delete(path);
  }

  #leaveDescriptor(): void {
    this.#descriptors--;
    this.#waiters.shift()?.();
  }

  /**
   * Makes the folder of a month, and syncs it with the names in it, once for each month and process. Folder and files of an earlier process need
   * not be durable, because it may have acknowledged without a sync.
   */
  #ensureMonth(month: string): Promise<void> {
    let ensured = this.#months.get(month);
    if (ensured === undefined) {
      ensured = this.#makeMonth(`${this.#capturesPath}/${month}`);
      this.#months.set(month, ensured);
      // If there was no room for the folder, the next attempt makes it. After any other failure there is no next attempt.
      ensured.catch(() => this.#months.delete(month));
    }
    return ensured;
  }

  /** Makes the folder of all captures too, if somebody removed it. It is synced even if it exists: whoever made it may not have synced it. */
  async #makeMonth(path: string): Promise<void> {
    await this.#fileSystem.makeDirectory(this.#capturesPath);
    await this.#fileSystem.syncDirectory(this.#capturesPath.slice(0, this.#capturesPath.lastIndexOf("/")));
    const isNew = await this.#fileSystem.makeDirectory(path);
    await this.#fileSystem.syncDirectory(this.#capturesPath);
    if (!isNew) await this.#fileSystem.syncDirectory(path);
  }

  #fail(error: unknown, what = "a write or sync failed"): void {
    const isWithoutRoom = endedWithoutRoom(error, this.#room);
    if (this.#failure !== null && (isWithoutRoom || this.#failure.params.without_room !== true)) return;
    const cause = error instanceof Error ? error.message : String(error);
    this.#failure = {
      code: "capture_failed",
      message: `no captures are stored any more, because ${isWithoutRoom ? "there was no room for one" : what}: ${cause}`,
      params: { cause, since: new Date().toISOString(), without_room: isWithoutRoom },
    };
    this.#onFailure(this.#failure);
  }
}

function keptFile(runId: string, error: unknown): KeptFile {
  if (error instanceof FileSystemError) return { runId, error };
  throw error;
}
