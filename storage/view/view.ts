/**
 * The view: everything that the interface answers, folded from durable records only. It lives in the front's thread and gets every batch that the
 * log commits, during a start and later.
 *
 * It keeps in memory the indexes over all runs (view-runs.ts, about 120 bytes a run), the states of the runs that have not ended, programs, health
 * rows and the cell's identity. The rest of an ended run is read from its consolidated record when somebody asks: the summary from the index section,
 * the state from the body.
 *
 * Every method answers from one state: what it finds is fixed before its first read of the log, and records never change or move.
 */
import type { FrameState } from "../../core/capture/capture.js";
import type { ComponentRow } from "../../core/health.js";
import type { CellIdentity } from "../../core/link/change.js";
import type { ProgramState } from "../../core/run/program.js";
import type { RunState, RunStatus } from "../../core/run/run-state.js";
import type { Delivery } from "../../core/webhook/delivery.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import type { Webhook } from "../../core/webhook/webhook.js";
import { type DeliveryContent, DeliveryRecords, type EmittingRun } from "../records/delivery-records.js";
import { ActiveRuns } from "./active-runs.js";
import { CellState } from "./cell-state.js";
import { type RunChanges, type RunFollower, runChangesOf } from "./changes/run-changes.js";
import { type ReadRunPage, type RunPage, runPageOf } from "./run-page.js";
import { RunRecords, type RunRecordsOptions, type StoredRun } from "./run-records.js";
import { type DeliveryRow, ViewDeliveries } from "./view-deliveries.js";
import { type AppliedBatch, ViewFold, type ViewTables } from "./view-fold.js";
import { type RunListQuery, ViewRuns } from "./view-runs.js";
import { ViewWebhooks } from "./view-webhooks.js";

export type { RunFollower } from "./changes/run-changes.js";
export type { RunPage } from "./run-page.js";
export type { RunFilter, RunListQuery } from "./view-runs.js";

/** What is known of a run without reading it. */
export interface RunHead {
  readonly id: string;
  readonly status: RunStatus;
  /** Differs for each state of a run. Together with the id and `deliveryChanges` it identifies the bytes of an answer. */
  readonly updatedAtUs: number;
}

export interface ProgramListQuery {
  readonly robotId?: string | undefined;
  readonly offset: number;
  readonly limit: number;
}

export interface ProgramEntry {
  readonly program: ProgramState;
  /** Runs of any status. */
  readonly runCount: number;
}

export class View {
  readonly #tables: ViewTables;
  readonly #fold: ViewFold;
  readonly #deliveryRecords: DeliveryRecords;

