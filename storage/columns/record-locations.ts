/** Where a run's consolidated record lies in the log, by run ordinal: 12 bytes a run. */

import type { RecordLocation } from "../log/committed-batch.js";
import { TypedColumn } from "./typed-column.js";

export class RecordLocations {
  readonly #ordinals = new SegmentOrdinals();
  readonly #segments = new TypedColumn(Uint32Array);
  readonly #offsets = new TypedColumn(Uint32Array);
  /** 0 while there is no record. */
  readonly #lengths = new TypedColumn(Uint32Array);

  /** Adds the next run, without a record yet. */
  push(): void {
    this.#segments.push(0);
    this.#offsets.push(0);
    this.#lengths.push(0);
  }

  set(ordinal: number, { segmentBase, offset, length }: RecordLocation): void {
    this.#segments.set(ordinal, this.#ordinals.ordinalOf(segmentBase));
    this.#offsets.set(ordinal, offset);
    this.#lengths.set(ordinal, length);
  }

  /** Undefined while the run has no consolidated record: it has not ended. */
  get(ordinal: number): RecordLocation | undefined {
    const length = this.#lengths.get(ordinal);
    if (length === 0) return undefined;
    return {
      segmentBase: this.#ordinals.baseOf(this.#segments.get(ordinal)),
      offset: this.#offsets.get(ordinal),
      length,
    };
  }
}

/** Numbers segments in order of appearance. A small number takes half the room of a base, a million times. */
class SegmentOrdinals {
  readonly #bases: number[] = [];
  readonly #ordinals = new Map<number, number>();

  /** The segment's number; a new segment gets the next one. */
  ordinalOf(segmentBase: number): number {
    let ordinal = this.#ordinals.get(segmentBase);
    if (ordinal === undefined) {
      ordinal = this.#bases.length;
      this.#bases.push(segmentBase);
      this.#ordinals.set(segmentBase, ordinal);
    }
    return ordinal;
  }

  /** The base of the segment with this number. */
  baseOf(ordinal: number): number {
    return this.#bases[ordinal]!;
  }
}
