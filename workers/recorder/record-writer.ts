import { LIMITS } from "../../core/limits.js";
import type { Change, RunEnded } from "../../core/link/change.js";
import { decideMessage } from "../../core/link/decide-message.js";
import { parseCellMessage } from "../../core/link/parse-cell-message.js";
import { type Refusal, RefusedError } from "../../core/link/refusal.js";
import { endRun, type RunEnding } from "../../core/run/run-end.js";
import { withoutCaptures } from "../../core/run/run-files.js";
import { type ArtefactChange, foldRun, withArtefacts } from "../../core/run/run-fold.js";
import { isTerminal, type RunState, type TerminalRunStatus } from "../../core/run/run-state.js";
import type { ServiceClock } from "../../core/service-clock.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import type { RunEventName } from "../../core/webhook/webhook.js";
import type { WebhookChange } from "../../core/webhook/webhook-change.js";
import type { CommittedBatch } from "../../storage/log/committed-batch.js";
import type { Log } from "../../storage/log/log.js";
import { recordLength } from "../../storage/log/record-format.js";
import { encodeChanges, encodeRefusal } from "../../storage/records/change-record.js";
import type { Origin } from "../../storage/records/record-index.js";
import { encodeWebhookChange } from "../../storage/records/webhook-record.js";
import { boundedRefusal } from "../cell-link/bounds/bounded-refusal.js";
import type { IncomingMessage } from "../cell-link/message-intake.js";
import { decodeBody } from "../cell-link/strict-message-pack.js";
import type { MadeArtefact } from "./captures/make-artefact.js";
import { MessagePayload, type PayloadFiles } from "./captures/payload-files.js";
import type { RecorderState } from "./recorder-state.js";
import type { MessageFigures } from "./status/recorder-figures.js";

/** Messages that bring a run to its end. Small ones are taken even when all active runs together exceed their limit. */
const ENDING_TYPES: ReadonlySet<string> = new Set([
  "run.finish",
  "run.fail",
  "run.cancel",
  "step.finish",
  "job.finish",
  "frame.end",
]);
/** Messages that do not concern a run. */
const CELL_MESSAGE = /^(?:cell|component|program)\./;
const SMALL_BODY_BYTES = 32 * 1024;

const ENDING_EVENTS: Record<TerminalRunStatus, RunEventName> = {
  completed: "ProgramCompleted",
  failed: "ProgramFailed",
  cancelled: "ProgramCancelled",
};

export interface RecordWriterOptions {
  log: Log;
  clock: ServiceClock;
  state: RecorderState;
  files: PayloadFiles;
  figures: MessageFigures;
  /** Called before this many bytes are written. */
  spend(bytes: number): void;
  /** The record of a run's end was appended: its first one, or a tombstone. */
  endAppended(run: RunState, sequence: number): void;
  /** The changes of one record were applied. Called before `runChanged` and `runEnded`. */
  changed(changes: readonly Change[]): void;
  /** An active run was created or changed. */
  runChanged(run: RunState): void;
  /** A run has ended, or an ended run was recorded again. */
  runEnded(runId: string): void;
  /** Makes the event for a transition; undefined if no webhook subscribes. `run` is the run after the transition. */
  emit(name: RunEventName, run: RunState, timeUs: number): EmittedEvent | undefined;
  /** The record with this event was appended. */
  emitted(event: EmittedEvent, sequence: number): void;
}

interface InFlight {
  /** The record's sequence number in the log. */
  sequence: number;
  origin: Origin;
  message: IncomingMessage;
  /** Null for a message that was accepted. */
  refusal: Refusal | null;
  /** By `performance.now`. */
  takenMs: number;
}

/**
 * Decides what follows from a producer's message, or from something that the service does itself. Each of these becomes
 * one record, which is appended to the log and applied to the state in one go.
 */
export class RecordWriter {
  readonly #options: RecordWriterOptions;
  readonly #state: RecorderState;
  /** Messages whose records are not committed yet, in the order of their records. */
  #inFlight: InFlight[] = [];

  constructor(options: RecordWriterOptions) {
    this.#options = options;
    this.#state = options.state;
  }

