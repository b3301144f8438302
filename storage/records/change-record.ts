/**
 * Turns changes into a log record, and back. A record has a type, an index section (record-index.ts) and a MessagePack body.
 *
 * | type | record | index section | body |
 * |---|---|---|---|
 * | 16 | cell changes | origin | `{changes: CellChange[]}` |
 * | 17 | run created | origin, run summary | `{changes: [run_created]}` |
 * | 18 | run delta | origin, run delta | `{changes: RunChange[]}` of one run |
 * | 19 | run ended | origin, run summary with its frame ids, captured bytes | `{run: RunState}` |
 * | 20 | refusal | origin | `{refusal: Refusal}` |
 *
 * Types 21 and 22 belong to webhooks: webhook-record.ts.
 */
import { isProcessingOpen } from "../../core/capture/artefact.js";
import { isUuidV7 } from "../../core/identifiers.js";
import { isPlainObject } from "../../core/json/json.js";
import type { CellChange, Change, RunEnded } from "../../core/link/change.js";
import type { Refusal } from "../../core/link/refusal.js";
import type { QualityCheck } from "../../core/run/quality.js";
import { storedEnd } from "../../core/run/run-files.js";
import { qualityStatusOf, type RunState, type RunSummary, summarizeRun } from "../../core/run/run-state.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { encodeDeltaShared, encodeOrigin, encodeSummary } from "./index-encoder.js";
import { DELTA_KINDS } from "./index-layout.js";
import { decodeMessagePack, messagePackField, messagePackParts } from "./message-pack.js";
import { MessagePackEncoder } from "./message-pack-encoder.js";
import { type Origin, RECORD_TYPE, RecordDecodeError, type RecordType, type StoredSummary } from "./record-index.js";

const encoder = new MessagePackEncoder();

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
  const { type, index, body } = encodeChangesShared(origin, changes, run);
  return { type, index: index.slice(), body: Uint8Array.prototype.slice.call(body) };
}

/** As `encodeChanges`, but the bytes are valid only until the next call: the encoders use their memory again. The log copies them at once. */
export function encodeChangesShared(
  origin: Origin | null,
  changes: readonly Change[],
  run: RunState | undefined,
): EncodedRecord {
  const [first] = changes;
  if (first === undefined) throw new Error("a record without changes");
  switch (first.kind) {
    case "cell_put":
    case "component_put":
    case "component_deleted":
    case "program_put":
    case "program_deleted":
    case "producer_forgotten":
      return { type: RECORD_TYPE.cellChanges, index: encodeOrigin(origin), body: encoder.encodeShared({ changes }) };
    case "run_ended":
      return {
        type: RECORD_TYPE.runEnded,
        index: encodeSummary(
          encodeOrigin(origin),
          summarizeRun(first.run),
          first.run.frames.map((frame) => frame.id),
          {
            bytes: storedEnd(first.run, "captures"),
            removedAtUs: first.run.capturesRemovedAtUs,
            isOpen: isProcessingOpen(first.run),
          },
          first.run.emitted,
        ),
        body: encoder.encodeShared({ run: first.run }),
      };
    default: {
      if (run === undefined) throw new Error(`${first.kind} without its run`);
      if (first.kind === "run_created") {
        return {
          type: RECORD_TYPE.runCreated,
          index: encodeSummary(encodeOrigin(origin), summarizeRun(run), [], null),
          body: encoder.encodeShared({ changes }),
        };
      }
      return {
        type: RECORD_TYPE.runDelta,
        index: encodeDeltaShared(origin, first, run.status),
        body: encoder.encodeShared({ changes }),
      };
    }
  }
}

export function encodeRefusal(origin: Origin, refusal: Refusal): EncodedRecord {
  return { type: RECORD_TYPE.refusal, index: encodeOrigin(origin), body: encoder.encode({ refusal }) };
}

