import type { CellChange, Change } from "../../core/link/change.js";
import { SegmentOrdinals } from "../../storage/columns/segment-ordinals.js";
import type { UuidTable } from "../../storage/columns/uuid-table.js";
import type { Verdict } from "../../storage/compaction/rewrite-segment.js";
import { SegmentGarbage, type SegmentGarbageData } from "../../storage/compaction/segment-garbage.js";
import type { LogRecord } from "../../storage/log/log-batch.js";
import { decodeChanges, saysOnlyTheRun } from "../../storage/records/change-record.js";
import { decodeIndex, isKnownRecordType, type Origin, RECORD_TYPE } from "../../storage/records/record-index.js";

/** Values of the table of runs. From `FIRST_END` on a run has ended, and its last consolidated record lies in segment value - `FIRST_END`. */
export const RUN_VALUE = { active: 0, ended: 1 } as const;
export const FIRST_END = 2;

/** Changes of one record, or its refusal. */
export type RecordContents = { changes: readonly Change[] } | { refused: Origin };

export interface RecordPlacesData {
  garbage: SegmentGarbageData;
  /** Bases by number, as the table of runs has them. */
  segments: number[];
}

/**
 * In which segment the records lie that something depends on, and so what compaction may drop from a segment. Records count once they
 * are committed.
 */
export class RecordPlaces {
  readonly garbage = new SegmentGarbage();
  readonly #runs: UuidTable;
  readonly #holdsRefusal: (producer: string, sequence: number) => boolean;
  readonly #segments = new SegmentOrdinals();
  /** Appended and not committed yet, in order. */
  #inFlight: { sequence: number; contents: RecordContents; bytes: number }[] = [];

  constructor(options: { runs: UuidTable; holdsRefusal(producer: string, sequence: number): boolean }) {
    this.#runs = options.runs;
    this.#holdsRefusal = options.holdsRefusal;
  }

  /** A record of so many bytes was appended under this number: where it lies is known once it is committed. */
  appended(sequence: number, contents: RecordContents, bytes: number): void {
    this.#inFlight.push({ sequence, contents, bytes });
  }

  /** What was appended up to this number is committed, in this segment. */
  committed(lastSequence: number, segmentBase: number): void {
    const inFlight = this.#inFlight;
    let count = 0;
    for (; count < inFlight.length; count++) {
      const { sequence, contents, bytes } = inFlight[count]!;
      if (sequence > lastSequence) break;
      this.place(contents, segmentBase, bytes);
    }
    inFlight.splice(0, count);
  }

  /** A record of so many bytes lies there. */
  place(contents: RecordContents, segmentBase: number, bytes: number): void {
    const { garbage } = this;
    if ("refused" in contents) {
      const { producer, sequence } = contents.refused;
      if (this.#holdsRefusal(producer, sequence)) garbage.add(refusalOwner(producer, sequence), segmentBase, bytes);
      else garbage.bury(segmentBase, bytes);
      return;
    }
    const [first] = contents.changes;
    if (first === undefined) return;
    if (first.kind === "run_ended") this.placeEnd(first.runId, segmentBase, bytes);
    else if ("runId" in first) this.placeRun(first.runId, segmentBase, bytes);
    else this.#placeCellChanges(contents.changes as readonly CellChange[], segmentBase, bytes);
  }

  /** The producer table has let go of a refusal. */
  refusalDropped(producer: string, sequence: number): void {
    this.garbage.release(refusalOwner(producer, sequence));
  }

  /** A record of a run that has not ended lies there. */
  placeRun(runId: string, segmentBase: number, bytes: number): void {
    this.garbage.add(runId, segmentBase, bytes);
  }

  /** A run's consolidated record lies there. */
  placeEnd(runId: string, segmentBase: number, bytes: number): void {
    this.garbage.release(runId);
    const before = this.#segmentOfEnd(runId);
    // The record that this one replaces was as long, give or take some bytes.
    if (before !== undefined) this.garbage.bury(before, bytes);
    this.#runs.set(runId, FIRST_END + this.#segments.ordinalOf(segmentBase));
  }

  /** The segment of the run's last consolidated record; undefined while there is none that is committed. */
  #segmentOfEnd(runId: string): number | undefined {
    const value = this.#runs.get(runId);
    return value === undefined || value < FIRST_END ? undefined : this.#segments.baseOf(value - FIRST_END);
  }

