import { monotonicMs } from "../../core/service-clock.js";
import { verifyExtents } from "../../storage/captures/capture-reader.js";
import { isUnreadable, orWhereMissing } from "../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import { readFully, withFile } from "../../storage/disk/whole-files.js";
import { forEachRecord } from "../../storage/log/committed-batch.js";
import { decodeChanges } from "../../storage/records/change-record.js";
import { RECORD_TYPE } from "../../storage/records/record-index.js";
import { StorageError } from "../../storage/storage-error.js";
import {
  CAPTURE_STREAM,
  CHUNK_BYTES,
  chunkCount,
  chunkSubject,
  decodeCauseSequence,
  encodeChunk,
  storeSubjects,
} from "./capture-message.js";
import { type CapturePolicy, type NamedRange, rangesOf } from "./capture-ranges.js";
import type { CaptureMark } from "./log-message.js";
import type { LogTail } from "./log-tail.js";
import { OtherLastMessage, type PlantClient } from "./plant-client.js";

/** What is used of the client. */
export type CaptureConnection = Pick<PlantClient, "requireCaptureStream" | "lastMessage" | "publish">;

/** How often bytes that the disk cannot read are tried, with a pause in between, before they are left out. */
const READ_TRIES = 3;

export interface CaptureShipperOptions {
  cell: string;
  storeId: string;
  policy: CapturePolicy;
  /** Most bytes a second on average; null: no bound. */
  rateBytes: number | null;
  fileSystem: FileSystem;
  capturesPath: string;
  /** A reader of the log of its own. */
  tail: LogTail;
  /** Milliseconds of a clock that never steps; default: the process's. */
  monotonicMs?: () => number;
}

interface EndedRun {
  /** Of the record that says what the run has. */
  sequence: number;
  type: number;
  body: Uint8Array;
}

export interface CaptureFigures {
  /** Captures of all runs that ended in records up to this one are in the plant, or were skipped. */
  sequence: number;
  chunks: number;
  bytes: number;
  /** Ranges whose bytes are damaged here, or cannot be read. */
  skipped: number;
  /** Runs that were not sent, because they ended before what a full stream still has. */
  tooOld: number;
  /** What was skipped last, and why; null for nothing. */
  skippedText: string | null;
}

/**
 * Ships stored bytes of ended runs, run by run in the order of the log. Where it stands is what the cell's last message of the capture stream says: each
 * names the record that it was sent for. Each chunk expects that the stream does not have it yet, so the server refuses what is sent twice.
 */
export class CaptureShipper {
  readonly #options: CaptureShipperOptions;
  readonly #runs: EndedRun[] = [];
  readonly #ranges: NamedRange[] = [];
  /** The next chunk of the first range, from 1; 0: its extents are not verified yet. */
  #nextChunk = 0;
  /** Of the record whose ranges are being sent. */
  #sequence = 0;
  /** A full stream has dropped what came before this. So runs that ended before would only push newer ones out. */
  #keptSinceUs = 0;
  /** When the stream was made that takes them, in milliseconds since the Unix epoch; 0 before the first `begin`. */
  #streamMs = 0;
  /** Of the clock that never steps: a wall clock that goes back would hold everything up. */
  #nextAtMs = 0;
  /** Ranges that were skipped and may be met again after a loss of the connection: their places, and for which record. */
  readonly #skipped = new Map<string, number>();
  /** The range that could not be read last. */
  #unread = { place: "", tries: 0 };
  /** The last range was given up: the disk may have many such ones, so none of the next is waited for. */
  #isGivingUp = false;
  readonly #figures = { sequence: 0, chunks: 0, bytes: 0, skipped: 0, tooOld: 0, skippedText: null as string | null };

  constructor(options: CaptureShipperOptions) {
    this.#options = options;
  }

