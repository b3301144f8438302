import type { Timers } from "../../core/timers.js";
import { DroppedOrigins } from "../../storage/compaction/dropped-origins.js";
import {
  type RewrittenSegment,
  removeTemporary,
  rewriteSegment,
  type SegmentOwner,
} from "../../storage/compaction/rewrite-segment.js";
import { MovesCollector, noMoves, type SegmentMoves } from "../../storage/compaction/segment-moves.js";
import { FileSystemError, isNoRoom, isShortage } from "../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import { asReadDamage } from "../../storage/log/read-damage.js";
import { segmentBaseOf, segmentName } from "../../storage/log/segment.js";
import { isKnownRecordType } from "../../storage/records/record-index.js";
import { randomSalt } from "../../storage/recovery/recovery.js";
import type { StorageErrorData } from "../../storage/storage-error.js";
import type { RecordPlaces } from "../recorder/record-places.js";
import type { LogLine } from "../recorder/recorder-messages.js";
import type { ExclusiveWork } from "../recorder/upkeep/exclusive-work.js";
import type { StoreCounters } from "../recorder/upkeep/store-counters.js";
import { CompactionFaults } from "./compaction-faults.js";

/** What may be dropped grows with the runs that end; a new segment wakes compaction too. */
const INTERVAL_MS = 30_000;
/** When another has the turn: nothing presses. */
const RETRY_MS = 10_000;
/** A segment is written anew once so much of it is needless: at most so much of the log is, and each byte is copied few times. */
const MINIMUM_DEAD_SHARE = 0.25;
/** What a failure of these leaves on the disk cannot be known: then nothing is compacted until a restart. */
const WRITING_OPERATIONS: ReadonlySet<string> = new Set([
  "write",
  "fdatasync",
  "fsync",
  "ftruncate",
  "rename",
  "close",
]);

