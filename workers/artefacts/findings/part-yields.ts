import { hashBytes, TextTable } from "../../../storage/columns/text-table.js";
import { TypedColumn } from "../../../storage/columns/typed-column.js";
import type { SegmentFindings } from "../../../storage/findings/finding-columns.js";
import { QUALITY_CODES } from "../../../storage/records/index-layout.js";

const PASSED = QUALITY_CODES.indexOf("passed");
const NO_REPORT = QUALITY_CODES.indexOf(null);

/**
 * What a part takes beside its serial number in UTF-8: 10 bytes for its inspections, and at most 28 in the table of serial numbers
 * (storage/columns/text-table.ts).
 */
const PART_BYTES = 38;
/** What the first part takes: a chunk of each column. */
const CHUNKS_BYTES = 360 * 1024;
/** What is known of a segment's text: it may be a part, or it is of another share. */
const UNSEEN = -1;
const OF_ANOTHER_SHARE = -2;

/** Parts that passed, and those that have an outcome. */
export interface OutcomeCount {
  passed: number;
  known: number;
}

/** The outcomes of parts' first inspections, and those of their newest ones. */
export interface Yields {
  readonly first: OutcomeCount;
  readonly final: OutcomeCount;
}

/**
 * Counts yields, of runs in the order in which they ended. A serial number is a part; a run without one is a part of its own. The first
 * inspection is the first with revision 1: at a hub, each cell may have one. The newest is the one that was created last: at a cell it
 * has the highest revision. Serial numbers are compared in full, so they are held.
 * If there are more than there is room for, nothing is held any more. Then the parts have to be counted in shares, one share after the
 * other: each has the serial numbers with certain hashes.
 */
export class PartYields implements Yields {
  readonly first = { passed: 0, known: 0 };
  readonly final = { passed: 0, known: 0 };
  readonly #mostBytes: number;
  readonly #share: number;
  readonly #shares: number;
  #serials = new TextTable();
  /** When each part's newest inspection was created. */
  #createdUs = new TypedColumn(Float64Array);
  #outcomes = new TypedColumn(Uint8Array);
  /** 1: the part's first inspection is counted. */
  #firsts = new TypedColumn(Uint8Array);
  /** What the parts take; once they are not held, at most what they would take. */
  #neededBytes = 0;

  /** @param mostBytes of memory for the parts @param share the one that is counted, of so many */
  constructor(mostBytes: number, share = 0, shares = 1) {
    this.#mostBytes = mostBytes;
    this.#share = share;
    this.#shares = shares;
  }

  /** False: there was no room, and the counts say nothing. */
  get isHeld(): boolean {
    return this.#neededBytes <= this.#mostBytes;
  }

  /** About the memory that it takes. */
  get bytes(): number {
    return this.#createdUs.length === 0 ? 0 : CHUNKS_BYTES + this.#neededBytes;
  }

  /** There is room for one of so many shares. */
  get neededShares(): number {
    return Math.ceil(this.#neededBytes / Math.max(1, this.#mostBytes));
  }

  /** @param runs places in the segment */
  add({ figures, counts }: SegmentFindings, runs: Iterable<number>): void {
    const { serials, outcomes, revisions, createdAtUs, textEnds, texts } = figures;
    const parts = new Int32Array(counts.texts).fill(UNSEEN);
    for (const run of runs) {
      const serial = (serials[run] as number) - 1;
      const outcome = outcomes[run] as number;
      const isFirst = revisions[run] === 1;
      if (serial < 0) {
        if (this.#share > 0) continue;
        if (isFirst) countOutcome(this.first, outcome);
        countOutcome(this.final, outcome);
        continue;
      }
      const [start, end] = [serial === 0 ? 0 : (textEnds[serial - 1] as number), textEnds[serial] as number];
      if (!this.isHeld) {
        this.#neededBytes += PART_BYTES + end - start;
        continue;
      }
      if (parts[serial] === UNSEEN) parts[serial] = this.#partOf(texts, start, end);
      const part = parts[serial] as number;
      if (part !== OF_ANOTHER_SHARE) this.#inspect(part, createdAtUs[run] as number, isFirst, outcome);
    }
  }

  #partOf(texts: Uint8Array, start: number, end: number): number {
    // The table of serial numbers takes the hash's low bits, and so the share takes the high ones.
    const share = this.#shares === 1 ? 0 : Math.floor((hashBytes(texts, start, end) / 2 ** 32) * this.#shares);
    if (share !== this.#share) return OF_ANOTHER_SHARE;
    const part = this.#serials.findOrAddBytes(texts, start, end);
    if (part === this.#createdUs.length) this.#neededBytes += PART_BYTES + end - start;
    return part;
  }

  #inspect(part: number, createdUs: number, isFirst: boolean, outcome: number): void {
    if (!this.isHeld) {
      this.#serials = new TextTable();
      this.#createdUs = new TypedColumn(Float64Array);
      this.#outcomes = new TypedColumn(Uint8Array);
      this.#firsts = new TypedColumn(Uint8Array);
      return;
    }
    if (part === this.#createdUs.length) {
      this.#createdUs.push(createdUs);
      this.#outcomes.push(outcome);
      this.#firsts.push(0);
      countOutcome(this.final, outcome);
    } else if (this.#createdUs.get(part) <= createdUs) {
      countOutcome(this.final, this.#outcomes.get(part), -1);
      countOutcome(this.final, outcome);
      this.#createdUs.set(part, createdUs);
      this.#outcomes.set(part, outcome);
    }
    if (!isFirst || this.#firsts.get(part) === 1) return;
    countOutcome(this.first, outcome);
    this.#firsts.set(part, 1);
  }
}

/** @param outcome place in QUALITY_CODES @param more -1 takes it back */
function countOutcome(counts: OutcomeCount, outcome: number, more = 1): void {
  if (outcome !== NO_REPORT) counts.known += more;
  if (outcome === PASSED) counts.passed += more;
}