  get figures(): CaptureFigures {
    return { ...this.#figures };
  }

  /** How far it is, for the cell's messages of the log; null before the first `begin`. */
  get mark(): CaptureMark | null {
    return this.#streamMs === 0 ? null : { sequence: this.#figures.sequence, streamMs: this.#streamMs };
  }

  /**
   * Finds out where to go on.
   *
   * @param known what the log stream says of captures
   * @throws PlantRefusal if the stream does not take captures
   */
  async begin(plant: CaptureConnection, known: CaptureMark | null = null): Promise<void> {
    const { cell, storeId, tail } = this.#options;
    const { settings, createdMs, firstSequence, lastSequence, firstTimeMs } = await plant.requireCaptureStream();
    const last = await plant.lastMessage(storeSubjects(cell, storeId), CAPTURE_STREAM);
    this.#runs.length = 0;
    this.#ranges.length = 0;
    this.#nextChunk = 0;
    // The stream may have dropped all chunks of the cell by its limits: then they are not sent again. One that was made anew never had them.
    const hasDropped = lastSequence > 0 && firstSequence !== 1;
    const marks = [known, this.mark].filter((mark) => hasDropped && mark?.streamMs === createdMs);
    const before = Math.max(0, ...marks.map((mark) => mark?.sequence ?? 0));
    const after = last === null ? before : Math.max(0, decodeCauseSequence(last.header) - 1);
    tail.seek(after);
    this.#figures.sequence = after;
    // All is sent again, and what was skipped is met and counted again.
    if (after === 0 && this.#figures.chunks > 0) {
      this.#skipped.clear();
      this.#figures.skipped = 0;
    }
    this.#streamMs = createdMs;
    // What this cell has shipped before is gone on from. So it never leaves out a run that ended while the plant was away.
    const isFull = last === null && settings.max_bytes > 0 && firstSequence > 1;
    this.#keptSinceUs = isFull ? 1000 * firstTimeMs : 0;
    this.#figures.tooOld = 0;
  }

  /** Sends the next chunk or reads on for one, if the rate allows it. @returns false if there is nothing to do now */
  async step(plant: CaptureConnection): Promise<boolean> {
    if (this.#nowMs() < this.#nextAtMs) return false;
    for (;;) {
      const [range] = this.#ranges;
      if (range !== undefined) {
        if (this.#nextChunk > 0 || (await this.#isIntact(range))) {
          await this.#send(plant, range);
          return true;
        }
        this.#rangeDone();
        continue;
      }
      const run = this.#runs.shift();
      if (run !== undefined) this.#plan(run);
      // The log may have grown meanwhile, and goes first.
      else return this.#read();
    }
  }

  /** Reads on in the log. @returns false at its end */
  async #read(): Promise<boolean> {
    const batch = await this.#options.tail.next();
    if (batch === null) return false;
    forEachRecord({ bytes: batch.bytes, segmentBase: 0, offset: 0 }, ({ type, sequence, body }) => {
      if (type === RECORD_TYPE.runEnded) this.#runs.push({ sequence, type, body });
    });
    if (this.#runs.length === 0) this.#figures.sequence = batch.lastSequence;
    return true;
  }

  #plan({ sequence, type, body }: EndedRun): void {
    this.#sequence = sequence;
    const [change] = decodeChanges(type, body);
    const ranges = change?.kind === "run_ended" ? rangesOf(change.run, this.#options.policy) : [];
    const isTooOld = change?.kind === "run_ended" && (change.run.completedAtUs ?? 0) < this.#keptSinceUs;
    if (!isTooOld) this.#ranges.push(...ranges);
    else if (ranges.length > 0) this.#figures.tooOld++;
    this.#recordDone();
  }

  #recordDone(): void {
    if (this.#ranges.length === 0) this.#figures.sequence = this.#sequence;
  }

  #rangeDone(): void {
    this.#ranges.shift();
    this.#nextChunk = 0;
    this.#recordDone();
  }

  /** Compares the bytes with their CRCs, so that no damage travels as data. A file that retention has removed meanwhile is passed over. */
  async #isIntact(range: NamedRange): Promise<boolean> {
    const { fileSystem, capturesPath } = this.#options;
    const path = `${capturesPath}/${range.path}`;
    try {
      const [damage] = await verifyExtents(fileSystem, path, range.extents);
      if (damage !== undefined) this.#skip(range, `${range.path}, offset ${damage.extent.offset}: ${damage.reason}`);
      else this.#nextChunk = 1;
      return damage === undefined;
    } catch (error) {
      if (!(error instanceof StorageError)) this.#readFailed(range, error);
      else if (error.code !== "capture_missing" || range.kind === "report") this.#skip(range, error.message);
      return false;
    }
  }

