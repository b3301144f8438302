import type { StoreFile } from "../disk/file-system-interface.js";
import { TEMPORARY_SUFFIX } from "../disk/whole-files.js";
import { hintBaseOf } from "../log/hint-format.js";
import {
  assertReadableVersion,
  baseBehindUnknownEnd,
  readSegmentHeader,
  SEGMENT_HEADER_BYTES,
  segmentBaseOf,
  segmentName,
} from "../log/segment.js";
import { HintWalk } from "./hint-walk.js";
import { findStraySegments } from "./stray-segments.js";
import { SegmentWalk } from "./tail-or-damage.js";
import { LogWalk, type NewestSegment, type WalkEnd, type WalkOptions } from "./walked-log.js";

interface Segment {
  name: string;
  base: number;
}

/** Reads the whole log in order and decides which case (recovery-cases.ts) each place is, without changing it. */
export async function walkLog(options: WalkOptions): Promise<WalkEnd> {
  const { fileSystem, directory, builder } = options;
  const { report } = builder;
  const named: Segment[] = [];
  const temporaryFiles: string[] = [];
  const hints: string[] = [];
  for (const { name, isDirectory } of await fileSystem.readDirectory(directory)) {
    if (isDirectory) continue;
    const base = segmentBaseOf(name);
    if (base !== undefined) named.push({ name, base });
    else if (hintBaseOf(name) !== undefined) hints.push(name);
    else if (name.endsWith(TEMPORARY_SUFFIX)) temporaryFiles.push(name);
  }
  named.sort((left, right) => left.base - right.base);
  temporaryFiles.sort();
  const strays = new Set(await findStraySegments({ ...options, bases: named.map(({ base }) => base) }));
  const segments = named.filter(({ base }) => !strays.has(base));
  report.segments = segments.length;
  const walk = new LogWalk(options);
  for (const name of temporaryFiles) {
    const lengthBytes = await fileSystem.sizeOf(`${directory}/${name}`);
    walk.find("temporary_file", name, { offset: 0, length: lengthBytes, reason: "left from an interrupted write" });
  }
  for (const { name } of named.filter(({ base }) => strays.has(base))) {
    const length = await fileSystem.sizeOf(`${directory}/${name}`);
    walk.find("stray_copy", name, { offset: 0, length, reason: "a copy of another segment, which is there" });
  }
  const [first] = segments;
  if (first !== undefined && first.base > 1) {
    const place = { offset: 0, length: 0, reason: `the log starts at ${first.base} instead of 1` };
    walk.find("gap_proven", first.name, place, 1, first.base - 1);
  }
  report.provenSequence = (first?.base ?? 1) - 1;
  report.lastSequence = report.provenSequence;
  const bases = segments.map(({ base }) => base);
  const hintWalk = options.usesHints ? await HintWalk.of(walk, bases, hints) : null;
  let newest: NewestSegment | null = null;
  for (const [position, segment] of segments.entries()) {
    const nextBase = segments[position + 1]?.base;
    if (nextBase !== undefined && hintWalk?.mayTake(segment.base))
      await hintWalk.take({ base: segment.base, nextBase }, () => walkSegment(walk, segment, nextBase));
    else newest = await walkSegment(walk, segment, nextBase);
  }
  return {
    newest,
    beforeNewest: segments.at(-2)?.name ?? null,
    nextSequence: newest === null ? noSegment(walk) : newest.tail.firstSequence,
    temporaryFiles,
    strays: [...strays].map(segmentName),
    superseded: walk.superseded,
    strayHints: hintWalk?.strays ?? [],
  };
}

/** There is no segment; gives the sequence number that the log begins with. */
function noSegment(walk: LogWalk): number {
  const { evidence, builder } = walk.options;
  const durable = evidence?.sequence ?? 0;
  if (evidence) walk.endLost(evidence, segmentName(1), 0, 1, durable < 1 ? null : durable, "there is no segment");
  builder.report.provenSequence = durable;
  builder.report.lastSequence = durable;
  return durable + 1;
}

/** Walks one segment; `nextBase` is undefined for the newest. */
async function walkSegment(walk: LogWalk, segment: Segment, nextBase: number | undefined): Promise<NewestSegment> {
  const { fileSystem, directory, builder } = walk.options;
  const { name, base } = segment;
  const file = await fileSystem.open(`${directory}/${name}`, "read");
  try {
    const sizeBytes = await file.size();
    builder.report.provenSequence = Math.max(builder.report.provenSequence, base - 1);
    const { header, damagedCopy } = await readSegmentHeader(file);
    if (header !== null) assertReadableVersion(header, name);
    if (header === null || header.base !== base || sizeBytes < SEGMENT_HEADER_BYTES) {
      builder.report.bytes += sizeBytes;
      return await unreadableSegment(walk, segment, file, sizeBytes, nextBase);
    }
    if (damagedCopy !== null) {
      const offset = (damagedCopy * SEGMENT_HEADER_BYTES) / 2;
      const place = { offset, length: SEGMENT_HEADER_BYTES / 2, reason: "one of the header's two copies" };
      walk.find("header_copy_damaged", name, place);
    }
    return await new SegmentWalk({ walk, file, name, base, salt: header.salt, sizeBytes, nextBase }).read();
  } finally {
    await file.close();
  }
}

async function unreadableSegment(
  walk: LogWalk,
  segment: Segment,
  file: StoreFile,
  sizeBytes: number,
  nextBase: number | undefined,
): Promise<NewestSegment> {
  const { name, base } = segment;
  const { evidence, quarantine, builder } = walk.options;
  const place = { offset: 0, length: sizeBytes, reason: "the segment's header" };
  const kept = sizeBytes === 0 ? null : await quarantine(name, file, 0, sizeBytes);
  walk.find("segment_unreadable", name, place, base, nextBase === undefined ? null : nextBase - 1, kept);
  // No sequence number that may have been used in it is used again.
  let nextSequence = nextBase ?? baseBehindUnknownEnd(base, sizeBytes);
  if (nextBase === undefined && evidence && evidence.sequence >= base) {
    walk.endLost(evidence, name, 0, base, evidence.sequence, `what is readable ends at ${base - 1}`);
    nextSequence = Math.max(nextSequence, evidence.sequence + 1);
  }
  const known = nextBase === undefined ? Math.max(base - 1, evidence?.sequence ?? 0) : nextBase - 1;
  builder.report.lastSequence = known;
  builder.report.provenSequence = known;
  const claimedSequence = nextSequence - 1;
  const numbers = { firstSequence: nextSequence, lastSequence: claimedSequence };
  return {
    name,
    base,
    salt: null,
    sizeBytes,
    tail: { offset: 0, endOffset: 0, ...numbers, onlyMarks: true },
    isContinuable: false,
    claimedSequence,
    lastDataSequence: claimedSequence,
  };
}
