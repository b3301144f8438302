import { setTimeout } from "node:timers/promises";
import { readRecordHeader } from "../../storage/log/record-format.js";
import type { CaptureFigures, CaptureShipper } from "./capture-shipper.js";
import {
  BATCH_BYTES,
  type CaptureMark,
  cellSubjects,
  decodeSender,
  encodeFields,
  encodeSender,
  logSubject,
  type MessageFields,
  messageFields,
} from "./log-message.js";
import type { LogBatch, LogTail } from "./log-tail.js";
import { placeless, placelessRecords } from "./placeless-records.js";
import { lastSent, OtherLastMessage, type PlantClient, PlantRefusal, type StoredMessage } from "./plant-client.js";

/** How often the log is looked at while everything is shipped. */
const LOOK_MS = 100;
/** Pauses after a failure: the first, and the longest, which is also that after a refusal. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** How often the lag is measured: it reads a batch. */
const MEASURE_MS = 1_000;

/** What the shipper uses of the client. */
export type PlantConnection = Pick<
  PlantClient,
  "requireLogStream" | "requireCaptureStream" | "lastMessage" | "previousMessage" | "publish" | "close" | "isClosed"
>;

export interface ShipperStatus {
  /** Why nothing is shipped now, in one line; null while the plant takes messages. */
  fault: string | null;
  /** The last sequence number that the plant has acknowledged; 0 before the first. */
  shippedSequence: number;
  durableSequence: number;
  /** Bytes of the log that the plant has not acknowledged, about. */
  lagBytes: number;
  /** When the oldest record that the plant has not acknowledged was written, in microseconds since the Unix epoch; null: it has all. */
  oldestUnshippedUs: number | null;
  /** Sequence numbers that this log has lost to damage, so that they cannot be shipped; null for none since the start. */
  lost: { records: number; first: number; last: number } | null;
  /** Place in the log stream of the cell's last message if no shipper sent it, or if it is damaged; null for none. It was passed over. */
  foreign: number | null;
  /** Null: captures are not shipped. */
  captures: CaptureFigures | null;
  /** Why no captures are shipped although they should be; null while they are. */
  captureFault: string | null;
  /** What this store lacks since it was restored from the plant, until somebody has read it; null: nothing. */
  restored: string | null;
}

export interface ShipperOptions {
  cell: string;
  storeId: string;
  tail: LogTail;
  /** Undefined: captures are not shipped. */
  captures?: CaptureShipper;
  /** Where people reach the cell; null if nobody said. */
  publicUrl?: string | null;
  /** The last sequence number that is committed; what the tail has proven may be behind it. */
  committedSequence?(): number;
  /** See `ShipperStatus.restored`. */
  restoredNote?(): string | null;
  connect(): Promise<PlantConnection>;
  onStatus(status: ShipperStatus): void;
  lookMs?: number;
  firstPauseMs?: number;
  longestPauseMs?: number;
}

/** The next message: the part of a record, or 1, and what the stream must end with. */
interface Standing {
  part: number;
  streamSequence: number;
}

/** Ships the log: reads where the plant stands, then publishes batch after batch, one at a time (README.md). */
export class Shipper {
  readonly #options: ShipperOptions;
  readonly #subject: string;
  readonly #stop = new AbortController();
  #shipped = 0;
  #lost: ShipperStatus["lost"] = null;
  #foreign: number | null = null;
  /** Sequence number of the record whose parts are being sent; 0: none. */
  #inParts = 0;
  /** Place of a part that was the last message at the last look. Its sender may be alive. */
  #unfinished = 0;
  #lag: Pick<ShipperStatus, "lagBytes" | "oldestUnshippedUs"> = { lagBytes: 0, oldestUnshippedUs: null };
  #measuredAtMs = Number.NEGATIVE_INFINITY;
  #captureFault: string | null = null;
  /** When captures are tried again after a refusal: milliseconds of `performance.now`. */
  #capturesAtMs = 0;
  #capturesBegun = false;
  /** What the cell's last message says of captures. */
  #captureMark: CaptureMark = { sequence: 0, streamMs: 0 };

