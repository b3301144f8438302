/** Folds the log's records into the tables of the view, during a start and later. */
import type { CellChange } from "../../core/link/change.js";
import {
  type CommittedBatch,
  forEachRecord,
  type LogRecord,
  type RecordLocation,
  stepThroughRecords,
} from "../log/committed-batch.js";
import type { IndexedRun } from "../records/indexed-run.js";
import type { PlantMessage } from "../records/plant-message.js";
import { type FoldedState, foldRecord, type IndexedDelta, type IndexedEnd } from "../records/record-fold.js";
import type { WebhookIndex } from "../records/webhook-record.js";
import type { ActiveRuns, HubFields } from "./active-runs.js";
import type { CellTable } from "./cell-state.js";
import type { ViewDeliveries } from "./deliveries/view-deliveries.js";
import type { PlantTables } from "./plant/plant-tables.js";
import type { RunRecords } from "./run-records.js";
import type { RunTable } from "./view-runs.js";
import type { ViewWebhooks } from "./view-webhooks.js";

/** What the view keeps in memory, by subject, and the reader of ended runs. */
export interface ViewTables {
  readonly runs: RunTable;
  readonly records: RunRecords;
  readonly activeRuns: ActiveRuns;
  readonly cell: CellTable;
  readonly webhooks: ViewWebhooks;
  readonly deliveries: ViewDeliveries;
  /** Only at a hub: of these are `runs` and `cell`. */
  readonly plant?: PlantTables | undefined;
}

/** How long live batches may keep the thread in one go, if other work keeps it no longer than `SHORT_TURN_MS`. */
const SLICE_MS = 0.2;
/** If other work keeps the thread for longer, slices grow with it. Live batches always have a tenth of the time, so the view does not fall behind. */
const SHORT_TURN_MS = 2;

export type AppliedBatch = Pick<CommittedBatch, "bytes" | "isHint" | "segmentBase" | "offset" | "lastSequence">;

export class ViewFold implements FoldedState {
  readonly #tables: ViewTables;
  #appliedSequence = 0;
  #shownSequence = 0;
  #segmentBase = 0;
  #segments = 0;
  /** When the current slice of time for live batches ends. */
  #sliceEndMs = 0;
  /** True when the store has been read: from now on batches are new ones. */
  #isLive = false;
  #runsVersion = 0;
  /** Called whenever answers may have changed: after each batch, and after each slice of a large one. */
  onApplied: () => void = () => {};

  constructor(tables: ViewTables) {
    this.#tables = tables;
  }

  /** The last record that the answers include, also while a batch is being taken; 0 before the first. */
  get shownSequence(): number {
    return this.#shownSequence;
  }

  /** The last record of the last batch that was taken whole; 0 before the first. */
  get appliedSequence(): number {
    return this.#appliedSequence;
  }

