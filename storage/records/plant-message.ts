/**
 * The record of a message of the plant's stream, of type 24. Only the log of a hub has it (workers/hub). The records of the message follow it, with
 * the next sequence numbers. The index section is an empty origin and a MessagePack map of `PlantMessage`, in which `partSequences` is absent instead of
 * null; the body is empty.
 */
import { decodeMap, encodeMessagePack } from "./message-pack.js";
import { RecordDecodeError } from "./record-decode-error.js";

export const PLANT_RECORD_TYPE = { plantMessage: 24 } as const;

const EMPTY_ORIGIN = new Uint8Array(9);

export interface PlantMessage {
  /** Name of the cell in the plant. */
  cell: string;
  /** The UUID of the cell's store: a cell whose disk was replaced has another one. */
  storeId: string;
  /** The message's place in the stream. */
  streamSequence: number;
  /** Places in the stream of parts of records that came before and are not whole yet, ascending; null: the same as at the last message. */
  partSequences: readonly number[] | null;
  /** When the stream took the message, in microseconds since the Unix epoch. */
  streamTimeUs: number;
  /** `updated_at` of what the first record changes; the next record has 1 µs more, and so on. */
  markUs: number;
  /** The last sequence number of the cell's own log that the message has; 0 if it cannot be read: then `fault` says why. */
  lastSequence: number;
  /** How many records the cell had more when it sent the message. */
  lagRecords: number;
  /** How many records of the message follow. */
  count: number;
  /** What is wrong with the message, for people; null if nothing is. */
  fault: string | null;
}

export function encodePlantMessage({ partSequences, ...others }: PlantMessage): Uint8Array {
  const fields = partSequences === null ? others : { ...others, partSequences };
  return Buffer.concat([EMPTY_ORIGIN, encodeMessagePack(fields)]);
}

/** @param bytes the index section without the origin @throws RecordDecodeError */
export function decodePlantMessage(bytes: Uint8Array): PlantMessage {
  const { cell, storeId, fault, partSequences = null, ...numbers } = decodeMap(bytes);
  const { streamSequence, streamTimeUs, markUs, lastSequence, lagRecords, count } = numbers;
  const places = { streamSequence, streamTimeUs, markUs, lastSequence, lagRecords, count };
  const isNumber = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
  const areParts = partSequences === null || (Array.isArray(partSequences) && partSequences.every(isNumber));
  const areNumbers = Object.values(places).every(isNumber) && areParts;
  const areTexts =
    typeof cell === "string" && typeof storeId === "string" && (fault === null || typeof fault === "string");
  if (!areNumbers || !areTexts) throw new RecordDecodeError("a message of the plant without its fields");
  return { cell, storeId, fault, partSequences, ...places } as PlantMessage;
}