  #placeCellChanges(changes: readonly CellChange[], segmentBase: number, bytes: number): void {
    let own = bytes;
    for (const change of changes) {
      const owner = cellOwner(change);
      if (owner === null) continue;
      this.garbage.release(owner);
      if (change.kind === "component_deleted") continue;
      this.garbage.add(owner, segmentBase, own);
      own = 0;
    }
  }

  /** What compaction may do with a record of this segment: `SegmentOwner.judge`. */
  judge(segmentBase: number, { type, index, body }: LogRecord): Verdict {
    if (!isKnownRecordType(type)) return "stays";
    const decoded = decodeIndex(type, index);
    switch (decoded.type) {
      case RECORD_TYPE.runCreated:
      case RECORD_TYPE.runDelta: {
        const runId = decoded.type === RECORD_TYPE.runDelta ? decoded.runId : decoded.summary.id;
        const isNeedless = this.#segmentOfEnd(runId) !== undefined && saysOnlyTheRun(decoded.type, body);
        return isNeedless ? "goes" : "stays";
      }
      case RECORD_TYPE.runEnded: {
        const { id } = decoded.summary;
        const mayGo = saysOnlyTheRun(decoded.type, body);
        const end = this.#segmentOfEnd(id);
        if (end === undefined) return "stays";
        if (end !== segmentBase) return mayGo ? "goes" : "stays";
        return { subjects: [id], mayGo };
      }
      case RECORD_TYPE.refusal: {
        const { origin } = decoded;
        return origin !== null && !this.#holdsRefusal(origin.producer, origin.sequence) ? "goes" : "stays";
      }
      case RECORD_TYPE.webhook:
        return { subjects: [`webhook ${(decoded.shown.webhook ?? decoded.shown.deleted).id}`], mayGo: true };
      case RECORD_TYPE.delivery:
        // Each record of a delivery is all of it.
        return { subjects: [`delivery ${decoded.delivery.id}`], mayGo: true };
      case RECORD_TYPE.cellChanges:
        return this.#judgeCellChanges(segmentBase, decodeChanges(type, body) as CellChange[]);
    }
  }

  /** Puts of a component's row or of the cell go once later ones have taken their place; a deletion, like a program, stays. */
  #judgeCellChanges(segmentBase: number, changes: readonly CellChange[]): Verdict {
    const puts = changes.filter(({ kind }) => kind === "cell_put" || kind === "component_put");
    const current = puts
      .map((put) => cellOwner(put) as string)
      .filter((owner) => this.garbage.endsIn(owner, segmentBase));
    const mayGo = puts.length === changes.length;
    if (current.length === 0) return mayGo ? "goes" : "stays";
    return { subjects: current, mayGo };
  }

  /** The segment was written anew since this was counted. */
  rewritten(segmentBase: number): void {
    this.garbage.remove(segmentBase, this.garbage.deadBytes(segmentBase));
  }

  export(): RecordPlacesData {
    return { garbage: this.garbage.export(), segments: this.#segments.bases() };
  }

  /** Takes in what was exported, beside the table of runs that it belongs to; only before anything else. */
  restore({ garbage, segments }: RecordPlacesData): void {
    this.garbage.restore(garbage);
    this.#segments.load(segments);
  }
}

function cellOwner(change: CellChange): string | null {
  switch (change.kind) {
    case "cell_put":
      return "cell";
    case "component_put":
      return `component ${change.row.key}`;
    case "component_deleted":
      return `component ${change.key}`;
    default:
      return null;
  }
}

function refusalOwner(producer: string, sequence: number): string {
  return `refusal ${sequence} ${producer}`;
}
