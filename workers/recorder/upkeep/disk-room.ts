import { type ComponentStatusValue, since } from "../../../core/health.js";
import type { Timers } from "../../../core/timers.js";
import { Ballast } from "../../../storage/disk/ballast.js";
import { type FileSystem, type FileSystemError, isNoRoom, isShortage } from "../../../storage/disk/file-system.js";
import type { WriteRoom } from "../../../storage/disk/write-room.js";

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** An amount of room: so many bytes, or a share of the disk (0 to 1). */
export type RoomAmount = { readonly bytes: number } | { readonly share: number };

/**
 * Where nothing is said: the smaller of the two.
 * - low: 20 s of the fastest capture head (51 MB/s), so that the end of a capture under way still fits.
 * - critical: what the link may have taken and not written yet (`LIMITS.linkPendingBytes`, `linkClaimedPayloadBytes`) still fits.
 * - ballast: the largest record, which is a tombstone's most.
 */
const DEFAULTS = {
  low: { bytes: GIB, share: 0.05 },
  critical: { bytes: 256 * MIB, share: 0.01 },
  ballast: { bytes: 16 * MIB, share: 0.01 },
} as const;

export interface DiskRoomOptions {
  /** Below it captures wait; null: the default. */
  low: RoomAmount | null;
  /** Below it all messages wait; null: the default. Above `low` it moves `low` up to it. */
  critical: RoomAmount | null;
  /** Size of the ballast file; null: the default. */
  ballastBytes: number | null;
}

/**
 * - `enough`: everything goes on.
 * - `low`: captures wait, other messages go on.
 * - `critical`: all messages wait. What was taken is written as far as there is room, and waits otherwise.
 */
export type RoomLevel = "enough" | "low" | "critical";

/** With enough room a look costs nothing that shows; without, what waits goes on soon after there is some. */
const LOOK_INTERVAL_MS = 5_000;
const SCARCE_LOOK_INTERVAL_MS = 1_000;
/**
 * So many looks pass before the ballast that was given back, or had no room, is made again: where a quota is used up the disk itself
 * shows room, and the ballast would take what little there is from the writes again and again.
 */
const LOOKS_BEFORE_BALLAST = 12;
/** A level is left only with so much more room than it begins at: else it would come and go with every file. */
const HYSTERESIS = 1 / 8;

/** What the disk has, and how much of it must be left. */
interface Measure {
  freeBytes: number;
  totalBytes: number;
  lowBytes: number;
  criticalBytes: number;
}

/**
 * Watches the room on the data directory's disk, by looking at it and, between looks, by counting what is about to be written; and has
 * writes that found none wait until there is some.
 */
export class DiskRoom implements WriteRoom {
  readonly #fileSystem: FileSystem;
  readonly #directory: string;
  readonly #timers: Timers;
  readonly #wallUs: () => number;
  readonly #options: DiskRoomOptions;
  readonly #pendingBytes: () => number;
  readonly #onChange: () => void;
  readonly #report: (what: string, error: unknown) => void;
  #ballast: Ballast | null = null;
  #looksBeforeBallast = 0;
  #measure: Measure | null = null;
  /** Why the disk could not be looked at, the last time, and since when it cannot be; null when it could. */
  #silence: { sinceUs: number; cause: string; status: ComponentStatusValue } | null = null;
  /** Since the last look, of what was not pending then. */
  #spentBytes = 0;
  #level: RoomLevel = "enough";
  #sinceUs = 0;
  /** Operations that found no room and were not done since, and what the last of them said. */
  #waitingCount = 0;
  #refusal: FileSystemError | null = null;
  #wake: (() => void)[] = [];
  #timer: unknown = null;
  #looking: Promise<void> | null = null;
  #isStarted = false;
  #isStopped = false;