/**
 * The events that an ended run emitted, from the body of its consolidated record. Nothing else of the body is decoded. An event's deliveries are
 * decoded only when they are used: there may be hundreds, and a page of deliveries needs such an event for each item.
 *
 * @throws {RecordDecodeError} when `encodeChanges` cannot have made the body
 */
export function decodeEmitted(body: Uint8Array): EmittedEvent[] {
  return decoded(() => {
    const emitted = messagePackField(body, ["run", "emitted"]);
    return emitted === undefined ? [] : messagePackParts(emitted)?.map(decodeEvent);
  });
}

/**
 * The summary of an ended run. In an older record the quality report's status stands only in the body; it is null if that cannot be read, and a
 * request for the whole run reports the damage.
 */
export function endedSummary(stored: StoredSummary, body: Uint8Array): RunSummary {
  const { status, qualityStatus } = stored;
  if (qualityStatus !== undefined) return { ...stored, qualityStatus };
  try {
    const bytes = messagePackField(body, ["run", "checks"]);
    const checks = bytes === undefined ? [] : (decodeMessagePack(bytes) as QualityCheck[]);
    return { ...stored, qualityStatus: qualityStatusOf({ status, checks }) };
  } catch {
    return { ...stored, qualityStatus: null };
  }
}

function decodeEvent(bytes: Uint8Array): EmittedEvent {
  const parts = messagePackParts(bytes) ?? [];
  const fields: [key: string, value: unknown][] = [];
  let deliveries: Uint8Array | undefined;
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const key = decodeMessagePack(parts[at] as Uint8Array) as string;
    const value = parts[at + 1] as Uint8Array;
    if (key === "deliveries") deliveries = value;
    else fields.push([key, decodeMessagePack(value)]);
  }
  const event = Object.fromEntries(fields);
  if (deliveries === undefined || typeof event.id !== "string" || typeof event.payload !== "string") {
    throw new RecordDecodeError("a run's end with events of another kind");
  }
  const lazily = deliveries;
  const get = (): unknown[] => decoded(() => decodeMessagePack(lazily));
  return Object.defineProperty(event, "deliveries", { get, enumerable: true }) as unknown as EmittedEvent;
}

/** Decodes an array. */
function decoded<T>(decode: () => unknown): T[] {
  let value: unknown;
  try {
    value = decode();
  } catch (error) {
    throw error instanceof RecordDecodeError
      ? error
      : new RecordDecodeError(`the body is not MessagePack: ${String(error)}`);
  }
  if (!Array.isArray(value)) throw new RecordDecodeError("a run's end with events of another kind");
  return value as T[];
}

/**
 * The changes of a record of any type except refusal.
 *
 * @throws {RecordDecodeError} when `encodeChanges` cannot have made the body
 */
export function decodeChanges(type: number, body: Uint8Array): Change[] {
  switch (type) {
    case RECORD_TYPE.runEnded: {
      const run = decodeBody(body).run;
      if (!isPlainObject(run) || !isId(run.id) || !RUN_LISTS.every((list) => Array.isArray(run[list]))) {
        throw new RecordDecodeError("the record of a run's end has no run");
      }
      return [{ kind: "run_ended", runId: run.id, run: run as unknown as RunState } satisfies RunEnded];
    }
    case RECORD_TYPE.cellChanges:
    case RECORD_TYPE.runCreated:
    case RECORD_TYPE.runDelta: {
      const { changes } = decodeBody(body);
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
  const { refusal } = decodeBody(body);
  if (!isPlainObject(refusal) || typeof refusal.code !== "string") throw new RecordDecodeError("a refusal has no code");
  return refusal as unknown as Refusal;
}

function decodeBody(body: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = decodeMessagePack(body);
  } catch (error) {
    throw new RecordDecodeError(`the body is not MessagePack: ${String(error)}`);
  }
  if (!isPlainObject(value)) throw new RecordDecodeError("the body is not a map");
  return value;
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
