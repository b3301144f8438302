/**
 * The view: what the interface answers, folded from durable records and from nothing else. It lives in the front's thread and is
 * handed every batch that the log commits, at open and live alike.
 *
 * In memory are the indexes over all runs (view-runs.ts; some 120 bytes a run), the states of the runs that have not ended,
 * programs, health rows and the cell's identity. Of an ended run the rest is read from its consolidated record when asked for: its
 * summary from the index section, its state from the body.
 *
 * Every method answers from one state: what it finds is fixed before its first read of the log, and records are never changed. Compaction
 * moves them, or drops one that a later record of the run has replaced: who looked for it there finds the run's record as it is now.
 */
import type { FrameState } from "../../core/capture/capture.js";
import type { ComponentRow } from "../../core/health.js";
import { uuidV7TimeUs } from "../../core/identifiers.js";
import { LIMITS } from "../../core/limits.js";
import type { CellChange, CellIdentity } from "../../core/link/change.js";
import type { ProgramState } from "../../core/run/program.js";
import { type RunState, type RunStatus, type RunSummary, summarizeRun } from "../../core/run/run-state.js";
import type { Delivery } from "../../core/webhook/delivery.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import type { Webhook } from "../../core/webhook/webhook.js";
import type { SegmentMoves } from "../compaction/segment-moves.js";
import {
  type CommittedBatch,
  forEachRecord,
  type LogRecord,
  type RecordLocation,
  stepThroughRecords,
} from "../log/log-batch.js";
import { decodeChanges, endedSummary } from "../records/change-record.js";
import { type DeliveryContent, DeliveryRecords, type EmittingRun } from "../records/delivery-records.js";
import { packValues, unpackValues } from "../records/packed-values.js";
import { decodeIndex, deliveryPart, isKnownRecordType, RECORD_TYPE } from "../records/record-index.js";
import type { SnapshotSink, SnapshotSource } from "../snapshot/snapshot-format.js";
import { ActiveRuns } from "./active-runs.js";
import { type GiveWay, RunRecords, type RunRecordsOptions, type StoredRun, summaryJson } from "./run-records.js";
import { type DeliveryRow, ViewDeliveries } from "./view-deliveries.js";
import { ViewPrograms } from "./view-programs.js";
import { type RunListQuery, ViewRuns } from "./view-runs.js";
import { ViewWebhooks } from "./view-webhooks.js";

export type { RunListQuery } from "./view-runs.js";

/** What is known of a run without reading it. */
export interface RunHead {
  readonly id: string;
  readonly status: RunStatus;
  /** Unique to each state of each run: with the id and `deliveryChanges`, it names the bytes of an answer. */
  readonly updatedAtUs: number;
}

/** A page of list entries that has still to be read. */
export interface RunPage {
  readonly total: number;
  /** Of the records to read. */
  readonly unreadBytes: number;
  /** Of the other entries, roughly. */
  readonly knownBytes: number;
  /** @param giveWay for a large page */
  read(giveWay?: GiveWay): Promise<ReadRunPage>;
}

export interface ReadRunPage {
  readonly runs: readonly Uint8Array[];
  /** False: of an entry there is only what the indexes know, because its record cannot be read. */
  readonly isWhole: boolean;
}

/** What a list entry says as its error message when only the indexes know the run. */
const DAMAGED_RECORD =
  "the run's stored record is damaged: of this entry only ids, status and updated_at can be relied on";