  constructor(options: {
    fileSystem: FileSystem;
    directory: string;
    timers: Timers;
    wallUs(): number;
    thresholds: DiskRoomOptions;
    /** Bytes that were counted by `spend` and are not written yet. */
    pendingBytes(): number;
    /** The level has changed, or what health shows of it. */
    onChange(): void;
    /** Something failed that nothing depends on. */
    report(what: string, error: unknown): void;
  }) {
    this.#fileSystem = options.fileSystem;
    this.#directory = options.directory;
    this.#timers = options.timers;
    this.#wallUs = options.wallUs;
    this.#options = options.thresholds;
    this.#pendingBytes = options.pendingBytes;
    this.#onChange = options.onChange;
    this.#report = options.report;
  }

  get level(): RoomLevel {
    return this.#level;
  }

  /** Before the store is opened: finds the ballast of an earlier process, so that opening on a full disk has its room. */
  async prepare(): Promise<void> {
    const { totalBytes } = await this.#fileSystem.room(this.#directory);
    const { bytes, share } = DEFAULTS.ballast;
    const sizeBytes = this.#options.ballastBytes ?? Math.floor(Math.min(bytes, totalBytes * share));
    this.#ballast = new Ballast(this.#fileSystem, this.#directory, sizeBytes);
    await this.#ballast.find();
  }

  /** Looks at the disk; from then on again and again, and writes wait for room. */
  async start(): Promise<void> {
    this.#isStarted = true;
    await this.#look();
    this.#restoreBallast();
    this.#arm();
  }

  /** Nothing waits any more: what finds no room now fails. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timers.clear(this.#timer);
    this.#wakeAll();
    await this.#looking;
    await this.#ballast?.settled();
  }

  get isOver(): boolean {
    return this.#isStopped;
  }

  /** True when so many bytes more leave the level where it is, as far as the last look can tell: for what can wait. */
  hasSpare(bytes: number): boolean {
    if (this.#level !== "enough") return false;
    return this.#measure === null || this.#measure.freeBytes - this.#spentBytes - bytes >= this.#measure.lowBytes;
  }

  /** So many bytes are about to be written. */
  spend(bytes: number): void {
    this.#spentBytes += bytes;
    const before = this.#level;
    this.#judge();
    // Counted too much, perhaps: the disk itself says.
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
          // From here on the level is critical, and nothing makes the ballast again beside the attempts.
          this.#refusal = error;
          this.#judge();
          if (await this.#giveBallastBack()) {
            this.#looksBeforeBallast = LOOKS_BEFORE_BALLAST;
            continue;
          }
          // At start nothing is served yet, and at the end nobody waits: whoever starts or ends the service is told.
          if (!this.#isStarted || this.#isStopped) throw error;
          await new Promise<void>((resolve) => this.#wake.push(resolve));
          if (this.#isStopped) throw error;
        }
      }
    } finally {
      if (isWaiting) this.#waitedEnough();
    }
  }

  /** What cannot be given back is no reason to end the log: the write waits then, as it does without a ballast. */
  async #giveBallastBack(): Promise<boolean> {
    try {
      return (await this.#ballast?.release()) ?? false;
    } catch (error) {
      this.#report("the ballast file could not be given back", error);
      return false;
    }
  }

  #waitedEnough(): void {
    this.#waitingCount--;
    if (this.#waitingCount === 0) {
      this.#refusal = null;
      this.#lookSoon();
    } else {
      // Where one found room the others may.
      this.#wakeAll();
    }
  }

  #wakeAll(): void {
    for (const resolve of this.#wake.splice(0)) resolve();
  }

