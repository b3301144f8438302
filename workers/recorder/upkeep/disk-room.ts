import { type ComponentStatusValue, since } from "../../../core/health.js";
import type { Timers } from "../../../core/timers.js";
import { Ballast } from "../../../storage/disk/ballast.js";
import { type FileSystemError, isNoRoom, isShortage } from "../../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import type { WriteRoom } from "../../../storage/disk/retried-writes.js";

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** An amount of room: a number of bytes, or a share of the disk (0 to 1). */
export type RoomAmount = { readonly bytes: number } | { readonly share: number };

/**
 * The defaults: the smaller of the two amounts.
 * - low: room for 20 s of the fastest capture head (51 MB/s), so that a capture under way can end.
 * - critical: room for what the link may have taken and not written (`LIMITS.linkPendingBytes`, `linkClaimedPayloadBytes`).
 * - ballast: the size of the largest record, which a tombstone can have.
 */
const DEFAULTS = {
  low: { bytes: GIB, share: 0.05 },
  critical: { bytes: 256 * MIB, share: 0.01 },
  ballast: { bytes: 16 * MIB, share: 0.01 },
} as const;

export interface DiskRoomOptions {
  /** Below this amount captures wait; null: the default. */
  low: RoomAmount | null;
  /** Below this amount all messages wait; null: the default. If it is above `low`, `low` is raised to it. */
  critical: RoomAmount | null;
  /** Size of the ballast file; null: the default. */
  ballastBytes: number | null;
}

/**
 * - `enough`: everything goes on.
 * - `low`: captures wait, other messages go on.
 * - `critical`: all messages wait. What was already taken is written while there is room, and then waits too.
 */
export type RoomLevel = "enough" | "low" | "critical";

/**
 * How often the disk is looked at. It is looked at more often when room is scarce, so that waiting messages soon go on.
 */
const LOOK_INTERVAL_MS = 5_000;
const SCARCE_LOOK_INTERVAL_MS = 1_000;
/**
 * At least this many looks at level `enough` pass before a released ballast file is created again. If a quota is used up, the disk
 * still shows room, and without this pause the ballast would take the little that is left from the writes, again and again.
 */
const LOOKS_BEFORE_BALLAST = 12;
/**
 * A level ends only when there is this share more room than where it begins. Otherwise it would change with every file.
 */
const HYSTERESIS = 1 / 8;

/** How much room the disk has, and how much must be left. */
interface Measure {
  freeBytes: number;
  totalBytes: number;
  lowBytes: number;
  criticalBytes: number;
}

export interface RoomWatchOptions {
  fileSystem: FileSystem;
  directory: string;
  timers: Timers;
  wallUs(): number;
  thresholds: DiskRoomOptions;
  /** Bytes that were counted by `spend` and are not written yet. */
  pendingBytes(): number;
  /** Called when the level or `row` may have changed. */
  onChange(): void;
  /** Called when something failed that nothing else depends on. */
  report(what: string, error: unknown): void;
}

/**
 * Watches the room on the data directory's disk. It looks at the disk from time to time. Between looks it counts the
 * bytes that are about to be written. Writes that find no room wait here until there is some.
 */
export class DiskRoom implements WriteRoom {
  readonly #options: RoomWatchOptions;
  #ballast: Ballast | null = null;
  #looksBeforeBallast = 0;
  #measure: Measure | null = null;
  /** Why the last look at the disk failed, and since when looks fail; null if it succeeded. */
  #silence: { sinceUs: number; cause: string; status: ComponentStatusValue } | null = null;
  /** Bytes counted by `spend` since the last look. */
  #spentBytes = 0;
  #level: RoomLevel = "enough";
  #sinceUs = 0;
  /** Operations that found no room and wait for it. */
  #waitingCount = 0;
  /** The error of the last operation that waits; null while none waits. */
  #refusal: FileSystemError | null = null;
  #wake: (() => void)[] = [];
  #timer: unknown = null;
  #looking: Promise<void> | null = null;
  #isStarted = false;
  #isStopped = false;

  constructor(options: RoomWatchOptions) {
    this.#options = options;
  }

  get level(): RoomLevel {
    return this.#level;
  }

  /**
   * Finds the ballast file of an earlier process. It is called before the store is opened: if the disk is full, opening
   * can use the ballast's room.
   */
  async prepare(): Promise<void> {
    const { fileSystem, directory, thresholds } = this.#options;
    const { totalBytes } = await fileSystem.room(directory);
    const { bytes, share } = DEFAULTS.ballast;
    const sizeBytes = thresholds.ballastBytes ?? Math.floor(Math.min(bytes, totalBytes * share));
    this.#ballast = new Ballast(fileSystem, directory, sizeBytes);
    await this.#ballast.find();
  }