  constructor(options: RunRecordsOptions) {
    const runs = new ViewRuns();
    const deliveries = new ViewDeliveries();
    this.#tables = {
      runs,
      records: new RunRecords(options),
      activeRuns: new ActiveRuns(),
      cell: new CellState(),
      webhooks: new ViewWebhooks(),
      deliveries,
    };
    this.#fold = new ViewFold(this.#tables);
    this.#deliveryRecords = new DeliveryRecords(options.reader, deliveries, (id) => this.#emitted(id));
  }

  /** The last record that the answers include; 0 before the first. */
  get appliedSequence(): number {
    return this.#fold.appliedSequence;
  }

  /** Changes whenever the answer of `listRuns` may have changed. */
  get runsVersion(): number {
    return this.#fold.runsVersion;
  }

  /** Changes whenever any answer may have changed. While it stays the same, earlier answers are still right. */
  get changes(): number {
    return this.#fold.changes;
  }

  /** How many runs there are. */
  get runCount(): number {
    return this.#tables.runs.size;
  }

  /** Takes the log's next batch, during a start and later. Nothing of it is kept by reference. */
  applyBatch(batch: AppliedBatch): void {
    this.#fold.applyBatch(batch);
  }

  /**
   * As `applyBatch`, but lets other work run after each slice of time. Between slices the view shows the records up to there, as if they had come one
   * by one. The next batch must wait for this one. Many small batches share a slice.
   *
   * @param giveWay resolves when other work has had its turn
   */
  applyBatchInSlices(batch: AppliedBatch, giveWay: () => Promise<void>, sliceMs?: number): Promise<void> {
    return this.#fold.applyBatchInSlices(batch, giveWay, sliceMs);
  }

  /**
   * Ends the opening of a store, after all its records were applied. Until then, runs that have not ended are not decoded, so lists show no quality
   * status for them, and runs that only a late consolidated record knows are not listed.
   */
  finishOpening(): void {
    this.#fold.finishOpening();
  }

  /** From now on nobody waits for further attempts of deliveries, so none shows a next attempt, whatever records come. */
  endPausesForGood(): void {
    this.#fold.endPausesForGood();
  }

  /** Undefined for an unknown run. O(log n), reads nothing. */
  runHead(id: string): RunHead | undefined {
    const ordinal = this.#tables.runs.ordinal(id);
    if (ordinal < 0) return undefined;
    return { id, status: this.#tables.runs.status(ordinal), updatedAtUs: this.#tables.runs.updatedAtUs(ordinal) };
  }

  /**
   * A run's whole state; undefined for an unknown run. The caller must not change it. The state of a run that has not ended changes in place with the
   * next batch, so make the answer from it before the next await.
   */
  async run(id: string): Promise<RunState | undefined> {
    const ordinal = this.#tables.runs.ordinal(id);
    return ordinal < 0 ? undefined : this.#state(ordinal);
  }

  /** The newest run that is running or finalizing; as `run`. */
  activeRun(): RunState | undefined {
    const ordinal = this.#tables.runs.newestActive();
    return ordinal === undefined ? undefined : this.#tables.activeRuns.state(this.#tables.runs.id(ordinal));
  }

  /** A frame with its run; undefined for an unknown frame; as `run`. */
  async frame(frameId: string): Promise<{ readonly run: RunState; readonly frame: FrameState } | undefined> {
    const ordinal = this.#tables.runs.runOfFrame(frameId);
    if (ordinal === undefined) return undefined;
    const run = await this.#state(ordinal);
    const frame = run.frames.find((one) => one.id === frameId);
    return frame === undefined ? undefined : { run, frame };
  }

  /** Id of a frame's run; undefined for an unknown frame. Reads nothing. */
  runOfFrame(frameId: string): string | undefined {
    const ordinal = this.#tables.runs.runOfFrame(frameId);
    return ordinal === undefined ? undefined : this.#tables.runs.id(ordinal);
  }

  /**
   * Size in bytes of a run's document, stored or estimated, which says how much work an answer about it is. 0 for an unknown run. Reads nothing.
   */
  documentBytes(id: string): number {
    const ordinal = this.#tables.runs.ordinal(id);
    if (ordinal < 0) return 0;
    return this.#tables.runs.location(ordinal)?.length ?? this.#tables.activeRuns.state(id).documentBytes;
  }

  hasEnded(id: string): boolean {
    const ordinal = this.#tables.runs.ordinal(id);
    return ordinal >= 0 && this.#tables.runs.location(ordinal) !== undefined;
  }

  /** The body of an ended run's record, in memory that the caller may transfer; undefined while the run has not ended. */
  storedBody(id: string): Promise<Uint8Array> | undefined {
    const ordinal = this.#tables.runs.ordinal(id);
    const stored = ordinal < 0 ? undefined : this.#storedRun(ordinal);
    return stored && this.#tables.records.body(stored);
  }

  /** As `runPage`, and reads the page. */
  async listRuns(query: RunListQuery, baseUrl: string): Promise<ReadRunPage & { readonly total: number }> {
    const page = this.runPage(query, baseUrl);
    return { total: page.total, ...(await page.read()) };
  }

  /**
   * A page of list entries, newest first, each as the UTF-8 JSON of a ProgramRunSummaryResponse. `total` counts all matching runs. This call fixes what
   * the page shows.
   *
   * @param baseUrl as in `runResponse`
   */
  runPage(query: RunListQuery, baseUrl: string): RunPage {
    return runPageOf(this.#tables, query, baseUrl);
  }

  /** When any run was last updated, in microseconds since the Unix epoch; 0 without runs. Every later update has a later time. */
  get latestUpdateUs(): number {
    return this.#tables.runs.latestUs;
  }

  /**
   * The next runs that changed after a follower's mark, the earliest update first: those that match its filter, and those that may have left it. A
   * portion may be empty. It takes a bounded time, however much has changed.
   */
  runChanges(follower: RunFollower): RunChanges {
    return runChangesOf(this.#tables, this.runsVersion, follower);
  }

  /** Calls back whenever answers may have changed: after each batch, and after each slice of a large one. */
  set onApplied(listener: () => void) {
    this.#fold.onApplied = listener;
  }

  /** Undefined for an unknown program and for a deleted one. */
  program(id: string): ProgramEntry | undefined {
    const program = this.#tables.cell.programs.get(id);
    return program && { program, runCount: this.#tables.runs.programRunCount(id) };
  }

  /** True also for a deleted program, whose runs stay listed. */
  programEverExisted(id: string): boolean {
    return this.#tables.cell.programs.everExisted(id);
  }

  /** Newest first. `total` counts all matching programs. */
  listPrograms({ robotId, offset, limit }: ProgramListQuery): {
    readonly total: number;
    readonly programs: readonly ProgramEntry[];
  } {
    const { total, programs } = this.#tables.cell.programs.list(robotId, offset, limit);
    return {
      total,
      programs: programs.map((program) => ({
        program,
        runCount: this.#tables.runs.programRunCount(program.document.id),
      })),
    };
  }

  /** The components that producers put, sorted by key. */
  components(): ComponentRow[] {
    return [...this.#tables.cell.components.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  cell(): CellIdentity {
    return this.#tables.cell.identity;
  }

  /** Undefined when unknown or deleted. */
  webhook(id: string): Webhook | undefined {
    return this.#tables.webhooks.get(id);
  }

  /** True also for a deleted webhook, whose deliveries stay listed. */
  webhookEverExisted(id: string): boolean {
    return this.#tables.webhooks.everExisted(id);
  }

  /** Oldest first. */
  listWebhooks(): Webhook[] {
    return this.#tables.webhooks.list();
  }

  /** The name of a webhook, deleted or not. */
  webhookName(id: string): string {
    return this.#tables.webhooks.name(id);
  }

  /** What is known of a delivery without reading it; undefined for an unknown one. */
  deliveryRow(id: string): DeliveryRow | undefined {
    return this.#tables.deliveries.row(id);
  }

  /** Undefined for an unknown delivery. @throws StorageError when its stored data is damaged or missing */
  async delivery(id: string): Promise<DeliveryContent | undefined> {
    const row = this.#tables.deliveries.row(id);
    return row && this.#deliveryRecords.content(row);
  }

  /**
   * Deliveries to a webhook, deleted or not, newest first: as many as `limit` and `LIMITS.deliveriesPageBytes` allow, and at least one if there is one.
   *
   * @param beforeUs only those created before this time; null means all
   * @param toBytes makes the bytes that are kept of each
   * @param throwIfCancelled ends the reading by throwing, when nobody waits for the page any more
   * @throws StorageError when the stored data of a delivery is damaged or missing
   */
  listDeliveries(
    webhookId: string,
    beforeUs: number | null,
    limit: number,
    toBytes: (delivery: Delivery, payload: string) => Uint8Array,
    throwIfCancelled: () => void = () => {},
  ): Promise<Uint8Array[]> {
    const rows = this.#tables.deliveries.ofWebhook(webhookId, beforeUs, limit);
    return this.#deliveryRecords.page(rows, toBytes, throwIfCancelled);
  }

  /** How often the name of any webhook has changed since the store was opened. */
  get webhookRenames(): number {
    return this.#tables.webhooks.renames;
  }

  /** How often a run's deliveries have changed since the store was opened. They do not move its updated_at. */
  deliveryChanges(runId: string): number {
    return this.#tables.deliveries.changesOf(runId);
  }

  /** The deliveries of a run, in the order they began. */
  deliveriesOfRun(run: EmittingRun): Promise<Delivery[]> {
    return this.#deliveryRecords.ofRun(run);
  }

  /** Undefined for an unknown run. */
  async #emitted(id: string): Promise<readonly EmittedEvent[] | undefined> {
    const ordinal = this.#tables.runs.ordinal(id);
    if (ordinal < 0) return undefined;
    const stored = this.#storedRun(ordinal);
    return stored === undefined
      ? (this.#tables.activeRuns.state(id).emitted ?? [])
      : this.#tables.records.emitted(stored);
  }

  #state(ordinal: number): Promise<RunState> | RunState {
    const stored = this.#storedRun(ordinal);
    return stored === undefined
      ? this.#tables.activeRuns.state(this.#tables.runs.id(ordinal))
      : this.#tables.records.state(stored);
  }

  /** Undefined while the run has not ended. */
  #storedRun(ordinal: number): StoredRun | undefined {
    const location = this.#tables.runs.location(ordinal);
    return (
      location && {
        id: this.#tables.runs.id(ordinal),
        ordinal,
        updatedAtUs: this.#tables.runs.updatedAtUs(ordinal),
        location,
      }
    );
  }
}