  /** What health and the log say of it. */
  get row(): { status: ComponentStatusValue; detail: string | null } {
    const ofLevel = this.#levelRow();
    if (this.#silence === null) return ofLevel;
    const { sinceUs, cause, status } = this.#silence;
    const silence = since(sinceUs, `the disk does not answer: ${cause}`);
    // What waits at the level goes on waiting; of the room there is nothing to be said.
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
      const detail = since(this.#sinceUs, `${room}, captures wait for ${amount(measure.lowBytes)}`);
      return { status: "degraded", detail };
    }
    return {
      status: "down",
      detail: since(this.#sinceUs, `${room}, all messages wait for ${amount(measure.criticalBytes)}`),
    };
  }

  #judge(): void {
    const level = this.#levelNow();
    if (level === this.#level) return;
    const wasEnough = this.#level === "enough";
    this.#level = level;
    this.#sinceUs = this.#wallUs();
    if (this.#isStarted && !this.#isStopped && wasEnough !== (level === "enough")) this.#arm();
    this.#onChange();
  }

  #levelNow(): RoomLevel {
    if (this.#refusal !== null) return "critical";
    if (this.#measure === null) return this.#level;
    const { lowBytes, criticalBytes } = this.#measure;
    const freeBytes = this.#measure.freeBytes - this.#spentBytes;
    const hold = 1 + HYSTERESIS;
    if (freeBytes < (this.#level === "critical" ? criticalBytes * hold : criticalBytes)) return "critical";
    return freeBytes < (this.#level === "enough" ? lowBytes : lowBytes * hold) ? "low" : "enough";
  }

  #arm(): void {
    this.#timers.clear(this.#timer);
    const delayMs = this.#level === "enough" ? LOOK_INTERVAL_MS : SCARCE_LOOK_INTERVAL_MS;
    this.#timer = this.#timers.set(() => {
      void this.#look().then(() => {
        if (this.#isStopped) return;
        // Also when the disk shows no more room than before: a quota does not show in it.
        this.#wakeAll();
        this.#restoreBallast();
        this.#arm();
      });
    }, delayMs);
  }

  #lookSoon(): void {
    if (this.#isStarted && !this.#isStopped) void this.#look();
  }

  /** Never rejects. One look at a time: whoever comes while one is under way gets the next. */
  async #look(): Promise<void> {
    while (this.#looking !== null) await this.#looking;
    if (this.#isStopped) return;
    this.#looking = this.#lookNow().finally(() => {
      this.#looking = null;
    });
    await this.#looking;
  }

  async #lookNow(): Promise<void> {
    try {
      const { freeBytes, totalBytes } = await this.#fileSystem.room(this.#directory);
      const { low, critical } = this.#options;
      const criticalBytes = bytesOf(critical, DEFAULTS.critical, totalBytes);
      const lowBytes = Math.max(criticalBytes, bytesOf(low, DEFAULTS.low, totalBytes));
      // What is pending is not written yet; all else that was spent is in what the disk says.
      this.#measure = { freeBytes: Math.max(0, freeBytes - this.#pendingBytes()), totalBytes, lowBytes, criticalBytes };
      this.#spentBytes = 0;
      this.#silence = null;
    } catch (error) {
      if (this.#silence === null) this.#report("the disk does not answer", error);
      const status = isShortage(error) ? "degraded" : "down";
      this.#silence = { sinceUs: this.#silence?.sinceUs ?? this.#wallUs(), cause: (error as Error).message, status };
    }
    this.#judge();
    this.#onChange();
  }

  /** Beside everything else, once it leaves more than low water behind it. */
  #restoreBallast(): void {
    const ballast = this.#ballast;
    const measure = this.#measure;
    if (ballast === null || measure === null || ballast.isThere || this.#level !== "enough" || this.#isStopped) return;
    if (this.#looksBeforeBallast > 0) {
      this.#looksBeforeBallast--;
      return;
    }
    if (measure.freeBytes - ballast.sizeBytes < measure.lowBytes * (1 + HYSTERESIS)) return;
    ballast
      .create()
      .then((isMade) => {
        if (!isMade) this.#looksBeforeBallast = LOOKS_BEFORE_BALLAST;
      })
      .catch((error: unknown) => {
        this.#looksBeforeBallast = LOOKS_BEFORE_BALLAST;
        this.#report("the ballast file could not be made", error);
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

/** In steps so coarse that a row does not change with every write. */
function amount(bytes: number): string {
  return bytes >= 10 * GIB ? `${(bytes / GIB).toFixed(1)} GiB` : `${Math.round(bytes / MIB)} MiB`;
}
