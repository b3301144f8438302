import { since } from "../../../core/health.js";
import type { Timers } from "../../../core/timers.js";
import type { CaptureStore } from "../../../storage/captures/capture-store.js";
import type { LockedDataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { restoreLayout } from "../../../storage/disk/restore-layout.js";
import type { Log } from "../../../storage/log/log.js";
import { segmentBaseOf } from "../../../storage/log/segment.js";
import type { LogLine } from "../recorder-messages.js";

/** One look costs some calls of stat, and two calls that list the months of captures and the segments. */
export const LOOK_INTERVAL_MS = 5_000;

const MONTH = /^\d{6}$/;
/** Where something can be missing. */
type Place = "lock" | "socket" | "layout" | "captures" | "segments";

export interface StoreWatchOptions {
  timers: Timers;
  wallUs(): number;
  fileSystem: FileSystem;
  directory: Omit<LockedDataDirectory, "release">;
  log(): Pick<Log, "verifyName"> | undefined;
  captures: Pick<CaptureStore, "verifyNames" | "removedMonths">;
  /** Listens again if the cell link's socket file was removed or replaced. @returns true if it was; throws if it cannot listen */
  restoreSocket(): Promise<boolean>;
  /** Called when health may have changed. */
  onChange(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/**
 * Checks while the store is open that its files, folders and socket are still in place: people and scripts remove and
 * replace them. It makes again what can be made again. Health reports the rest.
 */
export class StoreWatch {
  readonly #options: StoreWatchOptions;
  #timer: unknown = null;
  #lostLock: string | null = null;
  readonly #faults = new Map<Place, { sinceUs: number; message: string }>();
  /** Identity of the captures folder at the first look. */
  #capturesIdentity: string | undefined;
  /** The folders of the months, and their identities when they were first seen. */
  readonly #months = new Map<string, string>();
  /** The names of all segments that were seen. */
  readonly #segments = new Set<string>();
  #hasStarted = false;
  #isStopped = false;

  constructor(options: StoreWatchOptions) {
    this.#options = options;
  }

  /**
   * What is wrong with the directory's lock or with full segments, for people; null if nothing is. A lost lock is
   * reported until the end: a second service may have opened the directory.
   */
  get logFault(): string | null {
    return joined([this.#lostLock, this.#faultOf("segments")]);
  }

  /** What else is not in place, for people; null if everything is. */
  get placeFault(): string | null {
    return joined((["lock", "socket", "captures", "layout"] as const).map((place) => this.#faultOf(place)));
  }

  #faultOf(place: Place): string | null {
    const fault = this.#faults.get(place);
    return fault === undefined ? null : since(fault.sinceUs, fault.message);
  }

  /** @param message what is wrong there now, for people; null: nothing */
  #found(place: Place, message: string | null): void {
    const { wallUs, line } = this.#options;
    const before = this.#faults.get(place);
    if (message === null) this.#faults.delete(place);
    else this.#faults.set(place, { sinceUs: before?.sinceUs ?? wallUs(), message });
    if (message !== null && before === undefined)
      line("error", "a part of the store is not in its place", { cause: message });
  }

  async start(): Promise<void> {
    await this.#lookAtFolders();
    this.#hasStarted = true;
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
    await this.#lookAtSegments();
    // The clock may have become wrong, or right, without any other event.
    if (!this.#isStopped) this.#options.onChange();
  }

  /**
   * Checks that the next start can find what was written. It is called at a stop too, because the last look may be
   * seconds old. Never rejects.
   */
  async lookAtFiles(): Promise<void> {
    await this.#options.log()?.verifyName();
    await this.#options.captures.verifyNames();
  }

  async #lookAtLock(): Promise<void> {
    const { directory, wallUs, onChange, line } = this.#options;
    if (this.#lostLock !== null) return;
    let found: Awaited<ReturnType<typeof directory.restoreLock>>;
    try {
      found = await directory.restoreLock();
    } catch (error) {
      const cause = (error as Error).message;
      return this.#found("lock", `the lock in ${directory.path}/lock cannot be looked at, or made again: ${cause}`);
    }
    this.#found("lock", null);
    if (found === "intact" || this.#isStopped) return;
    if (found === "restored") return line("warn", "the lock of the data directory was removed: it was made again", {});
    this.#lostLock = since(
      wallUs(),
      `the lock in ${directory.path}/lock was removed, and another process may have opened this directory: stop it, and restart the service`,
    );
    line("error", "the lock of the data directory is lost", { cause: this.#lostLock });
    onChange();
  }

  async #lookAtSocket(): Promise<void> {
    const { restoreSocket, line } = this.#options;
    try {
      if (await restoreSocket()) line("warn", "the cell link's socket was removed or replaced: it was made again", {});
      this.#found("socket", null);
    } catch (error) {
      this.#found("socket", `producers cannot connect: ${(error as Error).message}`);
    }
  }

  async #lookAtFolders(): Promise<void> {
    const { fileSystem, directory, line } = this.#options;
    try {
      for (const path of await restoreLayout(fileSystem, directory)) {
        line("warn", "a part of the data directory was removed: it was made again", { path });
      }
      const missing = await this.#missingCaptures();
      this.#found("layout", null);
      this.#found("captures", missing);
    } catch (error) {
      this.#found(
        "layout",
        `a part of the data directory cannot be looked at, or made again: ${(error as Error).message}`,
      );
    }
  }

  async #missingCaptures(): Promise<string | null> {
    const { fileSystem, directory, captures } = this.#options;
    const path = directory.capturesPath;
    const identityOf = async (folder: string) => (await fileSystem.statusOf(folder))?.identity;
    const identity = await identityOf(path);
    this.#capturesIdentity ??= identity;
    if (identity !== this.#capturesIdentity)
      return `the folder ${path} was removed or replaced: new captures are stored, but those it held are missing until it is back (after putting back a copy, restart the service)`;
    // The months are listed at the first look, so that a start does not wait for it.
    for (const { name } of !this.#hasStarted ? [] : await fileSystem.readDirectory(path)) {
      const found = MONTH.test(name) && !this.#months.has(name) ? await identityOf(`${path}/${name}`) : undefined;
      if (found !== undefined) this.#months.set(name, found);
    }
    const missing: string[] = [];
    for (const [month, seen] of this.#months) {
      const isInPlace = (await identityOf(`${path}/${month}`)) === seen;
      // Retention may have removed it meanwhile, because it was empty.
      if (captures.removedMonths.has(month)) this.#months.delete(month);
      else if (!isInPlace) missing.push(month);
    }
    if (missing.length === 0) return null;
    return `folders in ${path} were removed or replaced (${missing.join(", ")}): the captures that were there are missing until they are back (after putting back copies, restart the service)`;
  }

  async #lookAtSegments(): Promise<void> {
    const { fileSystem, directory } = this.#options;
    let names: Set<string>;
    try {
      names = new Set((await fileSystem.readDirectory(directory.metaPath)).map(({ name }) => name));
    } catch {
      // The folder of the newest segment is gone, or the disk does not answer. Others report that.
      return;
    }
    for (const name of names) if (segmentBaseOf(name) !== undefined) this.#segments.add(name);
    const missing = [...this.#segments].filter((name) => !names.has(name));
    const message = `segments of the log were removed (${missing.length}, first ${missing[0]}): what was recorded there cannot be read; put every file back before the next start`;
    this.#found("segments", missing.length === 0 ? null : message);
  }
}

function joined(faults: readonly (string | null)[]): string | null {
  const all = faults.filter((one) => one !== null);
  return all.length === 0 ? null : all.join("; ");
}