export interface CompactionOptions {
  fileSystem: FileSystem;
  /** Folder of the segments. */
  directory: string;
  places: RecordPlaces;
  work: ExclusiveWork;
  timers: Timers;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  /** Lets what is due to be committed, and whoever else needs the thread, go first. */
  giveWay(): Promise<void>;
  /** False while the disk has so little room that captures wait. */
  hasRoom(): boolean;
  /** So many bytes are about to be written. */
  spend(bytes: number): void;
  /** Resolves when every record that was appended so far would survive a power cut; rejects when it will not. */
  whenDurable(): Promise<void>;
  /** Makes the names in the folder durable; a failure ends the log and everything that writes. */
  syncNames(): Promise<void>;
  /** Has the readers keep the segment's file open; false when they cannot. `moved` follows where it is true. */
  hold(segmentBase: number): Promise<boolean>;
  /** The records of the segment lie there now, and the old file is needed no more once everybody knows. */
  moved(moves: SegmentMoves): void;
  /** Stored bytes are damaged, or the disk does not give them: health tells of it as of what other reads find. */
  onReadDamage(error: StorageErrorData): void;
  /** Health may show something else. */
  onChange(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/** Ends an attempt without a fault: it is taken up later. */
class InterruptedError extends Error {
  override name = "InterruptedError";
}

/**
 * Writes segments anew without the records that nothing needs any more, one at a time, in slices that yield to commits. In this order:
 *
 * 1. the segment is read, verified, judged and written to a temporary file, which is synced;
 * 2. everything that the judgement stands on is durable: no power cut brings back a state that needs what was dropped;
 * 3. the readers hold the old file;
 * 4. the new file takes the name, durably;
 * 5. whoever has locations learns the new ones, and the old file is let go.
 *
 * A crash leaves the old file or the new one under the name, both whole. The newest segment is never touched, nor one that is damaged. One
 * that cannot be read holds up no other, and is tried again with each pass.
 */
export class Compaction {
  readonly #options: CompactionOptions;
  #timer: unknown = null;
  #running: Promise<void> | null = null;
  /** Segments that are damaged, or failed in a way that will not pass: left alone until a restart, like the evidence that they are. */
  readonly #left = new Set<number>();
  /** Segments that could not be read in this pass: the next one tries them again. */
  readonly #failed = new Set<number>();
  readonly #faults: CompactionFaults;
  #compacted: StoreCounters["compaction"] = { segments: 0, bytes: 0 };
  #newestBase = 0;
  #isStarted = false;
  #isStopped = false;
  #isWoken = false;
  #interrupt: (error: Error) => void = () => {};

  constructor(options: CompactionOptions) {
    this.#options = options;
    const { wallUs, onChange, line } = options;
    this.#faults = new CompactionFaults({ wallUs, onChange, line });
  }

  /** What is not compacted, why, and since when; null when nothing stands in the way. */
  get fault(): string | null {
    return this.#faults.text;
  }

  /** Nothing is compacted until a restart. */
  get hasEnded(): boolean {
    return this.#faults.hasEnded;
  }

  /** What it has done since the process started. */
  get compacted(): StoreCounters["compaction"] {
    return this.#compacted;
  }

  start(): void {
    this.#isStarted = true;
    this.#start();
  }

  /** Records were committed to this segment. */
  committed(segmentBase: number): void {
    if (segmentBase === this.#newestBase) return;
    this.#newestBase = segmentBase;
    if (!this.#isStarted) return;
    this.#isWoken = true;
    this.#start();
  }

  /** The room on the disk has changed: what is being written gives its own back where there is little. */
  roomChanged(): void {
    if (!this.#options.hasRoom()) this.#interrupt(new InterruptedError("the disk has little room"));
  }

  /** Resolves when it does nothing any more. The segment that was being written stays as it was. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#options.timers.clear(this.#timer);
    this.#interrupt(new InterruptedError("the service stops"));
    await this.#running;
  }

  #start(): void {
    if (this.#running !== null || this.#isStopped || this.hasEnded) return;
    this.#options.timers.clear(this.#timer);
    this.#isWoken = false;
    this.#running = this.#pass()
      .catch((error: unknown) => {
        this.#passFailed("compaction could not look for segments", error, {});
        return true;
      })
      .then((isDone) => {
        this.#running = null;
        if (this.#isStopped || this.hasEnded) return;
        if (this.#isWoken) this.#start();
        else this.#timer = this.#options.timers.set(() => this.#start(), isDone ? INTERVAL_MS : RETRY_MS);
      });
  }

  /** False when another has the turn. */
  async #pass(): Promise<boolean> {
    this.#failed.clear();
    for (let next = await this.#next(); next !== undefined; next = await this.#next()) {
      const endTurn = this.#options.work.take();
      if (endTurn === null) return false;
      try {
        await this.#compact(next.base, next.nextBase, next.sizeBytes);
      } catch (error) {
        // What fails while all ends, fails for that.
        if (this.#isStopped) return true;
        if (!this.#segmentFailed(next.base, error)) return true;
      } finally {
        endTurn();
      }
    }
    return true;
  }

  /** The segment with the largest share of needless bytes, if that is large enough. */
  async #next(): Promise<{ base: number; nextBase: number; sizeBytes: number } | undefined> {
    const { fileSystem, directory, places, hasRoom } = this.#options;
    if (this.#isStopped || this.hasEnded || !hasRoom()) return undefined;
    const bases: number[] = [];
    for (const { name } of await fileSystem.readDirectory(directory)) {
      const base = segmentBaseOf(name);
      if (base !== undefined) bases.push(base);
    }
    bases.sort((left, right) => left - right);
    let best: { base: number; nextBase: number; sizeBytes: number } | undefined;
    let bestShare = MINIMUM_DEAD_SHARE;
    for (const [at, base] of bases.entries()) {
      const nextBase = bases[at + 1];
      const deadBytes = places.garbage.deadBytes(base);
      if (nextBase === undefined || deadBytes === 0 || this.#left.has(base) || this.#failed.has(base)) continue;
      const sizeBytes = await this.#sizeOf(base);
      if (sizeBytes === null || deadBytes / sizeBytes < bestShare) continue;
      best = { base, nextBase, sizeBytes };
      bestShare = deadBytes / sizeBytes;
    }
    if (best === undefined) this.#faults.passEnded(this.#failed);
    return best;
  }

  /** Null when the disk does not say: then the segment is none for this pass. */
  async #sizeOf(base: number): Promise<number | null> {
    const { fileSystem, directory } = this.#options;
    try {
      return await fileSystem.sizeOf(`${directory}/${segmentName(base)}`);
    } catch (error) {
      if (!(error instanceof FileSystemError)) throw error;
      this.#cannotRead(base, error);
      return null;
    }
  }

  #cannotRead(base: number, error: FileSystemError): void {
    this.#failed.add(base);
    this.#faults.cannotRead(base, error.message);
  }

  async #compact(base: number, nextBase: number, sizeBytes: number): Promise<void> {
    const { fileSystem, directory, places, spend, hasRoom, syncNames } = this.#options;
    const interrupted = new Promise<never>((_, reject) => {
      this.#interrupt = reject;
    });
    // Where nobody waits for it when it comes, the next slice does.
    interrupted.catch(() => {});
    const unlessInterrupted = <T>(promise: Promise<T>): Promise<T> => Promise.race([interrupted, promise]);
    const collector = new MovesCollector();
    const deadBytes = places.garbage.deadBytes(base);
    const rewritten = await rewriteSegment({
      fileSystem,
      directory,
      base,
      nextBase,
      salt: randomSalt(),
      owner: this.#owner(base, collector),
      minimumDroppedBytes: sizeBytes * MINIMUM_DEAD_SHARE,
      giveWay: async (bytes) => {
        if (bytes > 0) spend(bytes);
        if (this.#isStopped) throw new InterruptedError("the service stops");
        if (!hasRoom()) throw new InterruptedError("the disk has little room");
        await unlessInterrupted(this.#options.giveWay());
      },
    });
    if (rewritten.temporaryPath === null) {
      // The account was only nearly right: it is from now on, and the segment's turn comes with more to drop.
      places.garbage.remove(base, deadBytes);
      places.garbage.bury(base, rewritten.droppedBytes);
      return;
    }
    try {
      await unlessInterrupted(this.#options.whenDurable());
      await this.#install(base, rewritten, rewritten.temporaryPath, collector.finish(base));
    } catch (error) {
      await removeTemporary(fileSystem, rewritten.temporaryPath);
      throw error;
    } finally {
      this.#interrupt = () => {};
    }
    places.garbage.remove(base, deadBytes);
    // For order, within the turn. No record needs it, as each segment is whole under its name, old or new: a power cut that took the new
    // file back would cost its room, and perhaps the use of a snapshot that was made of it.
    await syncNames();
    const { segments, bytes } = this.#compacted;
    this.#compacted = { segments: segments + 1, bytes: bytes + rewritten.bytesBefore - rewritten.bytesAfter };
    this.#options.line("info", "compacted a segment of the log", {
      segment: segmentName(base),
      bytes_before: rewritten.bytesBefore,
      bytes_after: rewritten.bytesAfter,
      records_dropped: rewritten.recordsDropped,
    });
  }

  async #install(base: number, { path }: RewrittenSegment, temporaryPath: string, moves: SegmentMoves): Promise<void> {
    const { fileSystem, hold, moved } = this.#options;
    if (!(await hold(base))) throw new InterruptedError("the readers do not hold the segment's file");
    let found = noMoves(base);
    try {
      if (this.#isStopped) throw new InterruptedError("the service stops");
      await fileSystem.rename(temporaryPath, path);
      found = moves;
    } finally {
      moved(found);
    }
  }

  #owner(base: number, collector: MovesCollector): SegmentOwner {
    const { places } = this.#options;
    return {
      understandsType: isKnownRecordType,
      judge: (record) => places.judge(base, record),
      beginStretch: () => new DroppedOrigins(),
      kept: (record, location) => collector.take(record, location),
    };
  }

  /** True when it is that segment's alone, and the pass can go on. */
  #segmentFailed(base: number, error: unknown): boolean {
    const { directory, onReadDamage, line } = this.#options;
    const fields = { segment: segmentName(base) };
    const cause = messageOf(error);
    if (error instanceof InterruptedError) {
      line("info", "compaction waits", { ...fields, cause });
      return false;
    }
    const damage = asReadDamage(error);
    if (damage === null && error instanceof FileSystemError) {
      // Of its own file, which is only read; all others are written.
      if (error.path === `${directory}/${segmentName(base)}`) {
        this.#cannotRead(base, error);
        return true;
      }
      this.#passFailed("a segment could not be compacted", error, fields);
      return false;
    }
    this.#left.add(base);
    this.#faults.isDamaged(base);
    line("warn", "compaction leaves a segment alone", { ...fields, cause });
    if (damage === null) this.#faults.leaves(base, cause);
    else onReadDamage(damage.data);
    return true;
  }

  #passFailed(what: string, error: unknown, fields: LogLine["fields"]): void {
    const cause = messageOf(error);
    // What waits for room is what the row of the disk says.
    if (isNoRoom(error)) this.#options.line("warn", `${what}, and it is tried again later`, { ...fields, cause });
    else if (error instanceof FileSystemError && WRITING_OPERATIONS.has(error.operation) && !isShortage(error))
      this.#faults.end(what, cause, fields);
    else this.#faults.passFailed(what, cause, fields);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
