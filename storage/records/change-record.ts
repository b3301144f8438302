/**
 * Turns changes into a log record, and back. A record has a type, an index section (record-index.ts) and a MessagePack body.
 *
 * | type | record | index section | body |
 * |---|---|---|---|
 * | 16 | cell changes | origin | `{changes: CellChange[]}` |
 * | 17 | run created | origin, run summary | `{changes: [run_created]}` |
 * | 18 | run delta | origin, run delta | `{changes: RunChange[]}` of one run |
 * | 19 | run ended | origin, run summary with its frame ids, captured bytes | `EmittedEvent[]`, then `RunState` without them |
 * | 20 | refusal | origin | `{refusal: Refusal}` |
 *
 * Types 21 to 23 belong to webhooks: webhook-record.ts, resend-record.ts.
 */
import { isProcessingOpen } from "../../core/capture/artefact.js";
import { isUuidV7 } from "../../core/identifiers.js";
import { isPlainObject } from "../../core/json/json.js";
import type { CellChange, Change, RunEnded } from "../../core/link/change.js";
import type { Refusal } from "../../core/link/refusal.js";
import { storedEnd } from "../../core/run/run-files.js";
import { type RunState, summarizeRun } from "../../core/run/run-state.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { encodeDelta, encodeOrigin, encodeSummary } from "./index-encoder.js";
import { DELTA_KINDS } from "./index-layout.js";
import { decodeMap, decodeMessagePackValues, encodeMessagePack } from "./message-pack.js";
import { type Origin, RECORD_TYPE, RecordDecodeError, type RecordType } from "./record-index.js";

export interface EncodedRecord {
  type: RecordType;
  index: Uint8Array;
  body: Uint8Array;
}

/**
 * Encodes the changes of one record: either cell changes, or changes of one run.
 *
 * @param run as it is after the changes; needed for run changes
 */
export function encodeChanges(
  origin: Origin | null,
  changes: readonly Change[],
  run: RunState | undefined,
): EncodedRecord {
  const [first] = changes;
  if (first === undefined) throw new Error("a record without changes");
  if (first.kind === "run_ended") {
    const { run: ended } = first;
    const frameIds = ended.frames.map((frame) => frame.id);
    const captures = {
      bytes: storedEnd(ended, "captures"),
      removedAtUs: ended.capturesRemovedAtUs,
      isOpen: isProcessingOpen(ended),
    };
    const index = encodeSummary(encodeOrigin(origin), summarizeRun(ended), frameIds, captures, ended.emitted);
    return { type: RECORD_TYPE.runEnded, index, body: encodeEndedRun(ended) };
  }
  const body = encodeMessagePack({ changes });
  if (!("runId" in first)) return { type: RECORD_TYPE.cellChanges, index: encodeOrigin(origin), body };
  if (run === undefined) throw new Error(`${first.kind} without its run`);
  if (first.kind === "run_created") {
    const index = encodeSummary(encodeOrigin(origin), summarizeRun(run), [], null);
    return { type: RECORD_TYPE.runCreated, index, body };
  }
  return { type: RECORD_TYPE.runDelta, index: encodeDelta(origin, first, run.status), body };
}

export function encodeRefusal(origin: Origin, refusal: Refusal): EncodedRecord {
  return { type: RECORD_TYPE.refusal, index: encodeOrigin(origin), body: encodeMessagePack({ refusal }) };
}

/** The events come first, so that they can be read without the rest of a large run. */
function encodeEndedRun({ emitted = [], ...run }: RunState): Uint8Array {
  return Buffer.concat([encodeMessagePack(emitted), encodeMessagePack(run)]);
}

/**
 * The events that an ended run emitted, from the body of its consolidated record. Nothing else of the body is decoded.
 *
 * @throws {RecordDecodeError} when `encodeChanges` cannot have made the body
 */
export function decodeEmitted(body: Uint8Array): EmittedEvent[] {
  return eventsOf(decodeValues(body, 1)[0]);
}

function eventsOf(value: unknown): EmittedEvent[] {
  if (Array.isArray(value) && value.every(isEvent)) return value;
  throw new RecordDecodeError("a run's end with events of another kind");
}

