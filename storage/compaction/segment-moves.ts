import { parseUuidWords } from "../columns/uuid-words.js";
import type { LogRecord, RecordLocation } from "../log/log-batch.js";
import { decodeIndex, RECORD_TYPE } from "../records/record-index.js";

/** Records of one kind, in the order of their file. */
export interface MovedRecords {
  /** Of runs or deliveries: four words an id, most significant first (uuid-words.ts). */
  ids: Uint32Array;
  /** Of their creation: what the capture index knows runs by. */
  createdAtUs: Float64Array;
  offsets: Uint32Array;
  lengths: Uint32Array;
}

/**
 * Where the records of a segment that somebody holds the places of lie in the file that took its name, as data that moves between threads.
 * Of a run or a delivery whose current record lies in this segment, the last entry is the place that it has now; all other entries mean
 * nothing to who holds its location.
 */
export interface SegmentMoves {
  segmentBase: number;
  /** Consolidated records. */
  runs: MovedRecords;
  deliveries: MovedRecords;
}

/** No record has moved. */
export function noMoves(segmentBase: number): SegmentMoves {
  return new MovesCollector().finish(segmentBase);
}

interface Created {
  readonly id: string;
  readonly createdAtUs: number;
}

/** Collects them in the order of the file. */
export class MovesCollector {
  readonly #runs = new Moved();
  readonly #deliveries = new Moved();

  /** The record lies there now; one whose place nobody holds is left out. @throws {RecordDecodeError} */
  take({ type, index }: Pick<LogRecord, "type" | "index">, location: RecordLocation): void {
    if (type !== RECORD_TYPE.runEnded && type !== RECORD_TYPE.delivery) return;
    const decoded = decodeIndex(type, index);
    if (decoded.type === RECORD_TYPE.runEnded) this.addRun(decoded.summary, location);
    else if (decoded.type === RECORD_TYPE.delivery) this.addDelivery(decoded.delivery, location);
  }

  /** The run's consolidated record lies there now. */
  addRun(run: Created, location: RecordLocation): void {
    this.#runs.add(run, location);
  }

  /** The delivery's record lies there now. */
  addDelivery(delivery: Created, location: RecordLocation): void {
    this.#deliveries.add(delivery, location);
  }

  finish(segmentBase: number): SegmentMoves {
    return { segmentBase, runs: this.#runs.finish(), deliveries: this.#deliveries.finish() };
  }
}

class Moved {
  readonly #ids: number[] = [];
  readonly #createdAtUs: number[] = [];
  readonly #offsets: number[] = [];
  readonly #lengths: number[] = [];
  readonly #words = new Uint32Array(4);

  add({ id, createdAtUs }: Created, { offset, length }: RecordLocation): void {
    if (!parseUuidWords(id, this.#words, 0)) throw new RangeError(`not a canonical UUID: ${JSON.stringify(id)}`);
    this.#ids.push(...this.#words);
    this.#createdAtUs.push(createdAtUs);
    this.#offsets.push(offset);
    this.#lengths.push(length);
  }

  finish(): MovedRecords {
    return {
      ids: Uint32Array.from(this.#ids),
      createdAtUs: Float64Array.from(this.#createdAtUs),
      offsets: Uint32Array.from(this.#offsets),
      lengths: Uint32Array.from(this.#lengths),
    };
  }
}
