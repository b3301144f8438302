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
import type { ComponentRow } from "../../core/health.js";
import type { ProgramState } from "../../core/run/program.js";
import { isTerminal, RUN_STATUSES, type RunState, type RunStatus } from "../../core/run/run-state.js";
import type { Delivery } from "../../core/webhook/delivery.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import type { ResendQuery } from "../../core/webhook/resend.js";
import type { Webhook } from "../../core/webhook/webhook.js";
import { type DeliveryContent, DeliveryRecords, type EmittingRun } from "../records/delivery-records.js";
import { ActiveRuns } from "./active-runs.js";
import { CellState, type CellTable } from "./cell-state.js";
import { type RunChanges, type RunFollower, runChangesOf } from "./changes/run-changes.js";
import { chooseDeliveries } from "./deliveries/choose-deliveries.js";
import { type DeliveryRow, ViewDeliveries } from "./deliveries/view-deliveries.js";
import { PlantTables } from "./plant/plant-tables.js";
import { type RunPage, runPageOf } from "./run-page.js";
import { type GiveWay, RunRecords, type RunRecordsOptions, type StoredRun } from "./run-records.js";
import { ViewFold, type ViewTables } from "./view-fold.js";
import { type RunListQuery, type RunTable, ViewRuns } from "./view-runs.js";
import { ViewWebhooks } from "./view-webhooks.js";

export type { RunFollower } from "./changes/run-changes.js";
export type { RunPage } from "./run-page.js";
export type { RunFilter, RunListQuery } from "./view-runs.js";

/** What is known of a run without reading it. */
export interface RunHead {
  readonly id: string;
  readonly status: RunStatus;
  /** Differs for each state of a run. Together with the id and `ViewDeliveries.changesOf` it identifies the bytes of an answer. */
  readonly updatedAtUs: number;
  /** Undefined in the store of a cell. */
  readonly cell: string | undefined;
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
  /** Names of the cells that have it; undefined in the store of a cell. */
  readonly cells: readonly string[] | undefined;
}

export interface ViewOptions extends RunRecordsOptions {
  /** The log is that of a hub: it has the records of many cells (workers/hub). */
  isHub?: boolean;
}

export class View {
  /** Whether the log is that of a hub. */
  readonly isHub: boolean;
  readonly runs: RunTable;
  readonly cell: CellTable;
  readonly webhooks = new ViewWebhooks();
  readonly deliveries = new ViewDeliveries();
  /** Takes the log's records. Nothing else changes the tables above: they are for reading. */
  readonly fold: ViewFold;
  readonly #records: RunRecords;
  readonly #activeRuns = new ActiveRuns();
  readonly #tables: ViewTables;
  readonly #deliveryRecords: DeliveryRecords;

