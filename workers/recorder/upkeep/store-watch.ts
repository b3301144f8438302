import { since } from "../../../core/health.js";
import type { Timers } from "../../../core/timers.js";
import type { CaptureStore } from "../../../storage/captures/capture-store.js";
import type { LockedDataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { restoreLayout } from "../../../storage/disk/restore-layout.js";
import type { Log } from "../../../storage/log/log.js";
import type { LogLine } from "../recorder-messages.js";

/** One look costs a few calls of stat. */
export const LOOK_INTERVAL_MS = 5_000;

export interface StoreWatchOptions {
  timers: Timers;
  wallUs(): number;
  fileSystem: FileSystem;
  directory: Omit<LockedDataDirectory, "release">;
  log(): Pick<Log, "verifyName"> | undefined;
  captures: Pick<CaptureStore, "verifyNames">;
  /** Listens again if the cell link's socket file was removed or replaced. @returns true if it was; throws if it cannot listen */
  restoreSocket(): Promise<boolean>;
  /** Called when health may have changed. */
  onChange(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/**
 * Checks while the store is open that its files, folders and socket are still in place: people and scripts remove and replace them. What
 * can be made again is; health reports the rest.
 */
export class StoreWatch {
  readonly #options: StoreWatchOptions;
  #timer: unknown = null;
  #lockFault: string | null = null;
  #socketFault: string | null = null;
  #capturesFault: string | null = null;
  #layoutFault: string | null = null;
  /** Identity of the captures folder at the first look. */
  #capturesIdentity: string | undefined;
  #isStopped = false;

  constructor(options: StoreWatchOptions) {
    this.#options = options;
  }

  /** What is wrong with the directory's lock, for people; null if nothing is. It never goes away: a second service may have opened the directory. */
  get lockFault(): string | null {
    return this.#lockFault;
  }

  /** What is wrong with the socket or a folder, for people; null if nothing is. */
  get placeFault(): string | null {
    const faults = [this.#socketFault, this.#capturesFault, this.#layoutFault].filter((one) => one !== null);
    return faults.length === 0 ? null : faults.join("; ");
  }

  async start(): Promise<void> {
    await this.#lookAtFolders();
    this.#arm();
  }

  #arm(): void {
    if (this.#isStopped) return;
    this.#timer = this.#options.timers.set(() => {
      void this.#look().then(() => this.#arm());
    }, LOOK_INTERVAL_MS);
  }

  stop(): void {
    this.#isStopped = true;
    this.#options.timers.clear(this.#timer);
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    await this.#lookAtLock();
    await this.lookAtFiles();
    if (this.#isStopped) return;
    await this.#lookAtSocket();
    await this.#lookAtFolders();
    // The clock may have become wrong, or right, without any other event.
    if (!this.#isStopped) this.#options.onChange();
  }

  /** Checks that the next start can find what was written. Called at a stop too, since the last look may be seconds old. Never rejects. */
  async lookAtFiles(): Promise<void> {
    await this.#options.log()?.verifyName();
    await this.#options.captures.verifyNames();
  }

  async #lookAtLock(): Promise<void> {
    const { directory, wallUs, onChange, line } = this.#options;
    if (this.#lockFault !== null) return;
    let found: Awaited<ReturnType<typeof directory.restoreLock>>;
    try {
      found = await directory.restoreLock();
    } catch {
      // If the disk does not answer, the disk's row of health says so.
      return;
    }
    if (found === "intact" || this.#isStopped) return;
    if (found === "restored") return line("warn", "the lock of the data directory was removed: it was made again", {});
    this.#lockFault = since(
      wallUs(),
      `the lock in ${directory.path}/lock was removed, and another process may have opened this directory: stop it, and restart the service`,
    );
    line("error", "the lock of the data directory is lost", { cause: this.#lockFault });
    onChange();
  }

  async #lookAtSocket(): Promise<void> {
    const { restoreSocket, line, wallUs } = this.#options;
    try {
      if (await restoreSocket()) line("warn", "the cell link's socket was removed or replaced: it was made again", {});
      this.#socketFault = null;
    } catch (error) {
      if (this.#socketFault !== null) return;
      this.#socketFault = since(wallUs(), `producers cannot connect: ${(error as Error).message}`);
      line("error", "the cell link's socket was removed or replaced", { cause: this.#socketFault });
    }
  }

  async #lookAtFolders(): Promise<void> {
    const { fileSystem, directory, line, wallUs } = this.#options;
    try {
      for (const folder of await restoreLayout(fileSystem, directory)) {
        line("warn", "a folder of the data directory was removed: it was made again", { folder });
      }
      this.#layoutFault = null;
      const identity = (await fileSystem.statusOf(directory.capturesPath))?.identity;
      this.#capturesIdentity ??= identity;
      if (identity === this.#capturesIdentity) this.#capturesFault = null;
      else {
        this.#capturesFault ??= since(
          wallUs(),
          `the folder ${directory.capturesPath} was removed or replaced: new captures are stored, but those it held are missing until it is back`,
        );
      }
    } catch (error) {
      this.#layoutFault ??= since(wallUs(), `a folder of the data directory is missing: ${(error as Error).message}`);
    }
  }
}
