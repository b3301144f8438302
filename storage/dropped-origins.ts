/**
 * What dropped records leave behind: how far each producer was in its sequence, as the body of the stretch that takes their place
 * (dropped-record.ts): MessagePack `[[producer, sequence], …]`, with the highest sequence number of each.
 */
import type { LogRecord } from "./log-batch.js";
import { decodeMessagePack } from "./message-pack.js";
import { MessagePackEncoder } from "./message-pack-encoder.js";
import { LOG_RECORD_TYPE } from "./record-format.js";
import { decodeIndex, isChangeRecordType, type Origin, RecordDecodeError } from "./record-index.js";

/** The account of one stretch. */
export class DroppedOrigins {
  readonly #sequences = new Map<string, number>();

  /** One more record of the stretch; a stretch of before is taken in whole. */
  add(record: LogRecord): void {
    if (record.type === LOG_RECORD_TYPE.dropped) {
      for (const origin of decodeDroppedOrigins(record.body)) this.#reach(origin);
    } else if (isChangeRecordType(record.type)) {
      const { origin } = decodeIndex(record.type, record.index);
      if (origin !== null) this.#reach(origin);
    }
  }

  body(): Uint8Array {
    return new MessagePackEncoder().encode([...this.#sequences]);
  }

  #reach({ producer, sequence }: Origin): void {
    this.#sequences.set(producer, Math.max(sequence, this.#sequences.get(producer) ?? 0));
  }
}

/** @throws {RecordDecodeError} The body is not one that `DroppedOrigins` makes. */
export function decodeDroppedOrigins(body: Uint8Array): Origin[] {
  let value: unknown;
  try {
    value = decodeMessagePack(body);
  } catch (error) {
    throw new RecordDecodeError(`the body is not MessagePack: ${String(error)}`);
  }
  if (!Array.isArray(value)) throw new RecordDecodeError("a dropped stretch without its producers");
  return value.map((entry: unknown) => {
    const [producer, sequence] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof producer !== "string" || !Number.isSafeInteger(sequence)) {
      throw new RecordDecodeError("a dropped stretch with a producer that has no number");
    }
    return { producer, sequence: sequence as number };
  });
}
