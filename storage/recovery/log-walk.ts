import type { StoreFile } from "../disk/file-system-interface.js";
import { TEMPORARY_SUFFIX } from "../disk/whole-files.js";
import { hintBaseOf } from "../log/hint-format.js";
import type { LogEvidence } from "../log/log-options.js";
import {
  assertReadableVersion,
  baseBehindUnknownEnd,
  isBaseBehindUnknownEnd,
  readSegmentHeader,
  SEGMENT_HEADER_BYTES,
  segmentBaseOf,
  segmentName,
} from "../log/segment.js";
import { HintWalk, type HintWalkOptions } from "./hint-walk.js";
import { RECOVERY_CASES, type RecoveryCase } from "./recovery-cases.js";
import { findStraySegments } from "./stray-segments.js";
import { type Gap, SegmentWalk } from "./tail-or-damage.js";
import type { NewestSegment, WalkEnd, WalkOptions } from "./walked-log.js";

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
    const gap = { offset: 0, length: 0, reason: `the log starts at ${first.base} instead of 1` };
    walk.find("hole_proven", first.name, gap, 1, first.base - 1);
  }
  report.provenSequence = (first?.base ?? 1) - 1;
  report.lastSequence = report.provenSequence;
  const bases = segments.map(({ base }) => base);
  const hintWalk = options.usesHints ? await HintWalk.of(walk.hintOptions(), bases, hints) : null;
  let newest: NewestSegment | null = null;
  for (const [position, segment] of segments.entries()) {
    const nextBase = segments[position + 1]?.base;
    if (nextBase !== undefined && hintWalk?.mayTake(segment.base))
      await hintWalk.take({ base: segment.base, nextBase }, () => walk.segment(segment, nextBase));
    else newest = await walk.segment(segment, nextBase);
  }
  return {
    newest,
    beforeNewest: segments.at(-2)?.name ?? null,
    nextSequence: newest === null ? walk.noSegment() : newest.tail.firstSequence,
    temporaryFiles,
    strays: [...strays].map(segmentName),
    superseded: walk.superseded,
    strayHints: hintWalk?.strays ?? [],
  };
}

class LogWalk {
  readonly superseded: { name: string; sizeBytes: number }[] = [];
  readonly #options: WalkOptions;

  constructor(options: WalkOptions) {
    this.#options = options;
  }

  hintOptions(): HintWalkOptions {
    return {
      ...this.#options,
      report: this.#options.builder.report,
      find: (found, name, length, reason, kept = null) =>
        this.find(found, name, { offset: 0, length, reason }, null, null, kept),
    };
  }

  /** There is no segment; gives the number that the log begins with. */
  noSegment(): number {
    const { evidence, builder } = this.#options;
    const durable = evidence?.sequence ?? 0;
    if (evidence) {
      const lastLost = evidence.sequence < 1 ? null : evidence.sequence;
      this.#endLost(segmentName(1), 0, evidence, 1, lastLost, "there is no segment");
    }
    builder.report.provenSequence = durable;
    builder.report.lastSequence = durable;
    return durable + 1;
  }

