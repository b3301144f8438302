/** Folds the log's records into the tables of the view, during a start and later. */
import type { ComponentRow } from "../../core/health.js";
import type { CellChange, CellIdentity } from "../../core/link/change.js";
import {
  type CommittedBatch,
  forEachRecord,
  type LogRecord,
  type RecordLocation,
  stepThroughRecords,
} from "../log/log-batch.js";
import { decodeChanges, endedSummary } from "../records/change-record.js";
import { decodeIndex, deliveryPart, isKnownRecordType, RECORD_TYPE } from "../records/record-index.js";
import type { ActiveRuns } from "./active-runs.js";
import type { RunRecords } from "./run-records.js";
import type { ViewDeliveries } from "./view-deliveries.js";
import type { ViewPrograms } from "./view-programs.js";
import type { ViewRuns } from "./view-runs.js";
import type { ViewWebhooks } from "./view-webhooks.js";

/** What the view keeps in memory, by subject, and the reader of ended runs. */
export interface ViewTables {
  readonly runs: ViewRuns;
  readonly records: RunRecords;
  readonly activeRuns: ActiveRuns;
  readonly programs: ViewPrograms;
  /** What producers put, by key. */
  readonly components: Map<string, ComponentRow>;
  readonly webhooks: ViewWebhooks;
  readonly deliveries: ViewDeliveries;
  cell: CellIdentity;
}

/** How long a live batch may keep the thread in one go. A request that comes meanwhile waits no longer than this. */
const SLICE_MS = 0.2;

export type AppliedBatch = Pick<CommittedBatch, "bytes" | "segmentBase" | "offset" | "lastSequence">;

/** `View` describes the public methods: it only passes its calls on. */
export class ViewFold {
  readonly #tables: ViewTables;
  #appliedSequence = 0;
  /** When the current slice of time for live batches ends. */
  #sliceEndMs = 0;
  #skippedRecords = 0;
  /** True when the store has been read: from now on batches are new ones. */
  #isLive = false;
  #runsVersion = 0;
  #changes = 0;
  /** Called after each batch, and after each slice of one. */
  onApplied: () => void = () => {};

  constructor(tables: ViewTables) {
    this.#tables = tables;
  }

  get appliedSequence(): number {
    return this.#appliedSequence;
  }

  get skippedRecords(): number {
    return this.#skippedRecords + this.#tables.activeRuns.skippedRecords;
  }

  get runsVersion(): number {
    return this.#runsVersion;
  }

  get changes(): number {
    return this.#changes;
  }

  applyBatch(batch: AppliedBatch): void {
    forEachRecord(batch, (record, location) => {
      this.#apply(record, location);
      this.#tables.deliveries.beginAll();
    });
    this.#appliedSequence = batch.lastSequence;
    this.onApplied();
  }

  async applyBatchInSlices(batch: AppliedBatch, giveWay: () => Promise<void>, sliceMs = SLICE_MS): Promise<void> {
    for (const _ of stepThroughRecords(batch, (record, location) => this.#apply(record, location))) {
      do {
        if (performance.now() < this.#sliceEndMs) continue;
        this.onApplied();
        await giveWay();
        this.#sliceEndMs = performance.now() + sliceMs;
      } while (this.#tables.deliveries.beginSome());
    }
    this.#appliedSequence = batch.lastSequence;
    this.onApplied();
  }

  finishOpening(): void {
    this.#isLive = true;
    this.#runsVersion++;
    this.#changes++;
    this.#tables.runs.admitLateRuns();
    this.#tables.runs.beginStatusTimes();
    this.#tables.records.ordinalsChanged();
    this.#tables.activeRuns.foldEagerly();
    for (const id of this.#tables.activeRuns.ids())
      this.#tables.runs.judge(this.#tables.runs.ordinal(id), this.#tables.activeRuns.qualityStatus(id));
    this.#tables.deliveries.endPauses();
  }

  endPausesForGood(): void {
    this.#changes++;
    this.#tables.deliveries.endPausesForGood();
  }

  #apply(record: LogRecord, location: RecordLocation): void {
    const { type } = record;
    if (!isKnownRecordType(type)) return;
    // With webhooks, most records are of this type.
    if (type === RECORD_TYPE.delivery) {
      this.#changes++;
      this.#tables.deliveries.put(deliveryPart(record.index), location);
      return;
    }
    const index = decodeIndex(type, record.index);
    // No answer shows refusals.
    if (index.type === RECORD_TYPE.refusal) return;
    this.#changes++;
    switch (index.type) {
      case RECORD_TYPE.webhook:
        this.#tables.webhooks.apply(index.shown);
        return;
      case RECORD_TYPE.cellChanges:
        this.#runsVersion++;
        for (const change of decodeChanges(type, record.body))
          this.#applyCellChange(change as CellChange, record.timeUs);
        return;
      case RECORD_TYPE.runCreated:
        this.#runsVersion++;
        if (this.#tables.runs.create({ ...index.summary, qualityStatus: null }))
          this.#tables.activeRuns.create(index.summary.id, record);
        else this.#skippedRecords++;
        return;
      case RECORD_TYPE.runDelta: {
        this.#runsVersion++;
        const ordinal = this.#tables.runs.ordinal(index.runId);
        // The record of an unknown or ended run changes nothing here; the active runs count it as skipped.
        this.#tables.activeRuns.add(index.runId, record);
        if (ordinal >= 0 && this.#tables.runs.location(ordinal) === undefined) {
          this.#tables.runs.update(
            ordinal,
            index.statusAfter,
            this.#tables.activeRuns.qualityStatus(index.runId),
            record.timeUs,
          );
          if (index.frameId !== null) this.#tables.runs.addFrame(ordinal, index.frameId);
        }
        if (index.events !== undefined) this.#tables.deliveries.begin(index.runId, index.events);
        return;
      }
      case RECORD_TYPE.runEnded: {
        this.#runsVersion++;
        const summary = endedSummary(index.summary, record.body);
        const ordinal = this.#tables.runs.end(summary, index.frameIds, location);
        this.#tables.activeRuns.delete(summary.id);
        if (this.#isLive && ordinal >= 0) this.#tables.records.ended(ordinal, summary);
        if (index.events !== undefined) this.#tables.deliveries.begin(summary.id, index.events);
        return;
      }
    }
  }

  #applyCellChange(change: CellChange, timeUs: number): void {
    switch (change.kind) {
      case "cell_put":
        this.#tables.cell = change.cell;
        return;
      case "component_put":
        this.#tables.components.set(change.row.key, change.row);
        return;
      case "component_deleted":
        this.#tables.components.delete(change.key);
        return;
      case "program_put":
        this.#tables.programs.put(change.program, timeUs);
        return;
      case "program_deleted":
        this.#tables.programs.delete(change.id);
        return;
      case "producer_forgotten":
        return;
    }
  }
}
