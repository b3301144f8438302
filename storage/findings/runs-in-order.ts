import { lowerBound } from "../../core/lower-bound.js";
import type { SegmentFindings } from "./finding-columns.js";
import { type FindingQuery, matchingRuns, sortByTime } from "./finding-query.js";
import { FindingsBuilder } from "./findings-builder.js";
import { type ColumnsReader, inMemory, type SegmentSpan } from "./segment-findings.js";

/** Where more segments than this have runs of one time, several parts are read at once, so that each segment is read less often. */
const FEW_SEGMENTS = 8;
const PARTS_AT_ONCE = 8;

/** Runs that come one after the other in time. */
export interface OrderedRuns {
  readonly segment: SegmentFindings;
  /** Their places in the segment. */
  readonly runs: Uint32Array;
  /** All later runs ended at this time or after it. */
  readonly endUs: number;
}

export interface OrderOptions {
  /** A download needs them, and its next piece may be of the same part. */
  needsDetails?: boolean;
  /** Only runs whose end is recorded after this record. */
  afterSequence?: number;
  /** Runs before this time may be left out. */
  fromUs?: number;
}

/**
 * The runs that are asked for by the time when they ended, oldest first. Those of one microsecond stay in the order of the log, which is the
 * same at each hub of a plant.
 *
 * Segments whose times do not overlap come one after the other, as they are. So do those of a cell. At a hub, a cell that was offline ships
 * its runs late: then several segments have runs of one time. Time is cut into parts where a segment begins or ends, and in between. In each
 * part, the runs of several segments are copied into one that has them in order. At a time there are one segment and the copies of one part in
 * memory: half a segment on average, and four where many segments overlap.
 *
 * @throws as FindingsReader.spans
 */
export async function* runsInOrder(
  reader: ColumnsReader,
  query: FindingQuery,
  { needsDetails = false, afterSequence = 0, fromUs = 0 }: OrderOptions = {},
): AsyncGenerator<OrderedRuns, void, undefined> {
  const { dataDirectory, untilSequence } = query;
  const [sinceUs, untilUs] = [query.sinceUs ?? 0, query.untilUs ?? Number.POSITIVE_INFINITY];
  const all = await reader.spans(dataDirectory, untilSequence, afterSequence);
  const spans = all.filter(({ lowUs, highUs }) => Math.max(lowUs, sinceUs) < Math.min(highUs + 1, untilUs));
  const edges = spans.flatMap(({ lowUs, highUs }) => [Math.max(lowUs, sinceUs), Math.min(highUs + 1, untilUs)]);
  const cuts = withMoreCuts(
    [...new Set(edges)].sort((a, b) => a - b),
    spans,
  );
  const cut = (at: number): number => cuts[at] as number;
  const spansOf = (at: number, next = at + 1) =>
    spans.filter(({ lowUs, highUs }) => lowUs < cut(next) && highUs >= cut(at));
  const isCrowded = (at: number): boolean => spansOf(at).length > FEW_SEGMENTS;
  const groupOf = (at: number): number => at - (at % PARTS_AT_ONCE);
  let at = Math.max(0, lowerBound(0, cuts.length, (place) => cut(place) <= fromUs) - 1);
  if (isCrowded(at)) at = groupOf(at);
  for (let next = at; at + 1 < cuts.length; at = next) {
    next = isCrowded(at) ? Math.min(groupOf(at) + PARTS_AT_ONCE, cuts.length - 1) : at + 1;
    const endUs = cut(next);
    const ofPart = spansOf(at, next);
    if (endUs <= fromUs || ofPart.length === 0) continue;
    const part = { ...query, sinceUs: cut(at), untilUs: endUs };
    yield { ...(await runsOfPart(reader, ofPart, part, { needsDetails, afterSequence })), endUs };
  }
}

/** Cuts a part of several segments so often that a piece has about half as many runs as a segment: all may be of the same months. */
function withMoreCuts(cuts: readonly number[], spans: readonly SegmentSpan[]): number[] {
  const more = cuts.slice(0, -1).flatMap((cut, at) => {
    const end = cuts[at + 1] as number;
    const shares = spans
      .filter(({ lowUs, highUs }) => lowUs < end && highUs >= cut)
      .map(({ lowUs, highUs }) => (Math.min(end, highUs + 1) - Math.max(cut, lowUs)) / (highUs + 1 - lowUs));
    const pieces = shares.length < 2 ? 1 : Math.ceil(2 * shares.reduce((sum, share) => sum + share, 0));
    return Array.from({ length: pieces }, (_, nth) => Math.floor(cut + ((end - cut) * nth) / pieces));
  });
  return [...new Set([...more, ...cuts.slice(-1)])];
}

type PartOfRuns = Pick<OrderedRuns, "segment" | "runs">;

/** The last part that was put together with details. Pieces of a download come one after the other, and many are of one part. */
let lastCopies: { reader: ColumnsReader; key: string; part: PartOfRuns } | undefined;

/** @param spans at least one */
async function runsOfPart(
  reader: ColumnsReader,
  spans: readonly SegmentSpan[],
  query: FindingQuery,
  { needsDetails, afterSequence }: { needsDetails: boolean; afterSequence: number },
): Promise<PartOfRuns> {
  const key = JSON.stringify([query, afterSequence]);
  if (lastCopies?.reader === reader && lastCopies.key === key) return lastCopies.part;
  let found: PartOfRuns | undefined;
  let copies: FindingsBuilder | undefined;
  for (const span of spans) {
    const segment = await reader.read(query.dataDirectory, span, query.untilSequence, needsDetails);
    const runs = matchingRuns(segment, query, afterSequence);
    if (found === undefined || found.runs.length === 0) {
      found = { segment, runs };
    } else if (runs.length > 0) {
      copies ??= copyOf(found);
      copies.copy(segment, runs);
    }
  }
  if (copies === undefined) return found as PartOfRuns;
  const segment = inMemory(copies.finish(), needsDetails);
  const places = Uint32Array.from({ length: segment.counts.runs }, (_, run) => run);
  const part = { segment, runs: sortByTime(places, segment.figures.completedAtUs) };
  if (needsDetails) lastCopies = { reader, key, part };
  return part;
}

function copyOf({ segment, runs }: PartOfRuns): FindingsBuilder {
  const copies = new FindingsBuilder();
  copies.copy(segment, runs);
  return copies;
}
