import { setTimeout } from "node:timers/promises";
import { readRecordHeader } from "../../storage/log/record-format.js";
import type { CaptureFigures, CaptureShipper } from "./capture-shipper.js";
import {
  BATCH_BYTES,
  cellSubjects,
  decodeFields,
  encodeFields,
  encodeSender,
  logSubject,
  type MessageFields,
  messageFields,
} from "./log-message.js";
import type { LogBatch, LogTail } from "./log-tail.js";
import { placeless } from "./placeless-records.js";
import { OtherLastMessage, type PlantClient, PlantRefusal, type StoredMessage } from "./plant-client.js";

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
  "requireLogStream" | "requireCaptureStream" | "lastMessage" | "publish" | "close" | "isClosed"
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
  #lag: Pick<ShipperStatus, "lagBytes" | "oldestUnshippedUs"> = { lagBytes: 0, oldestUnshippedUs: null };
  #measuredAtMs = Number.NEGATIVE_INFINITY;
  #captureFault: string | null = null;
  /** When captures are tried again after a refusal, in milliseconds. */
  #capturesAtMs = 0;
  #capturesBegun = false;

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
    const last = await plant.lastMessage(cellSubjects(this.#options.cell));
    const own = last?.subject === this.#subject ? last : await plant.lastMessage(this.#subject);
    if (last !== null && own !== null && own !== last) {
      throw new PlantRefusal(
        `another store ships as the cell ${this.#options.cell} (${last.subject}): give each cell a name of its own`,
      );
    }
    const streamSequence = last?.streamSequence ?? 0;
    if (own === null) {
      this.#shipped = 0;
      this.#options.tail.seek(0);
      return { part: 1, streamSequence };
    }
    const { lastSequence, part, parts } = await this.#confirmed(own);
    const isWhole = part === parts;
    const afterSequence = isWhole ? lastSequence : lastSequence - 1;
    this.#shipped = afterSequence;
    this.#options.tail.seek(afterSequence);
    return { part: isWhole ? 1 : part + 1, streamSequence };
  }

  /** The fields of the plant's last message, if this log has the same records. */
  async #confirmed(message: StoredMessage): Promise<MessageFields> {
    const fields = decodeFields(message.header, message.bytes);
    const place = `message ${message.streamSequence} of the log stream`;
    if (fields === null) throw new PlantRefusal(`${place} is damaged, or was not sent by this service`);
    const { firstSequence, lastSequence, part, parts } = fields;
    const whole = await this.#options.tail.range(firstSequence, lastSequence);
    const bytes = whole !== null && parts > 1 ? partOf(placeless(whole), part) : whole && placeless(whole);
    const theirs = part === 1 ? placeless(message.bytes) : message.bytes;
    if (bytes !== null && Buffer.compare(bytes, theirs) === 0) return fields;
    throw new PlantRefusal(
      `${place} has records ${firstSequence} to ${lastSequence} of this store, but its log has others: ` +
        "another copy of the store ships, or the store was put back from a backup",
    );
  }

  async #publish(plant: PlantConnection, batch: LogBatch, from: Standing): Promise<Standing> {
    const { firstSequence, lastSequence } = batch;
    const count = lastSequence - firstSequence + 1;
    const parts = Math.max(1, Math.ceil(batch.bytes.length / BATCH_BYTES));
    const sender = encodeSender({
      logSequence: this.#lastSequence,
      publicUrl: this.#options.publicUrl ?? null,
    });
    let expected = from.streamSequence;
    for (let part = parts > 1 ? from.part : 1; part <= parts; part++) {
      const bytes = partOf(batch.bytes, part);
      const fields = encodeFields(messageFields({ firstSequence, lastSequence, count, part, parts }, bytes));
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
    if (captures === undefined || Date.now() < this.#capturesAtMs) return false;
    try {
      if (!this.#capturesBegun) await captures.begin(plant);
      this.#capturesBegun = true;
      const isSent = await captures.step(plant);
      this.#captureFault = null;
      return isSent;
    } catch (error) {
      if (plant.isClosed) throw error;
      this.#captureFault = `captures are not shipped: ${reasonOf(error)}`;
      this.#capturesBegun = false;
      this.#capturesAtMs = Date.now() + longestPauseMs;
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
      ...{ lost, captures, captureFault, restored },
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
