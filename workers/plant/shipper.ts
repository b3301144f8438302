import { setTimeout } from "node:timers/promises";
import {
  BATCH_BYTES,
  cellSubjects,
  decodeFields,
  encodeFields,
  logSubject,
  type MessageFields,
  messageFields,
} from "./log-message.js";
import type { LogBatch, LogTail } from "./log-tail.js";
import { OtherLastMessage, type PlantClient, PlantRefusal, type StoredMessage } from "./plant-client.js";

/** How often the log is looked at while everything is shipped. */
const LOOK_MS = 100;
/** Pauses after a failure: the first, and the longest, which is also that after a refusal. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/** What the shipper uses of the client. */
export type PlantConnection = Pick<PlantClient, "requireLogStream" | "lastMessage" | "publish" | "close" | "isClosed">;

export interface ShipperStatus {
  /** Why nothing is shipped now, in one line; null while the plant takes messages. */
  fault: string | null;
  /** The last sequence number that the plant has acknowledged; 0 before the first. */
  shippedSequence: number;
  durableSequence: number;
}

export interface ShipperOptions {
  cell: string;
  storeId: string;
  tail: LogTail;
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
        this.#report(isRefusal ? error.message : `the plant does not take messages: ${reasonOf(error)}`);
        await this.#pause(isRefusal ? longestPauseMs : pauseMs);
        pauseMs = Math.min(2 * pauseMs, longestPauseMs);
      }
    }
  }

  async #ship(onSuccess: () => void): Promise<void> {
    const plant = await this.#options.connect();
    try {
      await plant.requireLogStream();
      let standing = await this.#standing(plant);
      this.#report(null);
      while (!this.#stop.signal.aborted) {
        const batch = await this.#options.tail.next();
        if (batch === null) {
          if (plant.isClosed) throw new Error("the connection was lost");
          this.#report(null);
          await this.#pause(this.#options.lookMs ?? LOOK_MS);
          continue;
        }
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
    const bytes = whole !== null && parts > 1 ? partOf(whole, part) : whole;
    if (bytes !== null && Buffer.compare(bytes, message.bytes) === 0) return fields;
    throw new PlantRefusal(
      `${place} has records ${firstSequence} to ${lastSequence} of this store, but its log has others: ` +
        "another copy of the store ships, or the store was put back from a backup",
    );
  }

  async #publish(plant: PlantConnection, batch: LogBatch, from: Standing): Promise<Standing> {
    const { firstSequence, lastSequence } = batch;
    const count = lastSequence - firstSequence + 1;
    const parts = Math.max(1, Math.ceil(batch.bytes.length / BATCH_BYTES));
    let expected = from.streamSequence;
    for (let part = parts > 1 ? from.part : 1; part <= parts; part++) {
      const bytes = partOf(batch.bytes, part);
      const fields = encodeFields(messageFields({ firstSequence, lastSequence, count, part, parts }, bytes));
      expected = await plant.publish(this.#subject, fields, bytes, {
        subjects: cellSubjects(this.#options.cell),
        expected,
      });
    }
    this.#shipped = lastSequence;
    return { part: 1, streamSequence: expected };
  }

  #report(fault: string | null): void {
    const durableSequence = this.#options.tail.durableSequence;
    this.#options.onStatus({ fault, shippedSequence: this.#shipped, durableSequence });
  }

  async #pause(pauseMs: number): Promise<void> {
    await setTimeout(pauseMs, undefined, { signal: this.#stop.signal }).catch(() => {});
  }
}

function partOf(bytes: Uint8Array, part: number): Uint8Array {
  return bytes.subarray((part - 1) * BATCH_BYTES, part * BATCH_BYTES);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