  /** Decides a producer's message. It is answered when its record is committed. */
  take(message: IncomingMessage): void {
    const { clock, log, files, figures } = this.#options;
    const takenMs = figures.taken(message.body.byteLength + message.payload.byteLength);
    const { producer, sequence: number, instance } = message;
    const origin: Origin = { producer: producer.name, sequence: number, ...(instance !== null && { instance }) };
    const timeUs = clock.tick();
    const payload = new MessagePayload(files, message.payload);
    let changes: Change[];
    try {
      changes = this.#withEvents(this.#decide(message, payload, timeUs), timeUs);
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      const refusal = boundedRefusal(error.refusal);
      const record = encodeRefusal(origin, refusal);
      const sequence = log.append({ ...record, timeUs });
      this.#state.applyRefusal(origin, refusal, timeUs);
      this.#inFlight.push({ sequence, origin, message, refusal, takenMs });
      return;
    }
    const sequence = this.#append(origin, changes, timeUs, payload);
    this.#inFlight.push({ sequence, origin, message, refusal: null, takenMs });
    this.#afterChanges(changes);
  }

  /**
   * Ends a run by one atomic record: the ended run with its report, its event and the event's deliveries. So no crash
   * can separate an end from its event.
   */
  endRun(run: RunState, ending: RunEnding): void {
    const timeUs = this.#options.clock.tick();
    const ended: RunEnded = { kind: "run_ended", runId: run.id, run: endRun(run, ending, timeUs) };
    const changes = this.#withEvents([ended], timeUs);
    this.#append(null, changes, timeUs);
    this.#afterChanges(changes);
  }

  /** Records that the captures of an ended run are removed. */
  appendTombstone(run: RunState): { sequence: number; timeUs: number } {
    const timeUs = this.#options.clock.tick();
    const settled = this.#withSettled(withoutCaptures(run, timeUs));
    const tombstone: RunEnded = { kind: "run_ended", runId: run.id, run: settled };
    const sequence = this.#append(null, [tombstone], timeUs);
    this.#afterChanges([tombstone]);
    return { sequence, timeUs };
  }

  /** Stores artefacts of the run's captures, then records them. For an ended run the record holds the whole run again. */
  storeArtefacts(run: RunState, made: readonly MadeArtefact[]): void {
    const { clock, files } = this.#options;
    const file = files.get(run.id, "captures");
    const timeUs = clock.tick();
    let lengthBytes = 0;
    const stored = made.map((one): ArtefactChange => {
      if (one.kind === "failed") {
        const { of, code, message } = one;
        return { kind: "artefact_failed", runId: run.id, of, code, message };
      }
      const extents = one.parts.map((part) => file.append(part));
      lengthBytes += extents.reduce((sum, extent) => sum + extent.lengthBytes, 0);
      return { kind: "artefact_stored", runId: run.id, of: one.of, artefact: one.placed(extents) };
    });
    const payload = lengthBytes === 0 ? undefined : { file, lengthBytes };
    const changes: Change[] = isTerminal(run.status)
      ? [{ kind: "run_ended", runId: run.id, run: this.#withSettled(withArtefacts(run, stored, timeUs)) }]
      : stored;
    this.#append(null, changes, timeUs, payload);
    this.#afterChanges(changes);
  }

  /** Records that these producers are forgotten. */
  forgetProducers(names: readonly string[]): void {
    const changes = names.map((name): Change => ({ kind: "producer_forgotten", name }));
    this.#append(null, changes, this.#options.clock.tick());
  }

  /** Records a change of a webhook or a delivery. @returns the record's sequence number */
  appendWebhookChange(change: WebhookChange, timeUs: number): number {
    const { log, spend } = this.#options;
    const { type, index, body } = encodeWebhookChange(change);
    const sequence = log.append({ type, index, body, timeUs });
    this.#state.applyWebhookChange(change, timeUs);
    spend(index.length + body.length);
    return sequence;
  }

  /** Answers the messages whose records are committed with this batch. */
  committed(batch: CommittedBatch): void {
    const { figures } = this.#options;
    const inFlight = this.#inFlight;
    const nowMs = performance.now();
    let count = 0;
    for (; count < inFlight.length; count++) {
      const { sequence, origin, message, refusal, takenMs } = inFlight[count] as InFlight;
      if (sequence > batch.lastSequence) break;
      this.#state.producers.commit(origin.producer, origin.sequence);
      figures.committed(takenMs, nowMs);
      message.onCommitted(refusal);
    }
    inFlight.splice(0, count);
  }

  /** Called when the log takes no more records: what was not committed is never answered. */
  abandon(): void {
    this.#inFlight = [];
  }

  #decide(message: IncomingMessage, payload: MessagePayload, timeUs: number): Change[] {
    const decoded = decodeBody(message.body);
    if (!decoded.ok) {
      throw new RefusedError("invalid_message", decoded.fault.message, { ...decoded.fault.params });
    }
    const cellMessage = parseCellMessage(decoded.body);
    if (this.#state.activeDocumentBytes > LIMITS.activeRunBytes)
      this.#refuseGrowth(cellMessage.type, message.body.length);
    return decideMessage(this.#state, cellMessage, payload, timeUs);
  }

  #refuseGrowth(type: string, bodyBytes: number): void {
    if (CELL_MESSAGE.test(type) || (ENDING_TYPES.has(type) && bodyBytes <= SMALL_BODY_BYTES)) return;
    throw new RefusedError("too_large", "the runs that have not ended are too large together", {
      path: "",
      value: this.#state.activeDocumentBytes,
      allowed: LIMITS.activeRunBytes,
    });
  }

  /** Adds to each transition among the changes of one record the event that it emits. */
  #withEvents(changes: Change[], timeUs: number): Change[] {
    const { emit } = this.#options;
    if (!changes.some(isTransition)) return changes;
    return changes.map((change) => {
      if (change.kind === "run_started") {
        const run = this.#state.activeRun(change.runId);
        const started = { status: "running", startedAtUs: timeUs, updatedAtUs: timeUs } as const;
        const event = run && emit("ProgramStarted", { ...run, ...started }, timeUs);
        return event === undefined ? change : { ...change, event };
      }
      if (change.kind !== "run_ended") return change;
      const run = this.#withSettled(change.run);
      const event = emit(ENDING_EVENTS[run.status as TerminalRunStatus], run, timeUs);
      return event === undefined
        ? { ...change, run }
        : { ...change, run: { ...run, emitted: [...(run.emitted ?? []), event] } };
    });
  }

  /**
   * The run with its finished deliveries marked as settled. So whoever reads this record does not deliver them again.
   */
  #withSettled(run: RunState): RunState {
    if (run.emitted === undefined) return run;
    const { webhooks } = this.#state;
    const emitted = run.emitted.map((event) => ({
      ...event,
      deliveries: event.deliveries.map((delivery) =>
        webhooks.isPending(delivery.id) ? delivery : { ...delivery, settled: true as const },
      ),
    }));
    return { ...run, emitted };
  }