  #skip(range: NamedRange, text: string): void {
    const place = placeOf(range);
    if (!this.#skipped.has(place)) this.#figures.skipped++;
    this.#skipped.set(place, this.#sequence);
    this.#figures.skippedText = text;
  }

  /** Leaves out bytes that the disk cannot read again and again, so that they do not hold up those behind them. @throws the error until the third try, and any other error */
  #readFailed(range: NamedRange, error: unknown): void {
    if (!isUnreadable(error)) throw error;
    const place = placeOf(range);
    const tries = this.#unread.place === place ? this.#unread.tries + 1 : 1;
    this.#unread = { place, tries };
    const isKnown = this.#skipped.has(place);
    if (tries < READ_TRIES && !isKnown && !this.#isGivingUp) throw error;
    if (!isKnown) this.#isGivingUp = true;
    this.#skip(range, (error as Error).message);
  }

  async #send(plant: CaptureConnection, range: NamedRange): Promise<void> {
    const { fileSystem, capturesPath, rateBytes } = this.#options;
    const index = this.#nextChunk;
    const within = (index - 1) * CHUNK_BYTES;
    const bytes = new Uint8Array(Math.min(CHUNK_BYTES, range.sizeBytes - within));
    const offset = range.offset + within;
    const read = withFile(fileSystem, `${capturesPath}/${range.path}`, (file) => readFully(file, bytes, offset));
    // Retention may have removed it meanwhile. Whatever else keeps the bytes from being read is for the caller.
    const readBytes = await orWhereMissing(read, null).catch((error: unknown) => {
      this.#readFailed(range, error);
      return null;
    });
    if (readBytes !== bytes.length) {
      if (readBytes !== null) this.#skip(range, `${range.path}, offset ${offset}: the file ends before its end`);
      return this.#rangeDone();
    }
    this.#isGivingUp = false;
    const { sizeBytes, path } = range;
    const count = chunkCount(sizeBytes);
    const fields = encodeChunk({ index, count, sizeBytes, offset, path, causeSequence: this.#sequence }, bytes);
    await this.#publish(plant, range, index, fields, bytes);
    // From now on no connection begins with a record before this one.
    for (const [place, sequence] of this.#skipped) if (sequence < this.#sequence) this.#skipped.delete(place);
    this.#figures.chunks++;
    this.#figures.bytes += bytes.length;
    if (rateBytes !== null)
      this.#nextAtMs = Math.max(this.#nowMs(), this.#nextAtMs) + (1000 * bytes.length) / rateBytes;
    if (index < count) this.#nextChunk++;
    else this.#rangeDone();
  }

  /** Stores the chunk unless the stream has it. If it has another one, of the range when it was shorter, this one replaces it. */
  async #publish(
    plant: CaptureConnection,
    range: NamedRange,
    index: number,
    fields: Record<string, string>,
    bytes: Uint8Array,
  ): Promise<void> {
    const subject = chunkSubject(this.#options.cell, this.#options.storeId, range, index);
    const publish = (expected: number) =>
      plant.publish(subject, fields, bytes, { subjects: subject, expected, stream: CAPTURE_STREAM });
    try {
      await publish(0);
    } catch (error) {
      if (!(error instanceof OtherLastMessage)) throw error;
      const last = await plant.lastMessage(subject, CAPTURE_STREAM);
      const isSame =
        last !== null && ["Inspection-Size", "Inspection-Crc32"].every((name) => last.header(name) === fields[name]);
      if (!isSame) await publish(last?.streamSequence ?? 0);
    }
  }

  #nowMs(): number {
    return (this.#options.monotonicMs ?? monotonicMs)();
  }
}

function placeOf({ path, offset }: NamedRange): string {
  return `${path}, offset ${offset}`;
}
