/**
 * All that the recorder knows, a fold of the log: enough to decide every message without a look at the disk.
 *
 * | part | bounded by | bytes |
 * |---|---|---|
 * | runs: id, and whether it has ended | every run stays known: its id may not come again | 24 a run, 31 to 44 where ids do not ascend |
 * | frames: id and run | every frame, as above | likewise |
 * | serial numbers with their last revision | every serial number, exact | 20 and its text |
 * | active runs, whole | `LIMITS.activeRuns`, `LIMITS.activeRunBytes` in all | their documents |
 * | ended runs whose captures are still processed, whole | `LIMITS.processedRunBytes`: beyond, captures wait | their documents |
 * | ended runs that keep captures (without retention, only while a store is opened) | the captures on the disk | 48 each |
 * | programs | `LIMITS.programs` | their documents |
 * | components | `LIMITS.components` | some 300 each |
 * | webhooks | `LIMITS.webhooks` | their settings and secrets |
 * | deliveries that have not come to their end | what receivers do not take in time | some 500 each |
 * | resends | the deliveries of those that are running: `LIMITS.resendDeliveries` each, one for each webhook | 80 a delivery |
 * | producers, instances, refusals | `LIMITS.producers`, `LIMITS.instances`, `LIMITS.refusalBytes` | see producer-table.ts |
 *
 * Ended run with a serial number of its own and one frame: some 80 bytes, 80 MB for a million.
 *
 * A segment's opening state carries what no later record says again: producers with their refusals, the clock, the last
 * run id. Last revisions are not in it: a million would be 30 MB in each 64 MB. Every run keeps one record for ever,
 * and its index section names serial number and revision.
 */
import { isProcessingOpen } from "../../core/capture/artefact.js";
import { readUuid, uuidToBytes } from "../../core/identifiers.js";
import type { CellChange, CellIdentity, Change, RunChange } from "../../core/link/change.js";
import type { DecisionContext } from "../../core/link/decision-context.js";
import type { Refusal } from "../../core/link/refusal.js";
import type { ProgramDocument } from "../../core/run/program.js";
import { foldRun } from "../../core/run/run-fold.js";
import type { RunState } from "../../core/run/run-state.js";
import type { Resend } from "../../core/webhook/resend.js";
import type { WebhookChange } from "../../core/webhook/webhook-change.js";
import { CaptureIndex, keptCaptures } from "../../storage/captures/capture-index.js";
import { TextTable } from "../../storage/columns/text-table.js";
import { TypedColumn } from "../../storage/columns/typed-column.js";
import { UuidTable } from "../../storage/columns/uuid-table.js";
import type { LogRecord, RecordLocation } from "../../storage/log/committed-batch.js";
import type { RecordContent } from "../../storage/log/log-options.js";
import { LOG_RECORD_TYPE } from "../../storage/log/record-format.js";
import { segmentName } from "../../storage/log/segment.js";
import { decodeRefusal } from "../../storage/records/change-record.js";
import { UUID_BYTES } from "../../storage/records/index-layout.js";
import type { IndexedRun } from "../../storage/records/indexed-run.js";
import { type FoldedState, foldRecord, type IndexedDelta, type IndexedEnd } from "../../storage/records/record-fold.js";
import {
  decodeIndex,
  isKnownRecordType,
  type Origin,
  RECORD_TYPE,
  RecordDecodeError,
} from "../../storage/records/record-index.js";
import { decodeDelivery, type WebhookIndex } from "../../storage/records/webhook-record.js";
import { CellState } from "../../storage/view/cell-state.js";
import { WebhookState } from "../webhooks/deliveries/webhook-state.js";
import { decodeOpeningState, encodeOpeningState } from "./opening-state.js";
import { ProducerTable } from "./producers/producer-table.js";
import { type DamagedRun, UnfoldedRuns, undecodable } from "./unfolded-runs.js";

/** Values of the table of runs. */
const ACTIVE = 0;
const ENDED = 1;

interface ActiveRun {
  state: RunState;
  /** Who wrote to it last: while this producer stays away, the run is an orphan. */
  lastProducer: string | null;
}

