/**
 * What the recorder knows, all of it: enough to decide every message without a look at the disk. It is a fold of the log, the same
 * at open (from the index sections, MessagePack only for runs that have not ended) and live.
 *
 * | part | bounded by | bytes |
 * |---|---|---|
 * | runs: id, and whether it has ended | every run stays known: its id may not come again | 25 to 31 a run |
 * | frames: id and run | every frame, as above | 25 to 31 a frame |
 * | serial numbers with their last revision | every serial number, exact | 20 and its text |
 * | active runs, whole | `LIMITS.activeRuns`, `LIMITS.activeRunBytes` in all | their documents |
 * | ended runs whose captures are still processed, whole | `LIMITS.processedRunBytes`: beyond, captures wait | their documents |
 * | ended runs that keep captures (without retention, only while a store is opened) | the captures on the disk | 48 each |
 * | programs | `LIMITS.programs` | their documents |
 * | components | `LIMITS.components` | some 300 each |
 * | webhooks | `LIMITS.webhooks` | their settings and secrets |
 * | deliveries that have not come to their end | what receivers do not take in time | some 500 each |
 * | producers, refusals | `LIMITS.producers`, `LIMITS.refusalsPerProducer`, `LIMITS.refusalBytes` | see producer-table.ts |
 *
 * Ended run with a serial number of its own and one frame: some 90 bytes, 90 MB for a million.
 *
 * A segment's opening state carries what no later record says again: producers with their refusals, the clock, the last run id. Last
 * revisions are not in it: every run keeps one record for ever (its creation until it ends, then the consolidated one), and its
 * index section names serial number and revision. A million serial numbers in each opening state would be 30 MB for each 64 MB.
 */
import { isProcessingOpen } from "../../core/capture/artefact.js";
import type { ComponentRow } from "../../core/health.js";
import { isUuidV7 } from "../../core/identifiers.js";
import { isPlainObject } from "../../core/json/json.js";
import type { CellIdentity, Change } from "../../core/link/change.js";
import type { Refusal } from "../../core/link/refusal.js";
import type { World } from "../../core/link/world.js";
import type { ProgramDocument } from "../../core/run/program.js";
import { foldRun } from "../../core/run/run-fold.js";
import type { RunState } from "../../core/run/run-state.js";
import type { WebhookChange } from "../../core/webhook/webhook-change.js";
import { CaptureIndex, keptCaptures } from "../../storage/captures/capture-index.js";
import { TextTable } from "../../storage/columns/text-table.js";
import { TypedColumn } from "../../storage/columns/typed-column.js";
import { UuidTable } from "../../storage/columns/uuid-table.js";
import type { LogRecord, RecordLocation } from "../../storage/log/log-batch.js";
import type { RecordContent } from "../../storage/log/log-options.js";
import { LOG_RECORD_TYPE } from "../../storage/log/record-format.js";
import { segmentName } from "../../storage/log/segment.js";
import { decodeChanges, decodeRefusal } from "../../storage/records/change-record.js";
import { decodeMessagePack, encodeMessagePack } from "../../storage/records/message-pack.js";
import {
  decodeIndex,
  isKnownRecordType,
  type Origin,
  RECORD_TYPE,
  RecordDecodeError,
  type StoredSummary,
} from "../../storage/records/record-index.js";
import { StorageError } from "../../storage/storage-error.js";
import { WebhookState } from "../webhooks/deliveries/webhook-state.js";
import { isProducerSnapshot, type ProducerSnapshot, ProducerTable } from "./producers/producer-table.js";

const OPENING_STATE_VERSION = 1;
/** Values of the table of runs. */
const ACTIVE = 0;
const ENDED = 1;

interface OpeningState {
  version: number;
  lastTimeUs: number;
  lastRunId: string | null;
  producers: ProducerSnapshot[];
}

interface ActiveRun {
  state: RunState;
  /** Who wrote to it last: while this producer stays away, the run is an orphan. */
  lastProducer: string | null;
}

/**
 * Records of a run that has not ended, kept while the log is read: most runs end in it, and their deltas are never decoded. Of one that has
 * ended with something to be made of its captures, the last.
 */
interface UnfoldedRecord {
  type: number;
  timeUs: number;
  producer: string | null;
  body: Uint8Array;
}

/** @throws RecordDecodeError */
function decodeOpeningState(body: Uint8Array): OpeningState {
  let state: unknown;
  try {
    state = decodeMessagePack(body);
  } catch (error) {
    throw new RecordDecodeError(`the opening state of a segment cannot be decoded as MessagePack: ${String(error)}`);
  }
  if (!isPlainObject(state)) throw new RecordDecodeError("an opening state that is no map");
  const { version, lastTimeUs, lastRunId, producers } = state;
  if (version !== OPENING_STATE_VERSION) {
    throw new RecordDecodeError(
      `opening state of version ${String(version)}: this release reads ${OPENING_STATE_VERSION}`,
    );
  }
  const isWhole =
    Number.isSafeInteger(lastTimeUs) &&
    (lastRunId === null || (typeof lastRunId === "string" && isUuidV7(lastRunId))) &&
    Array.isArray(producers) &&
    producers.every(isProducerSnapshot);
  if (!isWhole) throw new RecordDecodeError("an opening state without clock, last run or producers");
  return state as unknown as OpeningState;
}