  constructor(options: ShipperOptions) {
    this.#options = options;
    this.#subject = logSubject(options.cell, options.storeId);
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Ships until `stop`; never rejects. */
  async run(): Promise<void> {
    const { firstPauseMs = FIRST_PAUSE_MS, longestPauseMs = LONGEST_PAUSE_MS } = this.#options;
    let pauseMs = firstPauseMs;
    while (!this.#stop.signal.aborted) {
      try {
        await this.#ship(() => (pauseMs = firstPauseMs));
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        const isRefusal = error instanceof PlantRefusal;
        const fault = isRefusal ? error.message : `the plant does not take messages: ${reasonOf(error)}`;
        this.#report(fault);
        await this.#pauseAway(fault, isRefusal ? longestPauseMs : pauseMs);
        pauseMs = Math.min(2 * pauseMs, longestPauseMs);
      }
    }
  }

  async #ship(onSuccess: () => void): Promise<void> {
    const plant = await this.#options.connect();
    this.#capturesBegun = false;
    try {
      await plant.requireLogStream();
      let standing = await this.#standing(plant);
      this.#report(null);
      while (!this.#stop.signal.aborted) {
        const batch = await this.#options.tail.next();
        if (batch === null) {
          if (plant.isClosed) throw new Error("the connection was lost");
          this.#lag = { lagBytes: 0, oldestUnshippedUs: null };
          const isSent = await this.#shipCaptures(plant);
          this.#report(null);
          if (!isSent) await this.#pause(this.#options.lookMs ?? LOOK_MS);
          continue;
        }
        this.#noteGap(batch);
        await this.#measure(batch);
        try {
          standing = await this.#publish(plant, batch, standing);
          onSuccess();
        } catch (error) {
          if (!(error instanceof OtherLastMessage)) throw error;
          standing = await this.#standing(plant);
        }
        this.#report(null);
      }
    } finally {
      await plant.close();
    }
  }