  constructor(options: ViewOptions) {
    const plant = options.isHub === true ? new PlantTables() : undefined;
    this.isHub = plant !== undefined;
    this.runs = plant?.runs ?? new ViewRuns();
    this.cell = plant?.cell ?? new CellState();
    const { runs, cell, webhooks, deliveries } = this;
    this.#records = new RunRecords(options);
    this.#tables = { runs, records: this.#records, activeRuns: this.#activeRuns, cell, webhooks, deliveries, plant };
    this.fold = new ViewFold(this.#tables);
    this.#deliveryRecords = new DeliveryRecords(options.reader, deliveries, (id) => this.#emitted(id));
  }

  /** Undefined for an unknown run. O(log n), reads nothing. */
  runHead(id: string): RunHead | undefined {
    const ordinal = this.runs.ordinal(id);
    if (ordinal < 0) return undefined;
    const { runs } = this;
    return { id, status: runs.status(ordinal), updatedAtUs: runs.updatedAtUs(ordinal), cell: runs.cell(ordinal) };
  }

  /**
   * A run's whole state; undefined for an unknown run. The caller must not change it. The state of a run that has not ended changes in place with the
   * next batch, so make the answer from it before the next await.
   */
  async run(id: string): Promise<RunState | undefined> {
    const ordinal = this.runs.ordinal(id);
    return ordinal < 0 ? undefined : this.#state(ordinal);
  }

  /** The newest run that is running or finalizing; as `run`. */
  activeRun(): RunState | undefined {
    const ordinal = this.runs.newestActive();
    return ordinal === undefined ? undefined : this.#activeRuns.state(this.runs.id(ordinal));
  }

  /** At a hub: where the run came from; undefined for an unknown run. Reads nothing. */
  sourceOf(id: string): { cell: string; storeId: string } | undefined {
    const ordinal = this.runs.ordinal(id);
    if (ordinal < 0) return undefined;
    const [cell, storeId] = [this.runs.cell(ordinal), this.runs.storeId(ordinal)];
    return cell === undefined || storeId === undefined ? undefined : { cell, storeId };
  }

  /** Id of a frame's run; undefined for an unknown frame. Reads nothing. */
  runOfFrame(frameId: string): string | undefined {
    const ordinal = this.runs.runOfFrame(frameId);
    return ordinal === undefined ? undefined : this.runs.id(ordinal);
  }

  /**
   * Size in bytes of a run's document, stored or estimated. It says how much work an answer about the run is. 0 for an unknown run. Reads nothing.
   */
  documentBytes(id: string): number {
    const ordinal = this.runs.ordinal(id);
    if (ordinal < 0) return 0;
    return this.runs.location(ordinal)?.length ?? this.#activeRuns.state(id).documentBytes;
  }

  hasEnded(id: string): boolean {
    const ordinal = this.runs.ordinal(id);
    return ordinal >= 0 && this.runs.location(ordinal) !== undefined;
  }

  /** The body of an ended run's record, in memory that the caller may transfer; undefined while the run has not ended. */
  storedBody(id: string): Promise<Uint8Array> | undefined {
    const ordinal = this.runs.ordinal(id);
    const stored = ordinal < 0 ? undefined : this.#storedRun(ordinal);
    return stored && this.#records.body(stored);
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

  /**
   * The next runs that changed after a follower's mark, the earliest update first. These are the runs that match its
   * filter, and those that may have left it. A batch may be empty. It takes a bounded time, however much has changed.
   */
  runChanges(follower: RunFollower): RunChanges {
    return runChangesOf(this.#tables, this.fold.runsVersion, follower);
  }

  /** Undefined for an unknown program and for a deleted one. */
  program(id: string): ProgramEntry | undefined {
    const program = this.cell.programs.get(id);
    return program && this.#entry(program);
  }

  /** Runs of the program that have ended. While the count stays the same, so do the program's statistics. O(log n). */
  endedRunCount(programId: string): number {
    const count = (status: RunStatus) => this.runs.query({ programId, status, offset: 0, limit: 0 }).total;
    return RUN_STATUSES.filter(isTerminal).reduce((sum, status) => sum + count(status), 0);
  }

  /** Newest first. `total` counts all matching programs. */
  listPrograms({ robotId, offset, limit }: ProgramListQuery): {
    readonly total: number;
    readonly programs: readonly ProgramEntry[];
  } {
    const { total, programs } = this.cell.programs.list(robotId, offset, limit);
    return {
      total,
      programs: programs.map((program) => this.#entry(program)),
    };
  }

  #entry(program: ProgramState): ProgramEntry {
    const { id } = program.document;
    return { program, runCount: this.runs.programRunCount(id), cells: this.cell.cellsOf(id) };
  }

  /** The components that producers put, sorted by key. */
  components(): ComponentRow[] {
    return [...this.cell.components.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Undefined for an unknown delivery. @throws StorageError when its stored data is damaged or missing */
  async delivery(id: string): Promise<DeliveryContent | undefined> {
    const row = this.deliveries.row(id);
    return row && this.#deliveryRecords.content(row);
  }

  /**
   * A page of these deliveries, in their order: as many as `LIMITS.deliveriesPageBytes` allows, and at least one if there is one.
   *
   * @param toBytes makes the bytes that are kept of each
   * @param throwIfCancelled ends the reading by throwing, when nobody waits for the page any more
   * @throws StorageError when the stored data of a delivery is damaged or missing
   */
  listDeliveries(
    rows: readonly DeliveryRow[],
    toBytes: (delivery: Delivery, payload: string) => Uint8Array,
    throwIfCancelled: () => void = () => {},
  ): Promise<Uint8Array[]> {
    return this.#deliveryRecords.page(rows, toBytes, throwIfCancelled);
  }

  /** The deliveries that a resend is to attempt: choose-deliveries.ts. */
  chooseDeliveries(webhook: Webhook, query: ResendQuery, most: number, giveWay: GiveWay) {
    return chooseDeliveries(this.#tables, webhook, query, most, giveWay);
  }

  /** The deliveries of a run, in the order they began. */
  deliveriesOfRun(run: EmittingRun): Promise<Delivery[]> {
    return this.#deliveryRecords.ofRun(run);
  }

  /** Undefined for an unknown run. */
  async #emitted(id: string): Promise<readonly EmittedEvent[] | undefined> {
    const ordinal = this.runs.ordinal(id);
    if (ordinal < 0) return undefined;
    const stored = this.#storedRun(ordinal);
    return stored === undefined ? (this.#activeRuns.state(id).emitted ?? []) : this.#records.emitted(stored);
  }

  #state(ordinal: number): Promise<RunState> | RunState {
    const stored = this.#storedRun(ordinal);
    return stored === undefined ? this.#activeRuns.state(this.runs.id(ordinal)) : this.#records.state(stored);
  }

  /** Undefined while the run has not ended. */
  #storedRun(ordinal: number): StoredRun | undefined {
    const location = this.runs.location(ordinal);
    return (
      location && {
        id: this.runs.id(ordinal),
        ordinal,
        updatedAtUs: this.runs.updatedAtUs(ordinal),
        cell: this.runs.cell(ordinal),
        location,
      }
    );
  }
}
