import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { withFile } from "../disk/whole-files.js";
import type { CommittedBatch } from "../log/committed-batch.js";
import { hintName } from "../log/hint-format.js";
import type { SealedSegment } from "../log/log-options.js";
import { assertReadableVersion, readSegmentHeader, segmentName } from "../log/segment.js";
import { firstToRead, type ReadHint, readHint } from "./read-hint.js";
import type { RecoveryCase } from "./recovery-cases.js";
import type { RecoveryReport } from "./recovery-report.js";

/** What a walk through the log gives its part that reads hint files. */
export interface HintWalkOptions {
  fileSystem: FileSystem;
  directory: string;
  report: RecoveryReport;
  onRecords(batch: CommittedBatch): Promise<void> | void;
  /** As in `WalkOptions`. */
  quarantine(name: string, file: StoreFile, offset: number, lengthBytes: number): Promise<string | null>;
  find(found: RecoveryCase, name: string, lengthBytes: number, reason: string, quarantineFile?: string | null): void;
}

/** Takes sealed segments from their hint files during a walk through the log. */
export class HintWalk {
  /** @param bases of all segments, ascending @param hints names of all hint files */
  static async of(options: HintWalkOptions, bases: readonly number[], hints: readonly string[]): Promise<HintWalk> {
    const { fileSystem, directory } = options;
    const sealed = new Set(bases.slice(0, -1).map(hintName));
    const strays = hints.filter((name) => !sealed.has(name)).sort();
    for (const name of strays) {
      const length = await fileSystem.sizeOf(`${directory}/${name}`);
      options.find("hint_unusable", name, length, "no sealed segment has this number");
    }
    const first = await firstToRead(fileSystem, directory, bases);
    return new HintWalk(options, new Set(bases.slice(0, first)), strays);
  }

  /** Names of hint files that belong to no sealed segment. */
  readonly strays: string[];
  readonly #options: HintWalkOptions;
  readonly #bases: ReadonlySet<number>;

  private constructor(options: HintWalkOptions, bases: ReadonlySet<number>, strays: string[]) {
    this.#options = options;
    this.#bases = bases;
    this.strays = strays;
  }

  /** False for a segment that must be read, whatever its hint file is. */
  mayTake(base: number): boolean {
    return this.#bases.has(base);
  }

  /** Delivers what the segment's hint file has, or reads the segment where there is none that is right. */
  async take({ base, nextBase }: SealedSegment, readSegment: () => Promise<unknown>): Promise<void> {
    const { report } = this.#options;
    const hint = await this.#hintOf({ base, nextBase });
    if (hint?.kind === "usable") {
      const lastSequence = nextBase - 1;
      report.hints++;
      report.bytes += hint.bytes.length;
      report.provenSequence = lastSequence;
      report.lastSequence = lastSequence;
      const numbers = { firstSequence: base, lastSequence, lastTimeUs: 0 };
      await this.#options.onRecords({ bytes: hint.bytes, isHint: true, segmentBase: base, offset: 0, ...numbers });
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
    const { fileSystem, directory } = this.#options;
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
    const { fileSystem, directory, quarantine, find } = this.#options;
    if (hint.kind === "missing") {
      if (isIntact) find("hint_missing", name, 0, "the segment was read instead, and the file is made again");
      return;
    }
    const { lengthBytes } = hint;
    const reason = `${hint.reason}: the segment was read instead`;
    if (hint.kind === "unusable") {
      find("hint_unusable", name, lengthBytes, reason);
      return;
    }
    const kept = await withFile(fileSystem, `${directory}/${name}`, (file) => quarantine(name, file, 0, lengthBytes));
    find("hint_damaged", name, lengthBytes, reason, kept);
  }
}