export class RecorderState implements DecisionContext, FoldedState {
  readonly producers = new ProducerTable();
  readonly captures: CaptureIndex;
  readonly webhooks = new WebhookState();
  readonly #runs = new UuidTable();
  /** Frame id → the run's entry in `#runs`. */
  readonly #frames = new UuidTable();
  readonly #serialNumbers = new TextTable();
  readonly #lastRevisions = new TypedColumn(Uint32Array);
  readonly #active = new Map<string, ActiveRun>();
  /** Runs that have ended while something is still to be made of their captures. */
  readonly #processed = new Map<string, RunState>();
  #processedDocumentBytes = 0;
  readonly #cell = new CellState();
  /** The 16 bytes of the highest run id; zeros before the first run. */
  readonly #lastRunId = new Uint8Array(16);
  #lastTimeUs = 0;
  #activeDocumentBytes = 0;
  /** While the log is read. */
  #unfolded: UnfoldedRuns | undefined = new UnfoldedRuns();

  constructor(captures = new CaptureIndex({ keepsRuns: false })) {
    this.captures = captures;
  }

  cell(): CellIdentity {
    return this.#cell.identity;
  }

  hasComponent(key: string): boolean {
    return this.#cell.components.has(key);
  }

  get componentCount(): number {
    return this.#cell.components.size;
  }

  program(id: string): ProgramDocument | undefined {
    return this.#cell.programs.get(id)?.document;
  }

  get programCount(): number {
    return this.#cell.programs.size;
  }

  get programBytes(): number {
    return this.#cell.programs.documentBytes;
  }

  get lastRunId(): string | null {
    return this.#lastRunId.every((byte) => byte === 0) ? null : readUuid(this.#lastRunId);
  }

  activeRun(id: string): RunState | undefined {
    return this.#active.get(id)?.state;
  }

  get activeRunCount(): number {
    return this.#active.size;
  }

