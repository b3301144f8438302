/**
 * What dropped records leave behind: how far each producer was in its sequence, as the body of the stretch that takes their place
 * (dropped-record.ts): MessagePack `[[producer, sequence, instance, timeUs], …]`, with the highest sequence number of each producer's
 * instance, and its record's time. `instance` is null for what came without one.
 */
import { canonicalUuid } from "../../core/identifiers.js";
import type { LogRecord } from "../log/log-batch.js";
import { LOG_RECORD_TYPE } from "../log/record-format.js";
import { decodeMessagePack } from "../records/message-pack.js";
import { MessagePackEncoder } from "../records/message-pack-encoder.js";
import { decodeIndex, isChangeRecordType, type Origin, RecordDecodeError } from "../records/record-index.js";

/** How far a producer was, and when. */
export interface ReachedOrigin extends Origin {
  /** Of the record, UTC in microseconds. */
  timeUs: number;
}

/** The account of one stretch. */
export class DroppedOrigins {
  readonly #reached = new Map<string, ReachedOrigin>();

  /** One more record of the stretch; a stretch of before is taken in whole. */
  add(record: LogRecord): void {
    if (record.type === LOG_RECORD_TYPE.dropped) {
      for (const origin of decodeDroppedOrigins(record.body)) this.#reach(origin);
    } else if (isChangeRecordType(record.type)) {
      const { origin } = decodeIndex(record.type, record.index);
      if (origin !== null) this.#reach({ ...origin, timeUs: record.timeUs });
    }
  }

  body(): Uint8Array {
    const rows = [...this.#reached.values()].map((one) => [
      one.producer,
      one.sequence,
      one.instance ?? null,
      one.timeUs,
    ]);
    return new MessagePackEncoder().encode(rows);
  }

  #reach(origin: ReachedOrigin): void {
    const key = `${origin.producer} ${origin.instance ?? ""}`;
    const before = this.#reached.get(key);
    if (before === undefined || before.sequence < origin.sequence) this.#reached.set(key, origin);
  }
}

/** @throws {RecordDecodeError} The body is not one that `DroppedOrigins` makes. */
export function decodeDroppedOrigins(body: Uint8Array): ReachedOrigin[] {
  let value: unknown;
  try {
    value = decodeMessagePack(body);
  } catch (error) {
    throw new RecordDecodeError(`the body is not MessagePack: ${String(error)}`);
  }
  if (!Array.isArray(value)) throw new RecordDecodeError("a dropped stretch without its producers");
  return value.map((entry: unknown) => {
    const [producer, sequence, instance = null, timeUs = 0] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof producer !== "string" || !Number.isSafeInteger(sequence) || !Number.isSafeInteger(timeUs)) {
      throw new RecordDecodeError("a dropped stretch with a producer that has no number");
    }
    const known = { producer, sequence: sequence as number, timeUs: timeUs as number };
    if (instance === null) return known;
    if (typeof instance !== "string" || canonicalUuid(instance) !== instance) {
      throw new RecordDecodeError("a dropped stretch with an instance that is no UUID");
    }
    return { ...known, instance };
  });
}