  /** Where the plant stands, from the last message of the cell; the tail goes on from there. @throws PlantRefusal if this store may not ship */
  async #standing(plant: PlantConnection): Promise<Standing> {
    const { streamSequence, foreign, sent } = await lastSent(plant, cellSubjects(this.#options.cell));
    const isOwn = sent?.message.subject === this.#subject;
    if (sent !== null && !isOwn && (await lastSent(plant, this.#subject)).sent !== null) {
      throw new PlantRefusal(
        `another store ships as the cell ${this.#options.cell} (${sent.message.subject}): give each cell a name of its own`,
      );
    }
    this.#foreign = foreign;
    const behind = sent !== null && isOwn ? await this.#behind(sent.message, sent.fields) : await this.#first(plant);
    if (sent !== null && isOwn) this.#captureMark = decodeSender(sent.message.header).captures;
    if (behind === null) {
      await this.#pause((this.#options.longestPauseMs ?? LONGEST_PAUSE_MS) / 6);
      return this.#standing(plant);
    }
    const { afterSequence, part } = behind;
    this.#shipped = afterSequence;
    this.#options.tail.seek(afterSequence);
    return { part, streamSequence };
  }

  /** A store that the plant has under another name is sent whole under this one, if it goes on with what came last. @throws PlantRefusal */
  async #first(plant: PlantConnection) {
    const { sent } = await lastSent(plant, logSubject("*", this.#options.storeId));
    if (sent !== null) await this.#behind(sent.message, sent.fields);
    return { afterSequence: 0, part: 1 };
  }

  /**
   * Where the shipper goes on behind this message. Damage may have taken some of its records here: those that both have must be the same.
   *
   * @returns null if it is a part whose sender may be alive: look again in some seconds
   * @throws PlantRefusal if this log has other records, or ends before
   */
  async #behind({ streamSequence, bytes }: StoredMessage, fields: MessageFields) {
    const { tail } = this.#options;
    const { firstSequence, lastSequence, previousSequence, part, parts } = fields;
    const { batches, isPassed } = await tail.range(firstSequence, lastSequence);
    const own = new Map(batches.flatMap((batch) => [...placelessRecords(batch.bytes)]));
    const theirs =
      parts === 1 ? placelessRecords(bytes) : new Map([[firstSequence, part === 1 ? placeless(bytes) : bytes]]);
    const isSame = [...theirs].every(([sequence, record]) => {
      const mine = own.get(sequence);
      return mine === undefined || Buffer.compare(parts === 1 ? mine : partOf(mine, part), record) === 0;
    });
    if (isSame && isPassed && part === parts) return { afterSequence: lastSequence, part: 1 };
    const isOwn = isSame && own.size > 0 && this.#inParts === firstSequence;
    if (isOwn) return { afterSequence: previousSequence, part: part + 1 };
    const { isPassed: hasPrevious } = await tail.range(previousSequence, previousSequence);
    if (part < parts && (previousSequence === 0 || hasPrevious)) {
      // The rest of this record will never come: its sender has died. The record is sent from its first part, or what the log has instead.
      if (this.#unfinished === streamSequence) return { afterSequence: previousSequence, part: 1 };
      this.#unfinished = streamSequence;
      return null;
    }
    throw new PlantRefusal(
      `message ${streamSequence} of the log stream has records ${firstSequence} to ${lastSequence} of this store, but its log has others: ` +
        "another copy of the store ships, or the store was put back from a backup",
    );
  }

  async #publish(plant: PlantConnection, batch: LogBatch, from: Standing): Promise<Standing> {
    const { firstSequence, lastSequence } = batch;
    const range = { firstSequence, lastSequence, previousSequence: this.#shipped };
    const count = lastSequence - firstSequence + 1;
    const parts = Math.max(1, Math.ceil(batch.bytes.length / BATCH_BYTES));
    const sender = encodeSender({
      logSequence: this.#lastSequence,
      publicUrl: this.#options.publicUrl ?? null,
      captures: this.#options.captures?.mark ?? this.#captureMark,
    });
    let expected = from.streamSequence;
    for (let part = parts > 1 ? from.part : 1; part <= parts; part++) {
      if (part === 1) this.#inParts = firstSequence;
      const bytes = partOf(batch.bytes, part);
      const fields = encodeFields(messageFields({ ...range, count, part, parts }, bytes));
      expected = await plant.publish(this.#subject, { ...fields, ...sender }, bytes, {
        subjects: cellSubjects(this.#options.cell),
        expected,
      });
    }
    this.#shipped = lastSequence;
    return { part: 1, streamSequence: expected };
  }

  /** Sends one chunk of captures. Whatever refuses them does not hold up the log. */
  async #shipCaptures(plant: PlantConnection): Promise<boolean> {
    const { captures, longestPauseMs = LONGEST_PAUSE_MS } = this.#options;
    if (captures === undefined || performance.now() < this.#capturesAtMs) return false;
    try {
      if (!this.#capturesBegun) await captures.begin(plant, this.#captureMark);
      this.#capturesBegun = true;
      const isSent = await captures.step(plant);
      this.#captureFault = null;
      return isSent;
    } catch (error) {
      if (plant.isClosed) throw error;
      this.#captureFault = `captures are not shipped: ${reasonOf(error)}`;
      this.#capturesBegun = false;
      this.#capturesAtMs = performance.now() + longestPauseMs;
      return false;
    }
  }

  /** Sequence numbers between two messages are lost to damage of the log. The reader sees the jump; here it is counted and said. */
  #noteGap({ firstSequence }: LogBatch): void {
    const first = this.#shipped + 1;
    if (firstSequence <= first) return;
    const last = firstSequence - 1;
    if (this.#lost?.last === last) return;
    this.#lost = { records: (this.#lost?.records ?? 0) + last - first + 1, first: this.#lost?.first ?? first, last };
  }

  async #measure(oldest: LogBatch): Promise<void> {
    if (performance.now() - this.#measuredAtMs < MEASURE_MS) return;
    this.#measuredAtMs = performance.now();
    const lagBytes = oldest.bytes.length + (await this.#options.tail.unreadBytes());
    this.#lag = { lagBytes, oldestUnshippedUs: firstTimeUs(oldest) };
  }

  /** Waits. Meanwhile the log may grow, and with it what the plant lacks. */
  async #pauseAway(fault: string, pauseMs: number): Promise<void> {
    const endMs = performance.now() + pauseMs;
    const { tail } = this.#options;
    while (!this.#stop.signal.aborted) {
      tail.seek(this.#shipped);
      const oldest = await tail.next().catch(() => null);
      if (oldest !== null) await this.#measure(oldest).catch(() => {});
      this.#report(fault);
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) return;
      await this.#pause(Math.min(leftMs, MEASURE_MS));
    }
  }

  /** The last sequence number of the log that is known here. */
  get #lastSequence(): number {
    return Math.max(this.#options.tail.durableSequence, this.#options.committedSequence?.() ?? 0);
  }

  #report(fault: string | null): void {
    // With nothing left to ship, all that is proven has been shipped. A last mark of the log is proven by nothing.
    const isDone = fault === null && this.#lag.oldestUnshippedUs === null;
    const durableSequence = isDone ? this.#options.tail.durableSequence : this.#lastSequence;
    const captures = this.#options.captures?.figures ?? null;
    const [lost, captureFault] = [this.#lost, this.#captureFault];
    const restored = this.#options.restoredNote?.() ?? null;
    this.#options.onStatus({
      ...{ fault, shippedSequence: this.#shipped, durableSequence, ...this.#lag },
      ...{ lost, foreign: this.#foreign, captures, captureFault, restored },
    });
  }

  async #pause(pauseMs: number): Promise<void> {
    await setTimeout(pauseMs, undefined, { signal: this.#stop.signal }).catch(() => {});
  }
}

function partOf(bytes: Uint8Array, part: number): Uint8Array {
  return bytes.subarray((part - 1) * BATCH_BYTES, part * BATCH_BYTES);
}

function firstTimeUs({ bytes }: LogBatch): number {
  return readRecordHeader(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0).timeUs;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
