import type { CaptureStore } from "../../storage/capture-store.js";
import type { LockedDataDirectory } from "../../storage/data-directory.js";
import type { Log } from "../../storage/log.js";
import type { Timers } from "../../storage/log-options.js";

/** A look is a few calls of stat. */
export const LOOK_INTERVAL_MS = 5_000;

export interface StoreWatchOptions {
  timers: Timers;
  wallUs(): number;
  directory: Pick<LockedDataDirectory, "isLockIntact" | "path">;
  log(): Pick<Log, "verifyName"> | undefined;
  captures: Pick<CaptureStore, "verifyNames">;
  /** Health may show something else. */
  onChange(): void;
  report(what: string, error: unknown): void;
}

/** Looks, while the store is open, whether its files are still those that have their names: people and scripts remove and replace them. */
export class StoreWatch {
  readonly #options: StoreWatchOptions;
  #timer: unknown = null;
  #lockFault: string | null = null;
  #isStopped = false;

  constructor(options: StoreWatchOptions) {
    this.#options = options;
  }

  /** What is wrong with the directory's lock, for people; null for nothing. It is said for good: who came meanwhile may still be there. */
  get lockFault(): string | null {
    return this.#lockFault;
  }

  start(): void {
    if (this.#isStopped) return;
    this.#timer = this.#options.timers.set(() => {
      void this.#look().then(() => this.start());
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
    // The clock too may have become wrong, or right, without anything else that happens.
    if (!this.#isStopped) this.#options.onChange();
  }

  /** Whether what was written can be found by the next start: at the end too, since the last look may be some seconds old. Never rejects. */
  async lookAtFiles(): Promise<void> {
    await this.#options.log()?.verifyName();
    await this.#options.captures.verifyNames();
  }

  async #lookAtLock(): Promise<void> {
    const { directory, wallUs, onChange, report } = this.#options;
    if (this.#lockFault !== null) return;
    let isIntact: boolean;
    try {
      isIntact = await directory.isLockIntact();
    } catch {
      // A disk that does not answer is what the row of the disk says.
      return;
    }
    if (isIntact || this.#isStopped) return;
    const since = new Date(wallUs() / 1000).toISOString();
    this.#lockFault =
      `since ${since}: the file of the lock in ${directory.path}/lock was removed, which keeps services of other containers out; ` +
      "restart the service";
    report("the directory's lock was removed", new Error(this.#lockFault));
    onChange();
  }
}