  #endLost(
    segment: string,
    offset: number,
    { source }: LogEvidence,
    firstLost: number,
    lastLost: number | null,
    end: string,
  ): void {
    const known = lastLost === null ? "there was a log" : `everything up to ${lastLost} was durable`;
    const reason = `${end}, and ${source} says that ${known}`;
    this.find("end_lost", segment, { offset, length: 0, reason }, firstLost, lastLost);
  }

  #headerCopyDamaged(name: string, copy: 0 | 1): void {
    const offset = (copy * SEGMENT_HEADER_BYTES) / 2;
    const gap = { offset, length: SEGMENT_HEADER_BYTES / 2, reason: "one of the header's two copies" };
    this.find("header_copy_damaged", name, gap);
  }

  /** Walks one segment; `nextBase` is undefined for the newest. */
  async segment(segment: Segment, nextBase: number | undefined): Promise<NewestSegment> {
    const { fileSystem, directory, builder } = this.#options;
    const file = await fileSystem.open(`${directory}/${segment.name}`, "read");
    try {
      const sizeBytes = await file.size();
      builder.report.provenSequence = Math.max(builder.report.provenSequence, segment.base - 1);
      const reading = await readSegmentHeader(file);
      if (reading.header !== null) assertReadableVersion(reading.header, segment.name);
      if (reading.header === null || reading.header.base !== segment.base || sizeBytes < SEGMENT_HEADER_BYTES) {
        builder.report.bytes += sizeBytes;
        return await this.#unreadableSegment(segment, file, sizeBytes, nextBase);
      }
      if (reading.damagedCopy !== null) this.#headerCopyDamaged(segment.name, reading.damagedCopy);
      return await this.#readableSegment(segment, file, sizeBytes, reading.header.salt, nextBase);
    } finally {
      await file.close();
    }
  }

  async #unreadableSegment(
    segment: Segment,
    file: StoreFile,
    sizeBytes: number,
    nextBase: number | undefined,
  ): Promise<NewestSegment> {
    const { name, base } = segment;
    const gap = { offset: 0, length: sizeBytes, reason: "the segment's header" };
    const kept = sizeBytes === 0 ? null : await this.#options.quarantine(name, file, 0, sizeBytes);
    this.find("segment_unreadable", name, gap, base, nextBase === undefined ? null : nextBase - 1, kept);
    // No number that may have been used in it is used again.
    let nextSequence = nextBase ?? baseBehindUnknownEnd(base, sizeBytes);
    const { evidence } = this.#options;
    if (nextBase === undefined && evidence && evidence.sequence >= base) {
      this.#endLost(name, 0, evidence, base, evidence.sequence, `what is readable ends at ${base - 1}`);
      nextSequence = Math.max(nextSequence, evidence.sequence + 1);
    }
    const known = nextBase === undefined ? Math.max(base - 1, evidence?.sequence ?? 0) : nextBase - 1;
    this.#options.builder.report.lastSequence = known;
    this.#options.builder.report.provenSequence = known;
    const tail = {
      offset: 0,
      endOffset: 0,
      firstSequence: nextSequence,
      lastSequence: nextSequence - 1,
      onlyMarks: true,
    };
    const claimedSequence = nextSequence - 1;
    return {
      name,
      base,
      salt: null,
      sizeBytes,
      tail,
      isContinuable: false,
      claimedSequence,
      lastDataSequence: claimedSequence,
    };
  }

  #readableSegment(
    { name, base }: Segment,
    file: StoreFile,
    sizeBytes: number,
    salt: number,
    nextBase: number | undefined,
  ): Promise<NewestSegment> {
    const { evidence } = this.#options;
    const walk = new SegmentWalk({
      ...{ walk: this.#options, file, name, base, salt, sizeBytes, nextBase },
      find: (found, place, ...lost) => this.find(found, name, place, ...lost),
      endLost: (offset, firstLost, lastLost, end) =>
        this.#endLost(name, offset, evidence as LogEvidence, firstLost, lastLost, end),
      superseded: (fromOffset) => this.superseded.push({ name, sizeBytes: fromOffset }),
      deliver: (bytes, offset, firstSequence, lastSequence, lastTimeUs) =>
        this.#deliver(base, bytes, offset, firstSequence, lastSequence, lastTimeUs),
    });
    return walk.read();
  }

  async #deliver(
    segmentBase: number,
    bytes: Uint8Array,
    offset: number,
    firstSequence: number,
    lastSequence: number,
    lastTimeUs: number,
  ): Promise<void> {
    await this.#options.onRecords({ bytes, segmentBase, offset, firstSequence, lastSequence, lastTimeUs });
  }

  find(
    recoveryCase: RecoveryCase,
    segment: string,
    place: Gap,
    firstLost: number | null = null,
    lastLost: number | null = null,
    quarantineFile: string | null = null,
  ): void {
    const { builder } = this.#options;
    builder.decided(recoveryCase);
    const code = RECOVERY_CASES[recoveryCase].finding;
    if (code === null) return;
    builder.add({
      code,
      segment,
      offset: place.offset,
      lengthBytes: place.length,
      firstLost,
      lastLost: lastLost !== null && isBaseBehindUnknownEnd(lastLost + 1) ? null : lastLost,
      quarantineFile,
      detail: place.reason,
    });
  }
}