function unfolded({ type, timeUs, body }: LogRecord, origin: Origin | null): UnfoldedRecord {
  return { type, timeUs, producer: origin?.producer ?? null, body: body.slice() };
}

export class RecorderState implements World {
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
  readonly #programs = new Map<string, ProgramDocument>();
  readonly #components = new Map<string, ComponentRow>();
  #cell: CellIdentity = { kioskSerialNumber: null, unitSystem: "metric" };
  #lastRunId: string | null = null;
  #lastTimeUs = 0;
  #activeDocumentBytes = 0;
  #unfolded: Map<string, UnfoldedRecord[]> | undefined = new Map();

  constructor(captures = new CaptureIndex({ keepsRuns: false })) {
    this.captures = captures;
  }

  cell(): CellIdentity {
    return this.#cell;
  }

  hasComponent(key: string): boolean {
    return this.#components.has(key);
  }

  get componentCount(): number {
    return this.#components.size;
  }

  program(id: string): ProgramDocument | undefined {
    return this.#programs.get(id);
  }

  get programCount(): number {
    return this.#programs.size;
  }

  get lastRunId(): string | null {
    return this.#lastRunId;
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
      // Not in the fold: that of a replay comes behind the records of the deliveries.
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
        this.#programs.set(change.program.id, change.program);
        return;
      case "program_deleted":
        this.#programs.delete(change.id);
        return;
      case "producer_forgotten":
        this.producers.forget(change.name);
        return;
      case "run_ended":
        this.#endRun(change.run);
        return;
      default: {
        const before = this.#active.get(change.runId);
        const bytesBefore = before?.state.documentBytes ?? 0;
        const state = foldRun(before?.state, change, timeUs);
        this.#activeDocumentBytes += state.documentBytes - bytesBefore;
        if (change.kind === "run_created") {
          this.#addRun(state.id, ACTIVE);
          this.#noteRevision(state.serialNumber, state.revision);
          this.#active.set(state.id, { state, lastProducer: producer });
        } else if (before !== undefined && producer !== null) {
          before.lastProducer = producer;
        }
        if (change.kind === "frame_begun") this.#frames.set(change.frame.id, this.#runs.entryOf(change.runId));
      }
    }
  }

  #addRun(id: string, status: typeof ACTIVE | typeof ENDED): void {
    // Once it has ended it stays so.
    if (!this.runHasEnded(id)) this.#runs.set(id, status);
    if (this.#lastRunId === null || id > this.#lastRunId) this.#lastRunId = id;
  }

  #endRun(run: RunState): void {
    const { id } = run;
    this.#addRun(id, ENDED);
    this.#activeDocumentBytes -= this.#active.get(id)?.state.documentBytes ?? 0;
    this.#active.delete(id);
    this.#processedDocumentBytes -= this.#processed.get(id)?.documentBytes ?? 0;
    this.#processed.delete(id);
    if (!isProcessingOpen(run)) return;
    this.#processed.set(id, run);
    this.#processedDocumentBytes += run.documentBytes;
  }

  #noteRevision(serialNumber: string | null, revision: number): void {
    if (serialNumber === null) return;
    const at = this.#serialNumbers.findOrAdd(serialNumber);
    if (at === this.#lastRevisions.length) this.#lastRevisions.push(revision);
    else if (revision > this.#lastRevisions.get(at)) this.#lastRevisions.set(at, revision);
  }

  /** What a new segment says of everything before it. */
  openingState(): RecordContent {
    const state: OpeningState = {
      version: OPENING_STATE_VERSION,
      lastTimeUs: this.#lastTimeUs,
      lastRunId: this.#lastRunId,
      producers: this.producers.snapshot(),
    };
    return { index: new Uint8Array(0), body: encodeMessagePack(state) };
  }

  /**
   * Takes in a record that the log held at open. After the last one, `finishReplay`.
   * @throws StorageError `record_undecodable`
   */
  replay(record: LogRecord, location: RecordLocation): void {
    try {
      this.#replay(record, location);
    } catch (error) {
      if (!(error instanceof RecordDecodeError)) throw error;
      const { segmentBase, offset } = location;
      throw undecodable(`segment ${segmentName(segmentBase)}, offset ${offset}: record ${record.sequence}`, error);
    }
  }

  #replay(record: LogRecord, location: RecordLocation): void {
    if (this.#unfolded === undefined) throw new Error("the replay is over");
    if (record.type === LOG_RECORD_TYPE.openingState) {
      // A hint tells only its time: the opening state of the newest segment says the rest.
      if (record.body.length === 0) this.#setClock(record.timeUs);
      else this.#restoreOpeningState(record.body);
      return;
    }
    if (!isKnownRecordType(record.type)) return;
    this.#lastTimeUs = Math.max(this.#lastTimeUs, record.timeUs);
    const index = decodeIndex(record.type, record.index);
    const { origin } = index;
    if (origin !== null) {
      const refusal = index.type === RECORD_TYPE.refusal ? decodeRefusal(record.body) : null;
      this.producers.take(origin, record.timeUs, refusal, true);
    }
    switch (index.type) {
      case RECORD_TYPE.refusal:
        return;
      case RECORD_TYPE.cellChanges: {
        const changes = decodeChanges(record.type, record.body);
        for (const change of changes) this.#applyChange(change, record.timeUs, null);
        return;
      }
      case RECORD_TYPE.runCreated:
        this.#replaySummary(index.summary, ACTIVE);
        this.#keepUnfolded(index.summary.id, unfolded(record, origin));
        return;
      case RECORD_TYPE.runEnded: {
        this.#replaySummary(index.summary, ENDED);
        // Its records are needed no more: it stays as a whole as long as something is to be made of its captures.
        if (index.captures.isOpen) this.#unfolded.set(index.summary.id, [unfolded(record, origin)]);
        else this.#unfolded.delete(index.summary.id);
        const entry = this.#runs.entryOf(index.summary.id);
        for (const frameId of index.frameIds) this.#frames.set(frameId, entry);
        const { removedAtUs } = index.captures;
        if (removedAtUs === null) this.captures.keep(keptCaptures(index, location));
        else this.captures.removed(index.summary.createdAtUs, index.summary.id, removedAtUs);
        if (index.events !== undefined) this.webhooks.begin(index.summary.id, index.events.list());
        return;
      }
      case RECORD_TYPE.runDelta:
        // A run whose creation was lost to damage: known, so that its id cannot come again, and closed to every message.
        if (!this.#runs.has(index.runId)) this.#addRun(index.runId, ENDED);
        if (index.frameId !== null) this.#frames.set(index.frameId, this.#runs.entryOf(index.runId));
        this.#keepUnfolded(index.runId, unfolded(record, origin));
        if (index.events !== undefined) this.webhooks.begin(index.runId, index.events.list());
        return;
      case RECORD_TYPE.webhook:
      case RECORD_TYPE.delivery:
        this.webhooks.replay(index, record.body);
        return;
    }
  }

  #replaySummary(summary: StoredSummary, status: typeof ACTIVE | typeof ENDED): void {
    this.#addRun(summary.id, status);
    this.#noteRevision(summary.serialNumber, summary.revision);
  }

  #keepUnfolded(runId: string, record: UnfoldedRecord): void {
    const records = this.#unfolded?.get(runId);
    if (records === undefined) this.#unfolded?.set(runId, [record]);
    else records.push(record);
  }

  /** A segment begins at that time: less than before where the clock was reset (reset-clock.ts). */
  #setClock(timeUs: number): void {
    this.#lastTimeUs = timeUs;
    this.captures.clockSet(timeUs);
  }

  #restoreOpeningState(body: Uint8Array): void {
    const state = decodeOpeningState(body);
    this.#setClock(state.lastTimeUs);
    if (state.lastRunId !== null && (this.#lastRunId === null || state.lastRunId > this.#lastRunId)) {
      this.#lastRunId = state.lastRunId;
    }
    this.producers.restore(state.producers);
  }

  /**
   * Folds the runs that have not ended, or have captures to be processed. Gives those of which the log lost records (damage that recovery has reported): a run goes on
   * without what was lost, and one whose creation was lost is closed.
   * @throws StorageError `record_undecodable`
   */
  finishReplay(): { runId: string; lostChanges: number; message: string }[] {
    const damaged: { runId: string; lostChanges: number; message: string }[] = [];
    for (const [runId, records] of this.#unfolded ?? []) {
      let lostChanges = 0;
      let message = "";
      for (const record of records) {
        for (const change of changesOf(runId, record)) {
          try {
            this.#applyChange(change, record.timeUs, record.producer);
          } catch (error) {
            lostChanges++;
            message = error instanceof Error ? error.message : String(error);
          }
        }
      }
      if (lostChanges > 0) damaged.push({ runId, lostChanges, message });
    }
    this.#unfolded = undefined;
    this.webhooks.finishReplay();
    return damaged;
  }
}

function changesOf(runId: string, { type, body }: UnfoldedRecord): Change[] {
  try {
    return decodeChanges(type, body);
  } catch (error) {
    if (!(error instanceof RecordDecodeError)) throw error;
    throw undecodable(`a record of run ${runId}`, error);
  }
}

/** Its CRCs are right: no damage, but something that no release wrote. To leave it out could be to lose what was acknowledged. */
function undecodable(which: string, error: RecordDecodeError): StorageError {
  return new StorageError("record_undecodable", `${which} cannot be decoded: ${error.message}`);
}