  runHasEnded(id: string): boolean {
    return (this.#runs.get(id) ?? ACTIVE) !== ACTIVE;
  }

  runOfFrame(frameId: string): string | undefined {
    const entry = this.#frames.get(frameId);
    return entry === undefined ? undefined : this.#runs.idAt(entry);
  }

  nextRevision(serialNumber: string): number {
    const at = this.#serialNumbers.find(serialNumber);
    return at < 0 ? 1 : this.#lastRevisions.get(at) + 1;
  }

  /** The largest time of any record since the clock was reset: the clock goes on above it. */
  get lastTimeUs(): number {
    return this.#lastTimeUs;
  }

  resetClock(timeUs: number): void {
    this.#lastTimeUs = timeUs;
  }

  get runCount(): number {
    return this.#runs.size;
  }

  activeRuns(): Iterable<RunState> {
    return [...this.#active.values()].map((run) => run.state);
  }

  /** A run that has ended while something is still to be made of its captures. */
  processedRun(id: string): RunState | undefined {
    return this.#processed.get(id);
  }

  processedRuns(): Iterable<RunState> {
    return [...this.#processed.values()];
  }

  /** The documents of these runs together. */
  get processedDocumentBytes(): number {
    return this.#processedDocumentBytes;
  }

  /** Runs that have not ended and that this producer wrote to last. */
  runsLastWrittenBy(producer: string): RunState[] {
    const runs: RunState[] = [];
    for (const run of this.#active.values()) if (run.lastProducer === producer) runs.push(run.state);
    return runs;
  }

  /** Producers that wrote last to some run that has not ended. */
  lastWriters(): Set<string> {
    const names = new Set<string>();
    for (const run of this.#active.values()) if (run.lastProducer !== null) names.add(run.lastProducer);
    return names;
  }

  /** The documents of all active runs together, at most (`RunState.documentBytes`). */
  get activeDocumentBytes(): number {
    return this.#activeDocumentBytes;
  }

  /** Takes in what was just appended: the changes of one record, in order. */
  apply(origin: Origin | null, changes: readonly Change[], timeUs: number): void {
    this.#lastTimeUs = timeUs;
    if (origin !== null) this.producers.take(origin, timeUs, null, false);
    for (const change of changes) {
      this.#applyChange(change, timeUs, origin?.producer ?? null);
      // This is not part of the fold: at a replay, the fold comes after the records of the deliveries, and would begin them again.
      if (change.kind === "run_started" && change.event !== undefined)
        this.webhooks.begin(change.runId, [change.event]);
      else if (change.kind === "run_ended") this.webhooks.begin(change.runId, change.run.emitted ?? []);
    }
  }

  applyRefusal(origin: Origin, refusal: Refusal, timeUs: number): void {
    this.#lastTimeUs = timeUs;
    this.producers.take(origin, timeUs, refusal, false);
  }

  applyWebhookChange(change: WebhookChange, timeUs: number): void {
    this.#lastTimeUs = timeUs;
    this.webhooks.apply(change);
  }

  #applyChange(change: Change, timeUs: number, producer: string | null): void {
    if (!("runId" in change)) this.cellChange(change, timeUs);
    else if (change.kind === "run_ended") this.#endRun(change.run);
    else this.#changeRun(change, timeUs, producer);
  }

  #changeRun(change: Exclude<RunChange, { kind: "run_ended" }>, timeUs: number, producer: string | null): void {
    const before = this.#active.get(change.runId);
    const bytesBefore = before?.state.documentBytes ?? 0;
    const state = foldRun(before?.state, change, timeUs);
    this.#activeDocumentBytes += state.documentBytes - bytesBefore;
    if (change.kind === "run_created") {
      this.#addRun(uuidToBytes(state.id), 0);
      if (state.serialNumber !== null)
        this.#noteRevision(this.#serialNumbers.findOrAdd(state.serialNumber), state.revision);
      this.#active.set(state.id, { state, lastProducer: producer });
    } else if (before !== undefined && producer !== null) {
      before.lastProducer = producer;
    }
    if (change.kind === "frame_begun") this.#frames.set(change.frame.id, this.#runs.entryOf(change.runId));
  }

  /** Notes the run whose id begins at `at`; returns its entry. A new one is `ACTIVE`, the value of a new entry. */
  #addRun(bytes: Uint8Array, at: number): number {
    this.#noteLastRun(bytes, at);
    return this.#runs.enterBytes(bytes, at);
  }

  #noteLastRun(bytes: Uint8Array, at: number): void {
    const last = this.#lastRunId;
    let nth = 0;
    while (nth < last.length && bytes[at + nth] === last[nth]) nth++;
    if (nth === last.length || bytes[at + nth]! < last[nth]!) return;
    for (; nth < last.length; nth++) last[nth] = bytes[at + nth]!;
  }

  #endRun(run: RunState): void {
    const { id } = run;
    // A run that has ended never becomes active again.
    this.#runs.setValueAt(this.#addRun(uuidToBytes(id), 0), ENDED);
    this.#activeDocumentBytes -= this.#active.get(id)?.state.documentBytes ?? 0;
    this.#active.delete(id);
    this.#processedDocumentBytes -= this.#processed.get(id)?.documentBytes ?? 0;
    this.#processed.delete(id);
    if (!isProcessingOpen(run)) return;
    this.#processed.set(id, run);
    this.#processedDocumentBytes += run.documentBytes;
  }

