import { uuidToBytes } from "../../core/identifiers.js";
import { lowerBound } from "../../core/lower-bound.js";
import type { SegmentFindings } from "./finding-columns.js";

/** Which runs of a store are asked for. */
export interface FindingQuery {
  dataDirectory: string;
  /** The last record of the log that counts: the same one gives the same answer. */
  untilSequence: number;
  programId: string;
  /** Only runs that ended at this time or later; null: any. */
  sinceUs: number | null;
  /** Only runs that ended before this time; null: any. */
  untilUs: number | null;
  serialNumber: string | null;
  /** Only checks of this name; null: any. */
  check: string | null;
}

/**
 * The places of the matching runs in a segment, by the time when they ended. Those of one microsecond stay in the order of the log.
 *
 * @param afterSequence only runs whose end is recorded after this record
 */
export function matchingRuns(
  { figures, counts }: SegmentFindings,
  query: FindingQuery,
  afterSequence = 0,
): Uint32Array<ArrayBuffer> {
  const { programs, completedAtUs, serials, sequences } = figures;
  const program = placeOfProgram(figures.programIds, query.programId);
  const serial = query.serialNumber === null ? null : placeOfText(figures, query.serialNumber) + 1;
  const matching = new Uint32Array(counts.runs);
  if (program < 0 || serial === 0) return matching.subarray(0, 0);
  const sinceUs = query.sinceUs ?? 0;
  const untilUs = query.untilUs ?? Number.POSITIVE_INFINITY;
  let count = 0;
  const first = lowerBound(0, counts.runs, (run) => (sequences[run] as number) <= afterSequence);
  for (let run = first; run < counts.runs; run++) {
    if (programs[run] !== program || (serial !== null && serials[run] !== serial)) continue;
    const timeUs = completedAtUs[run] as number;
    if (timeUs >= sinceUs && timeUs < untilUs) matching[count++] = run;
  }
  return sortByTime(matching.subarray(0, count), completedAtUs);
}

/** Sorts places of runs. Those of a cell are in order already, unless its clock was set back. */
export function sortByTime(runs: Uint32Array<ArrayBuffer>, completedAtUs: Float64Array): Uint32Array<ArrayBuffer> {
  let lastUs = 0;
  for (const run of runs) {
    const timeUs = completedAtUs[run] as number;
    if (timeUs < lastUs)
      return runs.sort((a, b) => (completedAtUs[a] as number) - (completedAtUs[b] as number) || a - b);
    lastUs = timeUs;
  }
  return runs;
}

/** For each setting, whether its checks are asked for. */
export function wantedSettings({ figures, counts }: SegmentFindings, { check }: FindingQuery): Uint8Array {
  const wanted = new Uint8Array(counts.settings);
  if (check === null) return wanted.fill(1);
  const name = placeOfText(figures, check);
  for (let setting = 0; setting < counts.settings; setting++) {
    if (figures.names[setting] === name) wanted[setting] = 1;
  }
  return wanted;
}

/** -1 if the segment has none of its runs. */
function placeOfProgram(programIds: Uint8Array, id: string): number {
  const wanted = uuidToBytes(id);
  for (let at = 0; at < programIds.length; at += wanted.length) {
    if (startsWith(programIds, at, wanted)) return at / wanted.length;
  }
  return -1;
}

/** -1 if the segment does not have the text. */
function placeOfText({ textEnds, texts }: SegmentFindings["figures"], text: string): number {
  const wanted = Buffer.from(text);
  let start = 0;
  for (let place = 0; place < textEnds.length; place++) {
    const end = textEnds[place] as number;
    if (end - start === wanted.length && startsWith(texts, start, wanted)) return place;
    start = end;
  }
  return -1;
}

function startsWith(bytes: Uint8Array, start: number, wanted: Uint8Array): boolean {
  for (let at = 0; at < wanted.length; at++) if (bytes[start + at] !== wanted[at]) return false;
  return true;
}
