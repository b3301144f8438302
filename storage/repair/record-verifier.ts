import { artefactExtentsOf, isProcessingOpen } from "../../core/capture/artefact.js";
import type { Extent } from "../../core/capture/capture.js";
import type { RunEnded } from "../../core/link/change.js";
import { storedEnd } from "../../core/run/run-files.js";
import { capturePath } from "../captures/capture-path.js";
import { extentsOfChange, extentsOfRun } from "../captures/stored-extents.js";
import { UuidTable } from "../columns/uuid-table.js";
import type { LogRecord, RecordLocation } from "../log/log-batch.js";
import { decodeChanges, decodeRefusal } from "../records/change-record.js";
import {
  decodeIndex,
  isKnownRecordType,
  RECORD_TYPE,
  RecordDecodeError,
  type RecordIndex,
} from "../records/record-index.js";
import { decodeDeliveryBody, decodeWebhookSecret } from "../records/webhook-record.js";
import { MAXIMUM_LISTED_FINDINGS } from "../recovery/recovery-report.js";
import type { NamedExtents, RecordFault } from "./check-store.js";
import { indexFault } from "./index-agreement.js";
import { RecordReferences } from "./record-references.js";

const GOES_ON = 0;
const HAS_ENDED = 1;

/**
 * Decodes the records of a store one after the other, for `check`. Each must decode completely, its index section and body must agree, a run's end
 * must name everything that the run's earlier records named, and everything to which records refer must exist.
 *
 * The stored bytes of a run are those that its end names. For a run that has not ended, they are those that its records name.
 */
export class RecordVerifier {
  readonly #runs = new UuidTable();
  /** Stored bytes that records of unfinished runs have named, by run. */
  readonly #named = new Map<string, NamedExtents[]>();
  /** For runs with artefacts still to be made: the end of what was named in their capture files. */
  readonly #processedEnds = new Map<string, number>();
  readonly #references = new RecordReferences();
  /** Faults that do not depend on what the log has lost; the first 1,000. */
  readonly #faults: RecordFault[] = [];

  /** Count of runs that had a record. */
  get runs(): number {
    return this.#runs.size;
  }

  /** For `checkStore`. */
  get inspection() {
    return {
      inspectRecord: (record: LogRecord, location: RecordLocation): NamedExtents[] => this.verify(record, location),
      namedAtEnd: (): NamedExtents[] => [...this.#named.values()].flat(),
      recordFaults: (isLogWhole: boolean): RecordFault[] => this.faults(isLogWhole),
    };
  }

  /**
   * Decodes a record; returns the stored bytes that can be verified now.
   *
   * @throws RecordDecodeError
   */
  verify(record: LogRecord, location: RecordLocation): NamedExtents[] {
    const { type, body } = record;
    if (!isKnownRecordType(type)) throw new Error(`this release does not know records of type ${type}`);
    const index = decodeIndex(type, record.index);
    const runId = runOfIndex(index);
    if (type === RECORD_TYPE.webhook) {
      decodeWebhookSecret(body);
      this.#references.take(index, [], location);
      return [];
    }
    if (type === RECORD_TYPE.delivery) {
      const { payload } = decodeDeliveryBody(body);
      if (runId === null && payload === null) this.#fault(location, "a test delivery has no event");
      this.#references.take(index, [], location);
      return [];
    }
    if (type === RECORD_TYPE.refusal) {
      decodeRefusal(body);
      return [];
    }
    const changes = decodeChanges(type, body);
    if (runId === null) return [];
    if (!this.#runs.has(runId)) this.#runs.set(runId, GOES_ON);
    const named: NamedExtents[] = [];
    for (const change of changes) {
      if ("runId" in change && change.runId !== runId) {
        throw new RecordDecodeError(
          `the body has a ${change.kind} of run ${change.runId}, but the index section names ${runId}`,
        );
      }
      if (change.kind === "run_ended") named.push(...this.#end(change));
      else this.#note(runId, extentsOfChange(change));
    }
    const fault = indexFault(index, changes, record.timeUs);
    if (fault !== undefined) this.#fault(location, fault);
    this.#references.take(index, changes, location);
    return named;
  }

  /**
   * The faults of records, without those of their stored bytes. Called after all records were verified.
   *
   * @param isLogWhole false when the log can have lost something to which a record refers
   */
  faults(isLogWhole: boolean): RecordFault[] {
    const references = isLogWhole ? [...this.#references.faults()] : [];
    return [...this.#faults, ...this.#references.certainFaults(), ...references];
  }

  #fault(location: RecordLocation, message: string): void {
    if (this.#faults.length < MAXIMUM_LISTED_FINDINGS) this.#faults.push({ location, message });
  }

  #note(runId: string, extents: readonly NamedExtents[]): void {
    if (extents.length === 0 || this.#runs.get(runId) === HAS_ENDED) return;
    const named = this.#named.get(runId);
    if (named === undefined) this.#named.set(runId, [...extents]);
    else named.push(...extents);
  }

  /** The first end of a run names all its stored bytes. A later one adds artefacts, or says that the captures were removed. */
  #end({ runId, run }: RunEnded): NamedExtents[] {
    const earlier = this.#named.get(runId) ?? [];
    this.#named.delete(runId);
    const captures = capturePath(runId, "capture");
    const isRemoved = run.capturesRemovedAtUs !== null;
    const removed: NamedExtents[] = isRemoved ? [{ path: captures, extents: [], isRemoved }] : [];
    const processedEnd = this.#processedEnds.get(runId) ?? Number.POSITIVE_INFINITY;
    if (isProcessingOpen(run)) this.#processedEnds.set(runId, storedEnd(run, "captures"));
    else this.#processedEnds.delete(runId);
    if (this.#runs.get(runId) === HAS_ENDED) {
      const made = [...artefactExtentsOf(run)].filter(({ offset }) => offset >= processedEnd);
      return isRemoved || made.length === 0 ? removed : [{ path: captures, extents: made }];
    }
    this.#runs.set(runId, HAS_ENDED);
    const named = extentsOfRun(run);
    const forgotten = withoutNamed(earlier, named).map((one) => ({
      ...one,
      fault: "an earlier record of the run names these bytes, but the run's end does not",
    }));
    return [...named, ...forgotten].filter(({ path }) => !isRemoved || path !== captures).concat(removed);
  }
}

/** The extents of `earlier` that are not among `named`. */
function withoutNamed(earlier: readonly NamedExtents[], named: readonly NamedExtents[]): NamedExtents[] {
  const keyOf = (path: string, { offset, lengthBytes, crc32 }: Extent) => `${path} ${offset} ${lengthBytes} ${crc32}`;
  const known = new Set(named.flatMap(({ path, extents }) => extents.map((extent) => keyOf(path, extent))));
  return earlier
    .map(({ path, extents }) => ({ path, extents: extents.filter((extent) => !known.has(keyOf(path, extent))) }))
    .filter(({ extents }) => extents.length > 0);
}

/** The run that the record's index section names; null for a record of no run. */
export function runOf({ type, index }: Pick<LogRecord, "type" | "index">): string | null {
  return isKnownRecordType(type) ? runOfIndex(decodeIndex(type, index)) : null;
}

function runOfIndex(index: RecordIndex): string | null {
  switch (index.type) {
    case RECORD_TYPE.runCreated:
    case RECORD_TYPE.runEnded:
      return index.summary.id;
    case RECORD_TYPE.runDelta:
      return index.runId;
    case RECORD_TYPE.delivery:
      return index.delivery.runId;
    default:
      return null;
  }
}
