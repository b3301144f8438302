/** The messages of the log stream: subjects and header fields (README.md). */
import { crc32 } from "node:zlib";

export const LOG_STREAM = "INSPECTION_LOG";
export const LOG_SUBJECTS = "inspection.log.*.*";

/** Most bytes of records in a message. NATS servers take 1 MiB by default. */
export const BATCH_BYTES = 512 * 1024;
/** What a server must take (max_payload): a batch and its header fields. */
export const LEAST_PAYLOAD_BYTES = BATCH_BYTES + 4 * 1024;

/** A token of a NATS subject. Dots and wildcards have a meaning there. */
const CELL_NAME = /^[a-z0-9_-]{1,64}$/;

export function isCellName(text: string): boolean {
  return CELL_NAME.test(text);
}

export function logSubject(cell: string, storeId: string): string {
  return `inspection.log.${cell}.${storeId}`;
}

/** The subjects of all stores that a cell has had. */
export function cellSubjects(cell: string): string {
  return `inspection.log.${cell}.*`;
}

/** The cell of a subject of the log stream. */
export function cellOfSubject(subject: string): string {
  return subject.split(".")[2] ?? "";
}

export function storeIdOfSubject(subject: string): string {
  return subject.split(".")[3] ?? "";
}

export interface MessageFields {
  firstSequence: number;
  lastSequence: number;
  count: number;
  /** The last sequence number of the log before these; 0 for none. So a reader knows whether it lacks a message. */
  previousSequence: number;
  crc: number;
  /** From 1; both are 1 for a message of whole records. */
  part: number;
  parts: number;
}

/** How far the sender is with captures. */
export interface CaptureMark {
  /** Captures of runs that ended in records up to this one have been in the plant, or were left out; 0: none, or nobody knows. */
  sequence: number;
  /** When the capture stream was made that had them, in milliseconds since the Unix epoch: one that was made anew has nothing. 0: nobody knows. */
  streamMs: number;
}

/** What the sender says of itself with each message. It is no part of the records. */
export interface SenderFields {
  /** The last durable sequence number of the cell's log when the message was sent: so the cell was this far ahead of the plant. */
  logSequence: number;
  /** Where people reach the cell itself (`--public-url`); null if it was not told. */
  publicUrl: string | null;
  captures: CaptureMark;
}

export function encodeSender({ logSequence, publicUrl, captures }: SenderFields): Record<string, string> {
  return {
    "Inspection-Log-Sequence": String(logSequence),
    ...(publicUrl !== null && { "Inspection-Public-Url": publicUrl }),
    ...(captures.sequence > 0 && {
      "Inspection-Captures": String(captures.sequence),
      "Inspection-Captures-Stream": String(captures.streamMs),
    }),
  };
}

/** @returns 0 for a number that the message does not say */
export function decodeSender(get: (name: string) => string): SenderFields {
  const numberOf = (name: string) => (/^\d{1,15}$/.test(get(name)) ? Number(get(name)) : 0);
  const captures = { sequence: numberOf("Inspection-Captures"), streamMs: numberOf("Inspection-Captures-Stream") };
  return {
    logSequence: numberOf("Inspection-Log-Sequence"),
    publicUrl: get("Inspection-Public-Url") || null,
    captures,
  };
}

export function messageFields(fields: Omit<MessageFields, "crc">, bytes: Uint8Array): MessageFields {
  return { ...fields, crc: crc32(bytes) };
}

export function encodeFields(fields: MessageFields): Record<string, string> {
  const { firstSequence, lastSequence, count, previousSequence, crc, part, parts } = fields;
  return {
    "Inspection-First": String(firstSequence),
    "Inspection-Last": String(lastSequence),
    "Inspection-Count": String(count),
    "Inspection-Previous": String(previousSequence),
    "Inspection-Crc32": crc.toString(16).padStart(8, "0"),
    ...(parts > 1 && { "Inspection-Part": `${part}/${parts}` }),
  };
}

/** The fields of a message; null if they are missing or not possible, or if the bytes do not match their CRC. */
export function decodeFields(get: (name: string) => string, bytes: Uint8Array): MessageFields | null {
  const numberOf = (name: string) => (/^[1-9]\d{0,15}$/.test(get(name)) ? Number(get(name)) : Number.NaN);
  const crc = /^[0-9a-f]{8}$/.test(get("Inspection-Crc32")) ? Number.parseInt(get("Inspection-Crc32"), 16) : Number.NaN;
  const [firstSequence, lastSequence, count] = ["First", "Last", "Count"].map((name) => numberOf(`Inspection-${name}`));
  const previousSequence = get("Inspection-Previous") === "0" ? 0 : numberOf("Inspection-Previous");
  const match = /^([1-9]\d{0,5})\/([1-9]\d{0,5})$/.exec(get("Inspection-Part") || "1/1");
  const [part, parts] = [Number(match?.[1]), Number(match?.[2])];
  const fields = { firstSequence, lastSequence, count, previousSequence, crc, part, parts };
  const { first, last } = { first: firstSequence as number, last: lastSequence as number };
  const isPossible =
    last - first + 1 === count && previousSequence < first && part <= parts && (parts === 1 || count === 1);
  return isPossible && crc === crc32(bytes) ? (fields as MessageFields) : null;
}