  /** Looks at the disk now and from time to time. From now on writes wait for room. */
  async start(): Promise<void> {
    this.#isStarted = true;
    await this.#look();
    this.#restoreBallast();
    this.#arm();
  }

  /** From now on an operation that finds no room fails. Those that wait fail too. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#options.timers.clear(this.#timer);
    this.#wakeAll();
    await this.#looking;
    await this.#ballast?.settled();
  }

  get isOver(): boolean {
    return this.#isStopped;
  }

  /** Counts bytes that are about to be written. */
  spend(bytes: number): void {
    this.#spentBytes += bytes;
    const before = this.#level;
    this.#updateLevel();
    // The count may be too high. A look at the disk corrects it.
    if (this.#level !== before) this.#lookSoon();
  }

  async attempt<T>(operation: () => Promise<T>): Promise<T> {
    let isWaiting = false;
    try {
      for (;;) {
        try {
          return await operation();
        } catch (error) {
          if (!isNoRoom(error)) throw error;
          if (!isWaiting) this.#waitingCount++;
          isWaiting = true;
          // This makes the level critical, so that the ballast is not created again beside the attempts.
          this.#refusal = error;
          this.#updateLevel();
          if (await this.#giveBallastBack()) {
            this.#looksBeforeBallast = LOOKS_BEFORE_BALLAST;
            continue;
          }
          // Before the service serves, and while it stops, nobody waits: the start or the stop fails instead.
          if (!this.#isStarted || this.#isStopped) throw error;
          await new Promise<void>((resolve) => this.#wake.push(resolve));
          if (this.#isStopped) throw error;
        }
      }
    } finally {
      if (isWaiting) this.#waitedEnough();
    }
  }

  /** If the ballast cannot be released, the log does not fail. The write waits, as it does without a ballast. */
  async #giveBallastBack(): Promise<boolean> {
    try {
      return (await this.#ballast?.release()) ?? false;
    } catch (error) {
      this.#options.report("the ballast file could not be removed to make room", error);
      return false;
    }
  }

  #waitedEnough(): void {
    this.#waitingCount--;
    if (this.#waitingCount === 0) {
      this.#refusal = null;
      this.#lookSoon();
    } else {
      // Others may find room too.
      this.#wakeAll();
    }
  }

  #wakeAll(): void {
    for (const resolve of this.#wake.splice(0)) resolve();
  }

  /** The disk's row of health. */
  get row(): { status: ComponentStatusValue; detail: string | null } {
    const ofLevel = this.#levelRow();
    if (this.#silence === null) return ofLevel;
    const { sinceUs, cause, status } = this.#silence;
    const silence = since(sinceUs, `the disk does not answer: ${cause}`);
    // At level `enough` nothing waits, and it is unknown how much room there is.
    if (this.#level === "enough") return { status, detail: silence };
    return { status: "down", detail: `${silence}; ${ofLevel.detail}` };
  }

  #levelRow(): { status: ComponentStatusValue; detail: string | null } {
    const measure = this.#measure;
    const room = measure && `${amount(measure.freeBytes)} of ${amount(measure.totalBytes)} free`;
    if (this.#level === "enough") return { status: "healthy", detail: room };
    if (this.#refusal !== null) {
      const waits = `no room (${this.#refusal.message}), all messages wait`;
      return { status: "down", detail: since(this.#sinceUs, room === null ? waits : `${waits}; ${room}`) };
    }
    if (measure === null) return { status: "healthy", detail: null };
    if (this.#level === "low") {
      const detail = since(this.#sinceUs, `${room}, captures wait until ${amount(endOf(measure, "low"))} is free`);
      return { status: "degraded", detail };
    }
    return {
      status: "down",
      detail: since(this.#sinceUs, `${room}, all messages wait until ${amount(endOf(measure, "critical"))} is free`),
    };
  }

  #updateLevel(): void {
    const level = this.#levelNow();
    if (level === this.#level) return;
    const wasEnough = this.#level === "enough";
    this.#level = level;
    this.#sinceUs = this.#options.wallUs();
    if (this.#isStarted && !this.#isStopped && wasEnough !== (level === "enough")) this.#arm();
    this.#options.onChange();
  }

  #levelNow(): RoomLevel {
    if (this.#refusal !== null) return "critical";
    if (this.#measure === null) return this.#level;
    const { lowBytes, criticalBytes } = this.#measure;
    const freeBytes = this.#measure.freeBytes - this.#spentBytes;
    if (freeBytes < (this.#level === "critical" ? endOf(this.#measure, "critical") : criticalBytes)) return "critical";
    return freeBytes < (this.#level === "enough" ? lowBytes : endOf(this.#measure, "low")) ? "low" : "enough";
  }

  #arm(): void {
    this.#options.timers.clear(this.#timer);
    const delayMs = this.#level === "enough" ? LOOK_INTERVAL_MS : SCARCE_LOOK_INTERVAL_MS;
    this.#timer = this.#options.timers.set(() => {
      void this.#look().then(() => {
        if (this.#isStopped) return;
        // This is done even if the disk shows no more room than before: it does not show a quota.
        this.#wakeAll();
        this.#restoreBallast();
        // If somebody has removed it, the next look makes it again.
        void this.#ballast?.verifyName();
        this.#arm();
      });
    }, delayMs);
  }

  #lookSoon(): void {
    if (this.#isStarted && !this.#isStopped) void this.#look();
  }

  /** Never rejects. There is one look at a time: a call during a look waits for it and then looks again. */
  async #look(): Promise<void> {
    while (this.#looking !== null) await this.#looking;
    if (this.#isStopped) return;
    this.#looking = this.#lookNow().finally(() => {
      this.#looking = null;
    });
    await this.#looking;
  }

  async #lookNow(): Promise<void> {
    const { fileSystem, directory, thresholds, pendingBytes, wallUs, report } = this.#options;
    try {
      const { freeBytes, totalBytes } = await fileSystem.room(directory);
      const { low, critical } = thresholds;
      const criticalBytes = bytesOf(critical, DEFAULTS.critical, totalBytes);
      const lowBytes = Math.max(criticalBytes, bytesOf(low, DEFAULTS.low, totalBytes));
      // Pending bytes are not written yet. The disk's figure includes everything else that was spent.
      this.#measure = { freeBytes: Math.max(0, freeBytes - pendingBytes()), totalBytes, lowBytes, criticalBytes };
      this.#spentBytes = 0;
      this.#silence = null;
    } catch (error) {
      if (this.#silence === null) report("the disk does not answer", error);
      const status = isShortage(error) ? "degraded" : "down";
      this.#silence = { sinceUs: this.#silence?.sinceUs ?? wallUs(), cause: (error as Error).message, status };
    }
    this.#updateLevel();
    this.#options.onChange();
  }

  /** Creates the ballast file again, in the background, if that leaves more room than the low mark. */
  #restoreBallast(): void {
    const ballast = this.#ballast;
    const measure = this.#measure;
    if (ballast === null || measure === null || ballast.isThere || this.#level !== "enough" || this.#isStopped) return;
    if (this.#looksBeforeBallast > 0) {
      this.#looksBeforeBallast--;
      return;
    }
    if (measure.freeBytes - ballast.sizeBytes < endOf(measure, "low")) return;
    ballast
      .create()
      .then((isMade) => {
        if (!isMade) this.#looksBeforeBallast = LOOKS_BEFORE_BALLAST;
      })
      .catch((error: unknown) => {
        this.#looksBeforeBallast = LOOKS_BEFORE_BALLAST;
        this.#options.report("the ballast file could not be created", error);
      });
  }
}

function bytesOf(
  amount: RoomAmount | null,
  fallback: { readonly bytes: number; readonly share: number },
  totalBytes: number,
): number {
  if (amount === null) return Math.floor(Math.min(fallback.bytes, totalBytes * fallback.share));
  return "bytes" in amount ? amount.bytes : Math.floor(totalBytes * amount.share);
}

/** The free room that ends a level. It lies halfway to an empty disk at most, so that every level can end. */
function endOf({ lowBytes, criticalBytes, totalBytes }: Measure, level: "low" | "critical"): number {
  const bytes = level === "low" ? lowBytes : criticalBytes;
  return Math.min(bytes * (1 + HYSTERESIS), (bytes + totalBytes) / 2);
}

/** Rounded so coarsely that the row does not change with every write. */
function amount(bytes: number): string {
  return bytes >= 10 * GIB ? `${(bytes / GIB).toFixed(1)} GiB` : `${Math.round(bytes / MIB)} MiB`;
}
