import { lowerBound } from "../../../core/lower-bound.js";
import { type FindingQuery, wantedSettings } from "../../../storage/findings/finding-query.js";
import { runsInOrder } from "../../../storage/findings/runs-in-order.js";
import type { FindingsReader } from "../../../storage/findings/segment-findings.js";
import { aqdefHead, aqdefRows } from "./aqdef.js";
import { CSV_ROWS, NDJSON_ROWS, type RowFormat, SegmentRows } from "./check-rows.js";
import { ProgramSummary, TooManyNamesError } from "./program-summary.js";
import { TextBytes } from "./text-bytes.js";

export type ChecksFormat = "csv" | "ndjson" | "dfq";

/** How an AQDEF file begins. */
export interface AqdefStart {
  head: Uint8Array<ArrayBuffer>;
  /** JSON of its characteristics' names, in the order of their numbers: each piece is told, and one text is copied fast. */
  namesJson: string;
}

/**
 * Where an export goes on, in the order of its rows: at a check of a run that ended then, or at the next run. It stays right when the log
 * grows meanwhile.
 */
export interface ExportPlace {
  completedAtUs: number;
  /** Of the record of the run's end: it tells runs of one microsecond apart. */
  sequence: number;
  /** Place among the checks of the run. */
  check: number;
}

export const EXPORT_BEGINS: ExportPlace = { completedAtUs: 0, sequence: 0, check: 0 };

export interface ExportTask {
  query: FindingQuery;
  format: ChecksFormat;
  /** For `dfq`: that of its start. */
  namesJson: string;
  from: ExportPlace;
}

/** A piece of an export, which may be empty, and where the next one begins; null: it was the last one. */
export interface ExportPiece {
  bytes: Uint8Array<ArrayBuffer>;
  next: ExportPlace | null;
}

/** A piece ends with the rows that reach this length. A thread makes it in some milliseconds. */
const PIECE_BYTES = 512 * 1024;
/**
 * A piece also ends with the segment in which this time is over, with rows or without: then the thread is free for others,
 * and a client that has left costs no more than this.
 */
const PIECE_MS = 200;
/** Rows of one run that are written in one go: a run may have 10,000 checks. */
const CHECKS_AT_A_TIME = 1_000;
/** Room for the rows that go beyond a piece's length. */
const ROOM_BYTES = 32 * 1024;

/** @returns null if there are more characteristics than an answer may have */
export async function aqdefStart(
  reader: FindingsReader,
  query: FindingQuery,
  programName: string,
): Promise<AqdefStart | { head: null }> {
  const summary = new ProgramSummary(query, { mostValues: 0, mostPartBytes: 0 });
  try {
    await summary.count(reader, query.untilSequence);
  } catch (error) {
    if (error instanceof TooManyNamesError) return { head: null };
    throw error;
  }
  const checks = summary.checks.filter(({ values }) => values > 0).sort((a, b) => (a.name < b.name ? -1 : 1));
  // In memory of its own, so that it moves to another thread.
  const head = new Uint8Array(Buffer.from(aqdefHead({ id: query.programId, name: programName }, checks)));
  return { head, namesJson: JSON.stringify(checks.map(({ name }) => name)) };
}

interface PieceOptions {
  /** Memory for the piece, used if it is large enough. */
  room?: ArrayBuffer | undefined;
  /** For tests. */
  mostBytes?: number;
  mostMs?: number;
}

export async function exportPiece(
  reader: FindingsReader,
  { query, format, namesJson, from }: ExportTask,
  { room, mostBytes = PIECE_BYTES, mostMs = PIECE_MS }: PieceOptions = {},
): Promise<ExportPiece> {
  const endMs = performance.now() + mostMs;
  const rows = formatOf(format, namesJson);
  const out = new TextBytes(mostBytes + ROOM_BYTES, room);
  const options = { needsDetails: true, fromUs: from.completedAtUs };
  for await (const { segment, runs, endUs } of runsInOrder(reader, query, options)) {
    const { completedAtUs: times, sequences } = segment.figures;
    const writer = new SegmentRows(segment, rows, wantedSettings(segment, query));
    const first = lowerBound(0, runs.length, (at) => (times[runs[at] as number] as number) < from.completedAtUs);
    for (const run of runs.subarray(first)) {
      const [completedAtUs, sequence] = [times[run] as number, sequences[run] as number];
      if (completedAtUs === from.completedAtUs && sequence < from.sequence) continue;
      const [start, end] = writer.checksOf(run);
      let check = sequence === from.sequence ? start + from.check : start;
      for (; check < end; check += CHECKS_AT_A_TIME) {
        if (out.length > 0 && out.length >= mostBytes)
          return { bytes: out.bytes(), next: { completedAtUs, sequence, check: check - start } };
        writer.write(out, run, check, Math.min(end, check + CHECKS_AT_A_TIME));
      }
    }
    if (performance.now() >= endMs)
      return { bytes: out.bytes(), next: { completedAtUs: endUs, sequence: 0, check: 0 } };
  }
  return { bytes: out.bytes(), next: null };
}

/** The rows of the last AQDEF export: its pieces come one after the other, and their names need not be read for each. */
let lastAqdef = { namesJson: "[]", rows: aqdefRows([]) };

function formatOf(format: ChecksFormat, namesJson: string): RowFormat {
  if (format !== "dfq") return format === "csv" ? CSV_ROWS : NDJSON_ROWS;
  if (lastAqdef.namesJson !== namesJson) lastAqdef = { namesJson, rows: aqdefRows(JSON.parse(namesJson) as string[]) };
  return lastAqdef.rows;
}