  /** Appends the record of these changes and applies them, in one go. */
  #append(
    origin: Origin | null,
    changes: readonly Change[],
    timeUs: number,
    payload?: Pick<MessagePayload, "file" | "lengthBytes">,
  ): number {
    const { log, endAppended, spend } = this.#options;
    const needs = payload?.file;
    const storedBytes = needs === undefined ? 0 : (payload?.lengthBytes ?? 0);
    let sequence: number;
    let recordBytes: number;
    try {
      const { type, index, body } = encodeChanges(origin, changes, this.#runAfter(changes[0], timeUs));
      sequence = log.append(needs === undefined ? { type, timeUs, index, body } : { type, timeUs, index, body, needs });
      recordBytes = recordLength(index.length, body.length);
    } catch (error) {
      // The log has no memory or no room now. The same bytes come again, and must not make the file longer each time.
      needs?.takeBack(storedBytes);
      throw error;
    }
    if (changes[0]?.kind === "run_ended") endAppended(changes[0].run, sequence);
    this.#state.apply(origin, changes, timeUs);
    this.#tellEmitted(changes, timeUs, sequence);
    spend(recordBytes + storedBytes);
    return sequence;
  }

  #tellEmitted(changes: readonly Change[], timeUs: number, sequence: number): void {
    for (const change of changes) {
      let event: EmittedEvent | undefined;
      if (change.kind === "run_started") event = change.event;
      else if (change.kind === "run_ended") event = change.run.emitted?.at(-1);
      // An event of an earlier record has an earlier time.
      if (event?.timeUs === timeUs && "runId" in change) this.#options.emitted(event, sequence);
    }
  }

  /** The run for the record's index section, as it will be after the change. The change is not applied yet. */
  #runAfter(change: Change | undefined, timeUs: number): RunState | undefined {
    if (change === undefined || !("runId" in change) || change.kind === "run_ended") return undefined;
    if (change.kind === "run_created") return foldRun(undefined, change, timeUs);
    const run = this.#state.activeRun(change.runId);
    if (run === undefined) return undefined;
    if (change.kind === "run_started") return { ...run, status: "running" };
    return change.kind === "run_finalizing" ? { ...run, status: "finalizing" } : run;
  }

  #afterChanges(changes: readonly Change[]): void {
    this.#options.changed(changes);
    for (const change of changes) {
      if (!("runId" in change)) continue;
      if (change.kind === "run_ended") {
        this.#options.runEnded(change.runId);
        continue;
      }
      const run = this.#state.activeRun(change.runId);
      if (run !== undefined) this.#options.runChanged(run);
    }
  }
}

/** True for a change that can emit an event. */
function isTransition({ kind }: Change): boolean {
  return kind === "run_started" || kind === "run_ended";
}