function isEvent(value: unknown): value is EmittedEvent {
  const isMap = isPlainObject(value);
  return isMap && typeof value.id === "string" && typeof value.payload === "string" && Array.isArray(value.deliveries);
}

/** The first values in a body, at most so many. */
function decodeValues(body: Uint8Array, most: number): unknown[] {
  const values: unknown[] = [];
  try {
    for (const value of decodeMessagePackValues(body)) {
      if (values.push(value) === most) break;
    }
  } catch (error) {
    throw new RecordDecodeError(`the body is not MessagePack: ${String(error)}`);
  }
  return values;
}

/**
 * The changes of a record of any type except refusal.
 *
 * @throws {RecordDecodeError} when `encodeChanges` cannot have made the body
 */
export function decodeChanges(type: number, body: Uint8Array): Change[] {
  switch (type) {
    case RECORD_TYPE.runEnded: {
      const run = decodeEndedRun(body);
      return [{ kind: "run_ended", runId: run.id, run } satisfies RunEnded];
    }
    case RECORD_TYPE.cellChanges:
    case RECORD_TYPE.runCreated:
    case RECORD_TYPE.runDelta: {
      const { changes } = decodeMap(body);
      const kinds = KINDS_OF[type];
      if (!Array.isArray(changes) || changes.length === 0) throw new RecordDecodeError("a record without changes");
      for (const change of changes) {
        if (!isPlainObject(change) || !kinds.includes(String(change.kind))) {
          throw new RecordDecodeError(`a record of type ${type} has a change other than ${kinds.join(", ")}`);
        }
        if (!isAboutSomething(change))
          throw new RecordDecodeError(`the change ${String(change.kind)} does not name what it is about`);
      }
      return changes as Change[];
    }
    default:
      throw new RecordDecodeError(`record type ${type} holds no changes`);
  }
}

function decodeEndedRun(body: Uint8Array): RunState {
  const values = decodeValues(body, 3);
  const emitted = eventsOf(values[0]);
  const run = values[1];
  const isRun = isPlainObject(run) && isId(run.id) && RUN_LISTS.every((list) => Array.isArray(run[list]));
  if (!isRun || values.length > 2) throw new RecordDecodeError("the record of a run's end has no run, or more");
  return { ...(run as unknown as RunState), ...(emitted.length > 0 && { emitted }) };
}

/** Whether a change names what it is about: folds need it, and paths of files are made from it. Its other fields are not checked. */
function isAboutSomething(change: Record<string, unknown>): boolean {
  const { kind, cell, row, key, program, id, name, runId, of } = change;
  switch (kind) {
    case "cell_put":
      return isPlainObject(cell);
    case "component_put":
      return isPlainObject(row) && typeof row.key === "string";
    case "component_deleted":
      return typeof key === "string";
    case "program_put":
      return isPlainObject(program) && isId(program.id) && Array.isArray(program.steps);
    case "program_deleted":
      return isId(id);
    case "producer_forgotten":
      return typeof name === "string";
    case "artefact_stored":
      return isId(runId) && isPlainObject(of) && isPlainObject(change.artefact);
    case "artefact_failed":
      return isId(runId) && isPlainObject(of);
    default:
      return isId(runId);
  }
}

function isId(value: unknown): value is string {
  return typeof value === "string" && isUuidV7(value);
}

const RUN_LISTS = [
  "steps",
  "checks",
  "defects",
  "jobs",
  "frames",
  "frameIds",
  "series",
  "files",
  "eventLog",
] as const satisfies readonly (keyof RunState)[];

/** @throws {RecordDecodeError} when `encodeRefusal` cannot have made the body */
export function decodeRefusal(body: Uint8Array): Refusal {
  const { refusal } = decodeMap(body);
  if (!isPlainObject(refusal) || typeof refusal.code !== "string") throw new RecordDecodeError("a refusal has no code");
  return refusal as unknown as Refusal;
}

const KINDS_OF: Record<16 | 17 | 18, readonly string[]> = {
  [RECORD_TYPE.cellChanges]: [
    "cell_put",
    "component_put",
    "component_deleted",
    "program_put",
    "program_deleted",
    "producer_forgotten",
  ] satisfies CellChange["kind"][],
  [RECORD_TYPE.runCreated]: ["run_created"],
  [RECORD_TYPE.runDelta]: DELTA_KINDS,
};
