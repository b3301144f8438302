import type { RunSummary } from "../core/run-state.js";
import type { RecordLocation } from "./log-batch.js";
import { parseUuidWords } from "./uuid-words.js";

/**
 * Where the consolidated records of runs, and the records of deliveries, of a segment lie in the file that took its name, in the order of that file, as data that moves between
 * threads. Of a run or a delivery whose current record lies in this segment, the last entry is the place that it has now; all other entries mean
 * nothing to who holds its location.
 */
export interface SegmentMoves {
  segmentBase: number;
  /** Of runs and deliveries: four words an id, most significant first (uuid-words.ts). */
  runIds: Uint32Array;
  /** Of their creation: what the capture ledger knows runs by. No two share it. */
  createdAtUs: Float64Array;
  offsets: Uint32Array;
  lengths: Uint32Array;
}

/** No record has moved. */
export function noMoves(segmentBase: number): SegmentMoves {
  return new MovesCollector().finish(segmentBase);
}

export class MovesCollector {
  readonly #runIds: number[] = [];
  readonly #createdAtUs: number[] = [];
  readonly #offsets: number[] = [];
  readonly #lengths: number[] = [];
  readonly #words = new Uint32Array(4);

  /** The consolidated record of this run, or the record of this delivery, lies there now. */
  add({ id, createdAtUs }: Pick<RunSummary, "id" | "createdAtUs">, { offset, length }: RecordLocation): void {
    if (!parseUuidWords(id, this.#words, 0)) throw new RangeError(`not a canonical UUID: ${JSON.stringify(id)}`);
    this.#runIds.push(...this.#words);
    this.#createdAtUs.push(createdAtUs);
    this.#offsets.push(offset);
    this.#lengths.push(length);
  }

  finish(segmentBase: number): SegmentMoves {
    return {
      segmentBase,
      runIds: Uint32Array.from(this.#runIds),
      createdAtUs: Float64Array.from(this.#createdAtUs),
      offsets: Uint32Array.from(this.#offsets),
      lengths: Uint32Array.from(this.#lengths),
    };
  }
}
