import { setImmediate as eventLoopTurn } from "node:timers/promises";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { hintName } from "../../../storage/log/hint-format.js";
import type { Log } from "../../../storage/log/log.js";
import type { SealedSegment } from "../../../storage/log/log-options.js";
import { segmentName } from "../../../storage/log/segment.js";
import { makeHint, writeHint } from "../../../storage/recovery/make-hint.js";
import { StorageError, type StorageErrorData } from "../../../storage/storage-error.js";
import type { LogLine } from "../recorder-messages.js";

export interface HintFilesOptions {
  fileSystem: FileSystem;
  /** Folder of the segments. */
  directory: string;
  log: Log;
  /** Called before this many bytes are written. */
  spend(bytes: number): void;
  /** Called when a segment is damaged. Health reports it like damage that other reads find. */
  onReadDamage(error: StorageErrorData): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/** Ends the work on a hint file when the service stops. The next start makes the file. */
class StoppedError extends Error {
  override name = "StoppedError";
}

/**
 * Writes the hint files of sealed segments, one at a time. At a start these are the segments without one. Later it is
 * each segment that the log has finished. Each hint file is made from its segment, which is read back and verified in
 * chunks. Messages have their turn between the chunks.
 *
 * A hint file that cannot be written is no fault of the store: the next start reads the segment, and makes the file.
 */
export class HintFiles {
  readonly #options: HintFilesOptions;
  #queue: SealedSegment[] = [];
  #newestBase: number;
  #isStarted = false;
  #isStopped = false;
  #running: Promise<void> | null = null;

  constructor(options: HintFilesOptions) {
    this.#options = options;
    const { unhinted, segmentBase } = options.log.recovery;
    this.#queue = [...unhinted];
    this.#newestBase = segmentBase;
  }

  start(): void {
    this.#isStarted = true;
    this.#begin();
  }

  /** Records were committed to this segment. So the segment before it is durable, and so is this one's name. */
  committed(segmentBase: number): void {
    if (segmentBase === this.#newestBase) return;
    this.#queue.push({ base: this.#newestBase, nextBase: segmentBase });
    this.#newestBase = segmentBase;
    this.#begin();
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  #begin(): void {
    if (!this.#isStarted || this.#running !== null) return;
    this.#running = this.#writeAll().finally(() => {
      this.#running = null;
    });
  }

  /** Never rejects. */
  async #writeAll(): Promise<void> {
    for (let next = this.#queue.shift(); next !== undefined && !this.#isStopped; next = this.#queue.shift()) {
      const fields = { segment: segmentName(next.base) };
      try {
        await this.#write(next);
      } catch (error) {
        if (error instanceof StoppedError) return;
        const cause = error instanceof Error ? error.message : String(error);
        this.#options.line("warn", "a hint file could not be written: the next start makes it", { ...fields, cause });
      }
    }
  }

  async #write(segment: SealedSegment): Promise<void> {
    const { fileSystem, directory, log, spend, onReadDamage, line } = this.#options;
    const startedMs = performance.now();
    const giveWay = () => this.#giveWay();
    const made = await makeHint({ fileSystem, directory, ...segment, giveWay });
    const name = segmentName(segment.base);
    if ("reason" in made) {
      line("warn", "a damaged segment gets no hint file: each start reads it", { segment: name, cause: made.reason });
      onReadDamage(new StorageError("record_damaged", `segment ${name}: ${made.reason}`, { segment: name }).data);
      return;
    }
    const { bytes } = made;
    await giveWay();
    spend(bytes.length);
    await writeHint(fileSystem, directory, segment.base, bytes, () => log.syncNames());
    const duration_ms = Math.round(performance.now() - startedMs);
    line("info", "wrote a hint file", { hint: hintName(segment.base), bytes: bytes.length, duration_ms });
  }

  async #giveWay(): Promise<void> {
    const { log } = this.#options;
    await eventLoopTurn();
    if (log.pendingBytes > 0) await log.whenCommitted(log.nextSequence - 1);
    if (this.#isStopped) throw new StoppedError("the service stops");
  }
}