  #noteIndexedRevision(run: IndexedRun): void {
    const { bytes, serialNumberAt, serialNumberEnd } = run;
    if (!run.hasSerialNumber) return;
    this.#noteRevision(this.#serialNumbers.findOrAddBytes(bytes, serialNumberAt, serialNumberEnd), run.revision);
  }

  /** @param at the number of the serial number */
  #noteRevision(at: number, revision: number): void {
    if (at === this.#lastRevisions.length) this.#lastRevisions.push(revision);
    else if (revision > this.#lastRevisions.get(at)) this.#lastRevisions.set(at, revision);
  }

  /** What a new segment says about everything before it. */
  openingState(): RecordContent {
    const body = encodeOpeningState({
      lastTimeUs: this.#lastTimeUs,
      lastRunId: this.lastRunId,
      producers: this.producers.entries(),
    });
    return { index: new Uint8Array(0), body };
  }

  /**
   * Takes in a record that the log held at open. After the last one, `finishReplay`.
   *
   * @param isVerified true for a record of a hint file: it was decoded completely when the file was made
   * @throws StorageError `record_undecodable`
   */
  replay(record: LogRecord, location: RecordLocation, isVerified = false): void {
    try {
      this.#replay(record, location, isVerified);
    } catch (error) {
      if (!(error instanceof RecordDecodeError)) throw error;
      const { segmentBase, offset } = location;
      throw undecodable(`segment ${segmentName(segmentBase)}, offset ${offset}: record ${record.sequence}`, error);
    }
  }

  #replay(record: LogRecord, location: RecordLocation, isVerified: boolean): void {
    if (this.#unfolded === undefined) throw new Error("the replay is over");
    const { type } = record;
    if (type === LOG_RECORD_TYPE.openingState) {
      // A hint file tells only its time. The opening state of the newest segment says the rest.
      if (record.body.length === 0) this.#setClock(record.timeUs);
      else this.#restoreOpeningState(record.body);
      return;
    }
    if (!isKnownRecordType(type)) return;
    this.#lastTimeUs = Math.max(this.#lastTimeUs, record.timeUs);
    if (!isVerified) decodeIndex(type, record.index);
    foldRecord(record, location, this);
  }

  message(origin: Origin, { type, timeUs, body }: LogRecord): void {
    this.producers.take(origin, timeUs, type === RECORD_TYPE.refusal ? decodeRefusal(body) : null, true);
  }

  cellChange(change: CellChange, timeUs: number): void {
    if (change.kind === "producer_forgotten") this.producers.forget(change.name);
    else this.#cell.apply(change, timeUs);
  }

  runCreated(run: IndexedRun, record: LogRecord, origin: Origin | null): void {
    this.#addRun(run.bytes, run.idAt);
    this.#noteIndexedRevision(run);
    this.#unfolded?.keep(run.id, record, origin);
  }

  runDelta({ runId, frameId, events }: IndexedDelta, record: LogRecord, origin: Origin | null): void {
    // This run's creation was lost to damage. It is known, so that its id cannot come again, and closed to every message.
    if (!this.#runs.has(runId)) this.#runs.setValueAt(this.#addRun(uuidToBytes(runId), 0), ENDED);
    if (frameId !== null) this.#frames.set(frameId, this.#runs.entryOf(runId));
    this.#unfolded?.keep(runId, record, origin);
    if (events !== undefined) this.webhooks.begin(runId, events.list());
  }

  runEnded({ run, captures, events }: IndexedEnd, record: LogRecord, location: RecordLocation): void {
    const { bytes } = run;
    const known = this.#runs.size;
    const entry = this.#addRun(bytes, run.idAt);
    this.#runs.setValueAt(entry, ENDED);
    this.#noteIndexedRevision(run);
    // Its earlier records are no longer needed. It is kept whole as long as something is to be made of its captures.
    if (entry < known) this.#unfolded?.delete(run.id);
    if (captures.isOpen) this.#unfolded?.keep(run.id, record, null);
    const frames = this.#frames;
    for (let at = run.framesAt; at < run.end; at += UUID_BYTES) frames.setValueAt(frames.enterBytes(bytes, at), entry);
    if (captures.removedAtUs === null) {
      if (captures.bytes > 0) this.captures.keep(keptCaptures(run, captures, location));
    } else this.captures.removed(run.createdAtUs, run.id, captures.removedAtUs);
    if (events !== undefined) this.webhooks.begin(run.id, events.list());
  }

  webhook(shown: WebhookIndex, { body }: LogRecord): void {
    this.webhooks.replay(shown, body);
  }

  delivery(index: Uint8Array): void {
    this.webhooks.putDelivery(decodeDelivery(index));
  }

  resend(resend: Resend, { body }: LogRecord): void {
    this.webhooks.resends.put(resend, body.slice());
  }

  /** A segment begins at that time. It is less than before if the clock was reset (reset-clock.ts). */
  #setClock(timeUs: number): void {
    this.#lastTimeUs = timeUs;
    this.captures.clockSet(timeUs);
  }

  #restoreOpeningState(body: Uint8Array): void {
    const state = decodeOpeningState(body);
    this.#setClock(state.lastTimeUs);
    if (state.lastRunId !== null) this.#noteLastRun(uuidToBytes(state.lastRunId), 0);
    this.producers.restore(state.producers);
  }

  /**
   * Folds the runs that have not ended, or have captures to be processed. Gives those of which the log has lost
   * some records. Recovery has reported that damage. A run goes on without what was lost. A run whose creation was lost is closed.
   *
   * @throws StorageError `record_undecodable`
   */
  finishReplay(): DamagedRun[] {
    const apply = (change: Change, timeUs: number, producer: string | null) =>
      this.#applyChange(change, timeUs, producer);
    const damaged = this.#unfolded?.fold(apply) ?? [];
    this.#unfolded = undefined;
    this.webhooks.finishReplay();
    return damaged;
  }
}