  /** Segments of the log that are followed by another one. */
  get sealedSegments(): number {
    return Math.max(0, this.#segments - 1);
  }

  /** Changes whenever the answer of `View.runPage` may have changed. */
  get runsVersion(): number {
    return this.#runsVersion;
  }

  /** Takes the log's next batch, during a start and later. Nothing of it is kept by reference. */
  applyBatch(batch: AppliedBatch): void {
    this.#noteSegment(batch);
    forEachRecord(batch, (record, location) => foldRecord(record, location, this));
    this.#appliedSequence = batch.lastSequence;
    this.#shownSequence = batch.lastSequence;
    this.onApplied();
  }

  /**
   * Does what `applyBatch` does, but lets other work run after each slice of time. Between slices the view shows the records up to there, as if they
   * had come one by one. The next batch must wait for this one. Many small batches share a slice.
   *
   * @param giveWay resolves when other work has had its turn
   */
  async applyBatchInSlices(batch: AppliedBatch, giveWay: () => Promise<void>, sliceMs = SLICE_MS): Promise<void> {
    this.#noteSegment(batch);
    const take = (record: LogRecord, location: RecordLocation): void => {
      foldRecord(record, location, this);
      this.#shownSequence = record.sequence;
    };
    for (const _ of stepThroughRecords(batch, take)) {
      if (performance.now() < this.#sliceEndMs) continue;
      this.onApplied();
      const givenMs = performance.now();
      await giveWay();
      const backMs = performance.now();
      this.#sliceEndMs = backMs + sliceMs * Math.max(1, (backMs - givenMs) / SHORT_TURN_MS);
    }
    this.#appliedSequence = batch.lastSequence;
    this.#shownSequence = batch.lastSequence;
    this.onApplied();
  }

  /**
   * Ends the opening of a store, after all its records were applied. Until then, runs that have not ended are not decoded, so lists show no quality
   * status for them. Runs that only a late consolidated record knows are not listed until then.
   */
  finishOpening(): void {
    this.#isLive = true;
    this.#runsVersion++;
    this.#tables.runs.admitLateRuns();
    this.#tables.runs.beginStatusTimes();
    this.#tables.records.ordinalsChanged();
    this.#tables.activeRuns.foldEagerly();
    for (const id of this.#tables.activeRuns.ids())
      this.#tables.runs.setQualityStatus(this.#tables.runs.ordinal(id), this.#tables.activeRuns.qualityStatus(id));
    this.#tables.deliveries.endPauses();
  }

  /** From now on nobody waits for further attempts of deliveries, so none shows a next attempt, whatever records come. */
  endPausesForGood(): void {
    this.#tables.deliveries.endPausesForGood();
  }

  message(): void {}

  cellChange(change: CellChange, timeUs: number): void {
    this.#runsVersion++;
    this.#tables.cell.apply(change, timeUs);
  }

  runCreated(run: IndexedRun, record: LogRecord): void {
    this.#runChanged();
    const hub = this.#hubFields(record);
    const { runs, activeRuns } = this.#tables;
    if (runs.create(run, hub?.updatedAtUs ?? run.updatedAtUs)) activeRuns.create(run.id, record, hub);
  }

  runDelta({ runId, statusAfter, frameId, events }: IndexedDelta, record: LogRecord): void {
    const { runs, activeRuns, deliveries } = this.#tables;
    this.#runChanged();
    const ordinal = runs.ordinal(runId);
    // The record of an unknown or ended run changes nothing. Such a record comes only after damage.
    const hub = this.#hubFields(record, ordinal);
    activeRuns.add(runId, record, hub);
    if (ordinal >= 0 && runs.location(ordinal) === undefined) {
      runs.update(ordinal, statusAfter, activeRuns.qualityStatus(runId), hub?.updatedAtUs ?? record.timeUs);
      if (frameId !== null) runs.addFrame(ordinal, frameId);
    }
    if (events !== undefined) deliveries.begin(runId, events);
  }

  runEnded({ run, events }: IndexedEnd, record: LogRecord, location: RecordLocation): void {
    const { runs, records, activeRuns, deliveries } = this.#tables;
    this.#runChanged();
    const known = runs.nextOrdinal;
    const ordinal = runs.end(run, this.#hubFields(record)?.updatedAtUs ?? run.updatedAtUs, location);
    // A run that was not known before has nothing to delete. So no text of its id is made.
    if (ordinal !== known) activeRuns.delete(run.id);
    if (this.#isLive && ordinal >= 0) records.ended(ordinal, { ...run.summary(), ...this.#hubFields(record, ordinal) });
    if (events !== undefined) deliveries.begin(run.id, events);
  }

  webhook(shown: WebhookIndex, record: LogRecord): void {
    this.#tables.webhooks.apply(shown, this.#hubFields(record)?.cell);
  }

  delivery(index: Uint8Array, location: RecordLocation): void {
    this.#tables.deliveries.put(index, location);
  }

  plantMessage(message: PlantMessage, record: LogRecord): void {
    this.#tables.plant?.message(message, record.sequence);
  }

  /** Undefined in the store of a cell. @param ordinal of the run, if it is known: its cell may have got another name since */
  #hubFields({ sequence }: LogRecord, ordinal = -1): HubFields | undefined {
    const { plant, runs } = this.#tables;
    const origin = plant?.originOf(sequence);
    if (origin === undefined || ordinal < 0) return origin;
    return { ...origin, cell: runs.cell(ordinal) ?? origin.cell };
  }

  #noteSegment({ segmentBase }: AppliedBatch): void {
    if (segmentBase === this.#segmentBase) return;
    this.#segmentBase = segmentBase;
    this.#segments++;
  }

  /** The recorder answers for resends. */
  resend(): void {}

  #runChanged(): void {
    this.#runsVersion++;
  }
}
