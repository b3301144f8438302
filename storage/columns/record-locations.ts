/** Where a run's consolidated record lies in the log, by run ordinal: 12 bytes a run. */

import type { RecordLocation } from "../log/committed-batch.js";
import { SegmentOrdinals } from "./segment-ordinals.js";
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