/** How long a live batch may keep the thread in one go: a request that comes meanwhile waits no longer for it. */
const SLICE_MS = 0.2;

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
  readonly #runs = new ViewRuns();
  readonly #records: RunRecords;
  readonly #activeRuns = new ActiveRuns();
  readonly #programs = new ViewPrograms();
  readonly #components = new Map<string, ComponentRow>();
  readonly #webhooks = new ViewWebhooks();
  readonly #deliveries = new ViewDeliveries();
  readonly #deliveryRecords: DeliveryRecords;
  #cell: CellIdentity = { kioskSerialNumber: null, unitSystem: "metric" };
  #appliedSequence = 0;
  /** When the slice of live batches under way is over. */
  #sliceEndMs = 0;
  #skippedRecords = 0;
  /** The store is open: what comes is of now. */
  #isLive = false;
  #runsVersion = 0;
  #changes = 0;

  constructor(options: RunRecordsOptions) {
    this.#records = new RunRecords(options, (id) => this.#runs.locationOf(id));
    this.#deliveryRecords = new DeliveryRecords(options.reader, this.#deliveries, (id) => this.#emitted(id));
  }

  /** The last record that the answers include; 0 before the first. */
  get appliedSequence(): number {
    return this.#appliedSequence;
  }

  /** Records that do not fit what came before them; above 0 only after damage to the log. */
  get skippedRecords(): number {
    return this.#skippedRecords + this.#activeRuns.skippedRecords;
  }

  /** Another number whenever `listRuns` might answer something else. */
  get runsVersion(): number {
    return this.#runsVersion;
  }

  /** Another number whenever any answer might be another: while it stays the same, all that was read still holds. */
  get changes(): number {
    return this.#changes;
  }

  /** How many runs there are. */
  get runCount(): number {
    return this.#runs.size;
  }

  /** Bytes of the indexes over all runs. */
  get indexBytes(): number {
    return this.#runs.bytesUsed;
  }

  /** Takes the log's next batch, at open and live alike; nothing of it is kept by reference. */
  applyBatch(batch: Pick<CommittedBatch, "bytes" | "segmentBase" | "offset" | "lastSequence">): void {
    forEachRecord(batch, (record, location) => {
      this.#apply(record, location);
      this.#deliveries.beginAll();
    });
    this.#appliedSequence = batch.lastSequence;
  }

  /**
   * As `applyBatch`, for a batch of any size while others want the thread: gives way after each slice of time. Between slices the
   * view shows the records up to there, as it would had they come one by one. The next batch must wait for this one; when many
   * small ones have gathered, they share a slice.
   *
   * @param giveWay resolves when the others have had their turn
   */
  async applyBatchInSlices(
    batch: Parameters<View["applyBatch"]>[0],
    giveWay: () => Promise<void>,
    sliceMs = SLICE_MS,
  ): Promise<void> {
    for (const _ of stepThroughRecords(batch, (record, location) => this.#apply(record, location))) {
      do {
        if (performance.now() < this.#sliceEndMs) continue;
        await giveWay();
        this.#sliceEndMs = performance.now() + sliceMs;
      } while (this.#deliveries.beginSome());
    }
    this.#appliedSequence = batch.lastSequence;
  }

  /**
   * Takes over where compaction has moved records to, giving way after each slice of time. Until it resolves the reader must have the old
   * file too: some runs are looked for there still.
   */
  async applyMoves(moves: SegmentMoves, giveWay: () => Promise<void>, sliceMs = SLICE_MS): Promise<void> {
    for (const _ of this.#stepThroughMoves(moves)) {
      if (performance.now() < this.#sliceEndMs) continue;
      await giveWay();
      this.#sliceEndMs = performance.now() + sliceMs;
    }
  }

  *#stepThroughMoves(moves: SegmentMoves): Generator<void, void> {
    yield* this.#runs.stepThroughMoves(moves);
    yield* this.#deliveries.stepThroughMoves(moves);
  }

  /**
   * Ends the opening of a store: all that it held has been applied. Until then, runs that have not ended are not decoded, so that lists
   * know no quality report of them, and runs known only by a late consolidated record are not listed.
   */
  finishOpening(): void {
    this.#isLive = true;
    this.#runsVersion++;
    this.#changes++;
    this.#runs.admitLateRuns();
    this.#records.ordinalsChanged();
    this.#activeRuns.foldEagerly();
    for (const id of this.#activeRuns.ids())
      this.#runs.judge(this.#runs.ordinal(id), this.#activeRuns.qualityStatus(id));
    this.#deliveries.endPauses();
  }

  /** From now on nobody waits for the next attempts of deliveries: none is told as due, whatever records come. */
  endPausesForGood(): void {
    this.#changes++;
    this.#deliveries.endPausesForGood();
  }

  /** Writes its sections of a snapshot. Only of a view that is being opened, with records up to a place in the log. */
  async writeSnapshot(sink: SnapshotSink): Promise<void> {
    this.#runs.admitLateRuns();
    this.#records.ordinalsChanged();
    await this.#runs.writeSnapshot(sink);
    await this.#programs.writeSnapshot(sink);
    await sink.write("viewCell", packValues([this.#cell, ...this.#components.values()]));
    await this.#activeRuns.writeSnapshot(sink);
    await this.#webhooks.writeSnapshot(sink);
    await this.#deliveries.writeSnapshot(sink);
  }

  /**
   * Takes what `writeSnapshot` wrote; the records behind it come next. Of no use after an error: it may hold a part.
   *
   * @param sequence the last record that is in the snapshot
   * @param moves what compaction has moved since
   * @throws {SnapshotError}
   */
  async loadSnapshot(source: SnapshotSource, sequence: number, moves: readonly SegmentMoves[]): Promise<void> {
    this.#runsVersion++;
    this.#changes++;
    await this.#runs.loadSnapshot(source);
    await this.#programs.loadSnapshot(source);
    const [cell, ...components] = unpackValues(await source.read("viewCell"));
    this.#cell = cell as CellIdentity;
    for (const row of components as ComponentRow[]) this.#components.set(row.key, row);
    await this.#activeRuns.loadSnapshot(source);
    await this.#webhooks.loadSnapshot(source);
    await this.#deliveries.loadSnapshot(source);
    for (const moved of moves) for (const _ of this.#stepThroughMoves(moved));
    this.#appliedSequence = sequence;
  }

  /** Undefined for an unknown run. O(log n), reads nothing. */
  runHead(id: string): RunHead | undefined {
    const ordinal = this.#runs.ordinal(id);
    if (ordinal < 0) return undefined;
    return {
      id,
      status: this.#runs.status(ordinal),
      updatedAtUs: this.#runs.updatedAtUs(ordinal),
    };
  }

  /**
   * A run's whole state; undefined for an unknown run. That of a run that has not ended changes in place with the next batch:
   * make the answer of it before the next await. It is never to be changed by the caller.
   */
  async run(id: string): Promise<RunState | undefined> {
    const ordinal = this.#runs.ordinal(id);
    return ordinal < 0 ? undefined : this.#state(ordinal);
  }

  /** The newest run that is running or finalizing; as `run`. */
  activeRun(): RunState | undefined {
    const ordinal = this.#runs.newestActive();
    return ordinal === undefined ? undefined : this.#activeRuns.state(this.#runs.id(ordinal));
  }

  /** A frame with its run; undefined for an unknown frame; as `run`. */
  async frame(frameId: string): Promise<{ readonly run: RunState; readonly frame: FrameState } | undefined> {
    const ordinal = this.#runs.runOfFrame(frameId);
    if (ordinal === undefined) return undefined;
    const run = await this.#state(ordinal);
    const frame = run.frames.find((one) => one.id === frameId);
    return frame === undefined ? undefined : { run, frame };
  }

  /** Id of a frame's run; undefined for an unknown frame. Reads nothing. */
  runOfFrame(frameId: string): string | undefined {
    const ordinal = this.#runs.runOfFrame(frameId);
    return ordinal === undefined ? undefined : this.#runs.id(ordinal);
  }

  /**
   * Bytes of a run's document as it is stored, or at most would be: how much work an answer about it may be. 0 for an unknown run. Reads
   * nothing.
   */
  documentBytes(id: string): number {
    const ordinal = this.#runs.ordinal(id);
    if (ordinal < 0) return 0;
    return this.#runs.location(ordinal)?.length ?? this.#activeRuns.state(id).documentBytes;
  }

  hasEnded(id: string): boolean {
    const ordinal = this.#runs.ordinal(id);
    return ordinal >= 0 && this.#runs.location(ordinal) !== undefined;
  }

  /** The body of an ended run's record, which the caller may give away; undefined while the run has not ended. */
  storedBody(id: string): Promise<Uint8Array> | undefined {
    const ordinal = this.#runs.ordinal(id);
    const stored = ordinal < 0 ? undefined : this.#storedRun(ordinal);
    return stored && this.#records.body(stored);
  }

  /** As `runPage`, read. */
  async listRuns(query: RunListQuery, baseUrl: string): Promise<ReadRunPage & { readonly total: number }> {
    const page = this.runPage(query, baseUrl);
    return { total: page.total, ...(await page.read()) };
  }

  /**
   * A page of list entries, newest first, each as the UTF-8 JSON of a ProgramRunSummaryResponse; `total` counts all that match. What it
   * shows is fixed by this call.
   * @param baseUrl as in `runResponse`.
   */
  runPage(query: RunListQuery, baseUrl: string): RunPage {
    const { total, ordinals } = this.#runs.query(query);
    const unread: StoredRun[] = [];
    let unreadBytes = 0;
    let knownBytes = 0;
    const entries = ordinals.map((ordinal) => {
      const location = this.#runs.location(ordinal);
      if (location === undefined) {
        const run = this.#activeRuns.state(this.#runs.id(ordinal));
        knownBytes += Math.min(run.documentBytes, LIMITS.runMetadataBytes);
        return summarizeRun(run, this.#runs.qualityStatus(ordinal));
      }
      const updatedAtUs = this.#runs.updatedAtUs(ordinal);
      const cached = this.#records.cachedSummaryJson(ordinal, updatedAtUs, baseUrl);
      knownBytes += cached?.length ?? 0;
      if (cached !== undefined) return cached;
      unreadBytes += location.length;
      unread.push({ id: this.#runs.id(ordinal), ordinal, updatedAtUs, location });
      return undefined;
    });
    const read = async (giveWay?: GiveWay): Promise<ReadRunPage> => {
      const found = unread.length === 0 ? [] : await this.#records.readSummariesJson(unread, baseUrl, giveWay);
      let next = 0;
      const runs: Uint8Array[] = [];
      for (const [at, entry] of entries.entries()) {
        const known = entry ?? found[next++] ?? this.#knownSummary(ordinals[at]!);
        runs.push(known instanceof Uint8Array ? known : summaryJson(known, baseUrl));
        const turn = giveWay?.();
        if (turn !== undefined) await turn;
      }
      return { runs, isWhole: !found.includes(undefined) };
    };
    return { total, unreadBytes, knownBytes, read };
  }

  /** The list entry of a run whose consolidated record cannot be read: what the indexes know, and why there is no more. */
  #knownSummary(ordinal: number): RunSummary {
    const id = this.#runs.id(ordinal);
    const { programId, serialNumber, timeUs } = this.#runs.entry(ordinal);
    return {
      id,
      programId,
      programName: this.#programs.get(programId)?.document.name ?? "",
      status: this.#runs.status(ordinal),
      qualityStatus: this.#runs.qualityStatus(ordinal),
      serialNumber,
      revision: 1,
      metadata: null,
      createdAtUs: uuidV7TimeUs(id),
      updatedAtUs: timeUs,
      startedAtUs: null,
      completedAtUs: null,
      errorMessage: DAMAGED_RECORD,
      progress: { totalSteps: 0, completedSteps: 0, currentStep: null },
    };
  }

  /** Undefined for an unknown program and for a deleted one. */
  program(id: string): ProgramEntry | undefined {
    const program = this.#programs.get(id);
    return program && { program, runCount: this.#runs.programRunCount(id) };
  }

  /** True also for a deleted program, whose runs stay listed. */
  programEverExisted(id: string): boolean {
    return this.#programs.everExisted(id);
  }

  /** Newest first; `total` counts all that match. */
  listPrograms({ robotId, offset, limit }: ProgramListQuery): {
    readonly total: number;
    readonly programs: readonly ProgramEntry[];
  } {
    const { total, programs } = this.#programs.list(robotId, offset, limit);
    return {
      total,
      programs: programs.map((program) => ({
        program,
        runCount: this.#runs.programRunCount(program.document.id),
      })),
    };
  }

  /** What producers put, by key. */
  components(): ComponentRow[] {
    return [...this.#components.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  cell(): CellIdentity {
    return this.#cell;
  }

  /** Undefined when unknown or deleted. */
  webhook(id: string): Webhook | undefined {
    return this.#webhooks.get(id);
  }

  /** True also for a deleted webhook, whose deliveries stay listed. */
  webhookEverExisted(id: string): boolean {
    return this.#webhooks.everExisted(id);
  }

  /** Oldest first. */
  listWebhooks(): Webhook[] {
    return this.#webhooks.list();
  }

  /** Also of a deleted one. */
  webhookName(id: string): string {
    return this.#webhooks.name(id);
  }

  /** What is known of a delivery without reading it; undefined for an unknown one. */
  deliveryRow(id: string): DeliveryRow | undefined {
    return this.#deliveries.row(id);
  }

  /** Undefined for an unknown delivery. @throws StorageError when what is stored of it is damaged or missing */
  async delivery(id: string): Promise<DeliveryContent | undefined> {
    const row = this.#deliveries.row(id);
    return row && this.#deliveryRecords.content(row);
  }

  /**
   * Of a webhook, deleted or not, newest first: as many as `limit` and `LIMITS.deliveriesPageBytes` allow, one at least where there is one.
   * @param beforeUs only those created before; null: all
   * @param toBytes what is kept of each
   * @param throwIfCancelled ends the reading, by what it throws, when nobody waits for the page any more
   * @throws StorageError when what is stored of one is damaged or missing
   */
  listDeliveries(
    webhookId: string,
    beforeUs: number | null,
    limit: number,
    toBytes: (delivery: Delivery, payload: string) => Uint8Array,
    throwIfCancelled: () => void = () => {},
  ): Promise<Uint8Array[]> {
    const rows = this.#deliveries.ofWebhook(webhookId, beforeUs, limit);
    return this.#deliveryRecords.page(rows, toBytes, throwIfCancelled);
  }

  /** How often the name of any webhook has changed since the store was opened. */
  get webhookRenames(): number {
    return this.#webhooks.renames;
  }

  /** How often a run's deliveries have changed since the store was opened: they leave its updated_at as it is. */
  deliveryChanges(runId: string): number {
    return this.#deliveries.changesOf(runId);
  }

  /** Of a run, in the order they began. */
  deliveriesOfRun(run: EmittingRun): Promise<Delivery[]> {
    return this.#deliveryRecords.ofRun(run);
  }

  /** Undefined for an unknown run. */
  async #emitted(id: string): Promise<readonly EmittedEvent[] | undefined> {
    const ordinal = this.#runs.ordinal(id);
    if (ordinal < 0) return undefined;
    const stored = this.#storedRun(ordinal);
    return stored === undefined ? (this.#activeRuns.state(id).emitted ?? []) : this.#records.emitted(stored);
  }

  #state(ordinal: number): Promise<RunState> | RunState {
    const stored = this.#storedRun(ordinal);
    return stored === undefined ? this.#activeRuns.state(this.#runs.id(ordinal)) : this.#records.state(stored);
  }

  /** Undefined while the run has not ended. */
  #storedRun(ordinal: number): StoredRun | undefined {
    const location = this.#runs.location(ordinal);
    return location && { id: this.#runs.id(ordinal), ordinal, updatedAtUs: this.#runs.updatedAtUs(ordinal), location };
  }

  #apply(record: LogRecord, location: RecordLocation): void {
    const { type } = record;
    if (!isKnownRecordType(type)) return;
    // Most of what comes while webhooks are served.
    if (type === RECORD_TYPE.delivery) {
      this.#changes++;
      this.#deliveries.put(deliveryPart(record.index), location);
      return;
    }
    const index = decodeIndex(type, record.index);
    // No answer shows it.
    if (index.type === RECORD_TYPE.refusal) return;
    this.#changes++;
    switch (index.type) {
      case RECORD_TYPE.webhook:
        this.#webhooks.apply(index.shown);
        return;
      case RECORD_TYPE.cellChanges:
        this.#runsVersion++;
        for (const change of decodeChanges(type, record.body))
          this.#applyCellChange(change as CellChange, record.timeUs);
        return;
      case RECORD_TYPE.runCreated:
        this.#runsVersion++;
        if (this.#runs.create({ ...index.summary, qualityStatus: null }))
          this.#activeRuns.create(index.summary.id, record);
        else this.#skippedRecords++;
        return;
      case RECORD_TYPE.runDelta: {
        this.#runsVersion++;
        const ordinal = this.#runs.ordinal(index.runId);
        // A run that is not there, or has ended, is left alone; the active runs count the record as skipped.
        this.#activeRuns.add(index.runId, record);
        if (ordinal >= 0 && this.#runs.location(ordinal) === undefined) {
          this.#runs.update(ordinal, index.statusAfter, this.#activeRuns.qualityStatus(index.runId), record.timeUs);
          if (index.frameId !== null) this.#runs.addFrame(ordinal, index.frameId);
        }
        if (index.events !== undefined) this.#deliveries.begin(index.runId, index.events);
        return;
      }
      case RECORD_TYPE.runEnded: {
        this.#runsVersion++;
        const summary = endedSummary(index.summary, record.body);
        const ordinal = this.#runs.end(summary, index.frameIds, location);
        this.#activeRuns.delete(summary.id);
        if (this.#isLive && ordinal >= 0) this.#records.ended(ordinal, summary);
        if (index.events !== undefined) this.#deliveries.begin(summary.id, index.events);
        return;
      }
    }
  }

  #applyCellChange(change: CellChange, timeUs: number): void {
    switch (change.kind) {
      case "cell_put":
        this.#cell = change.cell;
        return;
      case "component_put":
        this.#components.set(change.row.key, change.row);
        return;
      case "component_deleted":
        this.#components.delete(change.key);
        return;
      case "program_put":
        this.#programs.put(change.program, timeUs);
        return;
      case "program_deleted":
        this.#programs.delete(change.id);
        return;
      case "producer_forgotten":
        return;
    }
  }
}
