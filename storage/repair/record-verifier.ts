import { artefactExtentsOf, isProcessingOpen } from "../../core/capture/artefact.js";
import type { RunEnded } from "../../core/link/change.js";
import { storedEnd } from "../../core/run/run-files.js";
import { capturePath } from "../captures/capture-path.js";
import { extentsOfChange, extentsOfRun } from "../captures/stored-extents.js";
import { UuidTable } from "../columns/uuid-table.js";
import type { LogRecord } from "../log/committed-batch.js";
import { decodeChanges, decodeRefusal } from "../records/change-record.js";
import { decodeIndex, isKnownRecordType, RECORD_TYPE, RecordDecodeError, runOfIndex } from "../records/record-index.js";
import { ResendItems } from "../records/resend-record.js";
import { decodeDeliveryBody, decodeWebhookSecrets } from "../records/webhook-record.js";
import type { NamedExtents } from "./check-store.js";

const GOES_ON = 0;
const HAS_ENDED = 1;

/**
 * Decodes the records of a store one after the other, for `check`. Each must decode completely.
 *
 * The stored bytes of a run are those that its end names. For a run that has not ended, they are those that its records name.
 */
export class RecordVerifier {
  readonly #runs = new UuidTable();
  /** Stored bytes that records of unfinished runs have named, by run. */
  readonly #named = new Map<string, NamedExtents[]>();
  /** For each run with artefacts still to be made: where the last named bytes of its capture file end. */
  readonly #processedEnds = new Map<string, number>();

  /** Count of runs that had a record. */
  get runs(): number {
    return this.#runs.size;
  }

  /** For `checkStore`. */
  get inspection() {
    return {
      inspectRecord: (record: LogRecord): NamedExtents[] => this.verify(record),
      namedAtEnd: (): NamedExtents[] => [...this.#named.values()].flat(),
    };
  }

  /**
   * Decodes a record; returns the stored bytes that can be verified now.
   *
   * @throws RecordDecodeError
   */
  verify(record: LogRecord): NamedExtents[] {
    const { type, body } = record;
    if (!isKnownRecordType(type)) throw new Error(`this release does not know records of type ${type}`);
    const index = decodeIndex(type, record.index);
    const runId = runOfIndex(index);
    if (type === RECORD_TYPE.webhook) {
      decodeWebhookSecrets(body);
      return [];
    }
    if (type === RECORD_TYPE.delivery) {
      decodeDeliveryBody(body);
      return [];
    }
    if (type === RECORD_TYPE.resend) {
      const items = new ResendItems(body);
      for (let nth = 0; nth < items.count; nth++) items.item(nth);
      return [];
    }
    if (type === RECORD_TYPE.refusal) {
      decodeRefusal(body);
      return [];
    }
    if (type === RECORD_TYPE.plantMessage) return [];
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
    return named;
  }

  #note(runId: string, extents: readonly NamedExtents[]): void {
    if (extents.length === 0 || this.#runs.get(runId) === HAS_ENDED) return;
    const named = this.#named.get(runId);
    if (named === undefined) this.#named.set(runId, [...extents]);
    else named.push(...extents);
  }

  /** The first end of a run names all its stored bytes. A later one adds artefacts, or says that the captures were removed. */
  #end({ runId, run }: RunEnded): NamedExtents[] {
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
    return named.filter(({ path }) => !isRemoved || path !== captures).concat(removed);
  }
}

/** The run that the record's index section names; null for a record of no run. */
export function runOf({ type, index }: Pick<LogRecord, "type" | "index">): string | null {
  return isKnownRecordType(type) ? runOfIndex(decodeIndex(type, index)) : null;
}
