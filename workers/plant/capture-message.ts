/**
 * The messages of the capture stream. Stored bytes of a run travel as *ranges* of its two files (capture-path.ts), when the run has ended. The
 * subject of a chunk is `inspection.captures.<cell>.<store id>.<run id>.<range>.<n>`:
 *
 * - `<range>` is `<cap|rep>-<offset>`: the file, and where in it the range begins. The offset is that of the extent in the run's records.
 *   - `rep-0` is the whole file of reports.
 *   - `cap-0` is the whole file of captures; only with `--plant-captures all`, or if a preview lies there.
 *   - `cap-<offset>` is one extent, such as a preview.
 * - `<n>` is the number of the chunk in its range, from 1. Each chunk has 512 KiB, the last one less.
 *
 * So a reader of an extent knows the subjects: `cap-<offset>.1` and on, or else the chunks of `cap-0` that cover it. A range of the same name may be
 * sent again when it has become longer: then the last message on each subject counts, and `Inspection-Size` says which chunks belong together.
 */
import { crc32 } from "node:zlib";
import type { CaptureKind } from "../../storage/captures/capture-path.js";

export const CAPTURE_STREAM = "INSPECTION_CAPTURES";
export const CAPTURE_SUBJECTS = "inspection.captures.*.*.*.*.*";

/** Bytes of a chunk, except for the last one of a range. */
export const CHUNK_BYTES = 512 * 1024;

const ENDINGS = { capture: "cap", report: "rep" } as const satisfies Record<CaptureKind, string>;

export interface CaptureRange {
  runId: string;
  kind: CaptureKind;
  /** Where it begins in the run's file. */
  offset: number;
}

export interface ChunkFields {
  /** From 1. */
  index: number;
  /** Chunks of the range. */
  count: number;
  /** Bytes of the range. */
  sizeBytes: number;
  /** Where this chunk begins in the run's file. */
  offset: number;
  /** Of this chunk's bytes. */
  crc: number;
  /** The run's file that it is part of, relative to the captures folder. */
  path: string;
  /** Sequence number of the log's record that it was sent for: the end of the run. The sender goes on from there. */
  causeSequence: number;
}

export function chunkSubject(cell: string, storeId: string, { runId, kind, offset }: CaptureRange, index: number) {
  return `inspection.captures.${cell}.${storeId}.${runId}.${ENDINGS[kind]}-${offset}.${index}`;
}

/** All chunks of a store. */
export function storeSubjects(cell: string, storeId: string): string {
  return `inspection.captures.${cell}.${storeId}.*.*.*`;
}

/** All chunks of a run. */
export function runSubjects(cell: string, storeId: string, runId: string): string {
  return `inspection.captures.${cell}.${storeId}.${runId}.*.*`;
}

const SUBJECT =
  /^inspection\.captures\.([a-z0-9_-]+)\.([0-9a-f-]{36})\.([0-9a-f-]{36})\.(cap|rep)-(\d{1,15})\.(\d{1,9})$/;

/** What a subject names; null for one that this service does not make. */
export function parseChunkSubject(
  subject: string,
): { cell: string; storeId: string; range: CaptureRange; index: number } | null {
  const [, cell = "", storeId = "", runId = "", ending, offset, index] = SUBJECT.exec(subject) ?? [];
  if (index === undefined) return null;
  const kind: CaptureKind = ending === "cap" ? "capture" : "report";
  return { cell, storeId, range: { runId, kind, offset: Number(offset) }, index: Number(index) };
}

export function encodeChunk(fields: Omit<ChunkFields, "crc">, bytes: Uint8Array): Record<string, string> {
  return {
    "Inspection-Index": String(fields.index),
    "Inspection-Count": String(fields.count),
    "Inspection-Size": String(fields.sizeBytes),
    "Inspection-Offset": String(fields.offset),
    "Inspection-Crc32": crc32(bytes).toString(16).padStart(8, "0"),
    "Inspection-File": fields.path,
    "Inspection-Sequence": String(fields.causeSequence),
  };
}

/** The fields of a chunk; null if they are missing or not possible, or if the bytes do not match their CRC. */
export function decodeChunk(get: (name: string) => string, bytes: Uint8Array): ChunkFields | null {
  const numberOf = (name: string) => (/^\d{1,15}$/.test(get(name)) ? Number(get(name)) : Number.NaN);
  const [index, count, sizeBytes, offset] = ["Index", "Count", "Size", "Offset"].map((name) =>
    numberOf(`Inspection-${name}`),
  ) as [number, number, number, number];
  const crc = /^[0-9a-f]{8}$/.test(get("Inspection-Crc32")) ? Number.parseInt(get("Inspection-Crc32"), 16) : Number.NaN;
  const length = Math.min(CHUNK_BYTES, sizeBytes - (index - 1) * CHUNK_BYTES);
  const isPossible = index >= 1 && count === chunkCount(sizeBytes) && bytes.length === length && offset >= 0;
  return isPossible && crc === crc32(bytes)
    ? { index, count, sizeBytes, offset, crc, path: get("Inspection-File"), causeSequence: decodeCauseSequence(get) }
    : null;
}

/** The record that a chunk was sent for; 0 if it does not say. */
export function decodeCauseSequence(get: (name: string) => string): number {
  const text = get("Inspection-Sequence");
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}

export function chunkCount(sizeBytes: number): number {
  return Math.ceil(sizeBytes / CHUNK_BYTES);
}
