import { withFile } from "../disk/whole-files.js";
import { hintName } from "../log/hint-format.js";
import type { SealedSegment } from "../log/log-options.js";
import { assertReadableVersion, readSegmentHeader, segmentName } from "../log/segment.js";
import { firstToRead, type ReadHint, readHint } from "./read-hint.js";
import type { LogWalk } from "./walked-log.js";

/** Takes sealed segments from their hint files during a walk through the log. */
export class HintWalk {
  /** @param bases of all segments, ascending @param hints names of all hint files */
  static async of(walk: LogWalk, bases: readonly number[], hints: readonly string[]): Promise<HintWalk> {
    const { fileSystem, directory } = walk.options;
    const sealed = new Set(bases.slice(0, -1).map(hintName));
    const strays = hints.filter((name) => !sealed.has(name)).sort();
    for (const name of strays) {
      const length = await fileSystem.sizeOf(`${directory}/${name}`);
      walk.find("hint_unusable", name, { offset: 0, length, reason: "no sealed segment has this number" });
    }
    const first = await firstToRead(fileSystem, directory, bases);
    return new HintWalk(walk, new Set(bases.slice(0, first)), strays);
  }

  /** Names of hint files that belong to no sealed segment. */
  readonly strays: string[];
  readonly #walk: LogWalk;
  readonly #bases: ReadonlySet<number>;

  private constructor(walk: LogWalk, bases: ReadonlySet<number>, strays: string[]) {
    this.#walk = walk;
    this.#bases = bases;
    this.strays = strays;
  }

  /** False for a segment that must be read, whatever its hint file is. */
  mayTake(base: number): boolean {
    return this.#bases.has(base);
  }

  /** Delivers what the segment's hint file has, or reads the segment if it has no right hint file. */
  async take({ base, nextBase }: SealedSegment, readSegment: () => Promise<unknown>): Promise<void> {
    const { builder, onRecords } = this.#walk.options;
    const { report } = builder;
    const hint = await this.#hintOf({ base, nextBase });
    if (hint?.kind === "usable") {
      const lastSequence = nextBase - 1;
      report.hints++;
      report.bytes += hint.bytes.length;
      report.provenSequence = lastSequence;
      report.lastSequence = lastSequence;
      const numbers = { firstSequence: base, lastSequence, lastTimeUs: 0 };
      await onRecords({ bytes: hint.bytes, isHint: true, segmentBase: base, offset: 0, ...numbers });
      return;
    }
    const { corruptionCount } = report;
    await readSegment();
    // A damaged segment gets no hint file: each start reports its damage.
    const isIntact = report.corruptionCount === corruptionCount;
    if (isIntact) report.unhinted.push({ base, nextBase });
    if (hint !== null) await this.#noHint(hintName(base), hint, isIntact);
  }

  /** Null when the segment's own header is not intact: then nothing can be compared with it. */
  async #hintOf({ base, nextBase }: SealedSegment): Promise<ReadHint | null> {
    const { fileSystem, directory } = this.#walk.options;
    const name = segmentName(base);
    const of = await withFile(fileSystem, `${directory}/${name}`, async (file) => {
      const { header, damagedCopy } = await readSegmentHeader(file);
      if (header === null || damagedCopy !== null || header.base !== base) return null;
      assertReadableVersion(header, name);
      return { base, nextBase, salt: header.salt, segmentBytes: await file.size() };
    });
    return of && readHint(fileSystem, directory, of);
  }

  async #noHint(name: string, hint: Exclude<ReadHint, { kind: "usable" }>, isIntact: boolean): Promise<void> {
    const { fileSystem, directory, quarantine } = this.#walk.options;
    if (hint.kind === "missing") {
      const reason = "the segment was read instead, and the file is made again";
      if (isIntact) this.#walk.find("hint_missing", name, { offset: 0, length: 0, reason });
      return;
    }
    const { lengthBytes } = hint;
    const place = { offset: 0, length: lengthBytes, reason: `${hint.reason}: the segment was read instead` };
    if (hint.kind === "unusable") {
      this.#walk.find("hint_unusable", name, place);
      return;
    }
    const kept = await withFile(fileSystem, `${directory}/${name}`, (file) => quarantine(name, file, 0, lengthBytes));
    this.#walk.find("hint_damaged", name, place, null, null, kept);
  }
}
