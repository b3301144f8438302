/**
 * Records of runs that have not ended, in the order they came. Most of these runs end a little later in the log, and then their records are never
 * decoded. Little-endian:
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 16 | run id |
 * | 16 | 8 | the record's time (f64) |
 * | 24 | 4 | b, bytes of the body |
 * | 28 | 2 | the record's type |
 * | 30 | 1 | p, bytes of the producer's name (ASCII); 0: the service itself |
 * | 31 | p | the name |
 * | … | b | the body |
 */
import { readUuid, writeUuid } from "../../core/identifiers.js";

const HEAD_BYTES = 31;

export interface KeptRecord {
  runId: string;
  type: number;
  timeUs: number;
  /** The producer whose message it commits; null for what the service does by itself, and where it is not needed. */
  producer: string | null;
  body: Uint8Array;
}

export function* packRecords(records: Iterable<KeptRecord>): Generator<Uint8Array, void> {
  for (const { runId, type, timeUs, producer, body } of records) {
    const name = producer ?? "";
    const head = new Uint8Array(HEAD_BYTES + name.length);
    const view = new DataView(head.buffer);
    writeUuid(runId, head, 0);
    view.setFloat64(16, timeUs, true);
    view.setUint32(24, body.length, true);
    view.setUint16(28, type, true);
    head[30] = name.length;
    for (let i = 0; i < name.length; i++) head[HEAD_BYTES + i] = name.charCodeAt(i);
    yield head;
    yield body;
  }
}

/** The bodies are parts of `bytes`. */
export function* unpackRecords(bytes: Uint8Array): Generator<KeptRecord, void> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const nameAt = at + HEAD_BYTES;
    const bodyAt = nameAt + view.getUint8(at + 30);
    const end = bodyAt + view.getUint32(at + 24, true);
    yield {
      runId: readUuid(bytes, at),
      type: view.getUint16(at + 28, true),
      timeUs: view.getFloat64(at + 16, true),
      producer: bodyAt === nameAt ? null : String.fromCharCode(...bytes.subarray(nameAt, bodyAt)),
      body: bytes.subarray(bodyAt, end),
    };
    at = end;
  }
}
