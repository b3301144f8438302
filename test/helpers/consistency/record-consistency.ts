import type { Extent } from "../../../core/capture/capture.js";
import type { Change } from "../../../core/link/change.js";
import { extentsOfChange, extentsOfRun } from "../../../storage/captures/stored-extents.js";
import type { LogRecord, RecordLocation } from "../../../storage/log/committed-batch.js";
import { decodeChanges } from "../../../storage/records/change-record.js";
import {
  decodeIndex,
  isChangeRecordType,
  isKnownRecordType,
  RECORD_TYPE,
} from "../../../storage/records/record-index.js";
import { decodeDeliveryBody } from "../../../storage/records/webhook-record.js";
import type { CheckResult } from "../../../storage/repair/check-store.js";
import { RecordVerifier } from "../../../storage/repair/record-verifier.js";
import { indexFault } from "./index-agreement.js";
import { type RecordFault, RecordReferences } from "./record-references.js";

/**
 * Takes the records of a store one after the other, and finds what the service should never have written: an index section and a body that
 * disagree, a run's end that does not name what the run's earlier records named, and references to what does not exist.
 */
export class RecordConsistency {
  readonly #references = new RecordReferences();
  /** Stored bytes that records of runs which have not ended have named, by run. */
  readonly #named = new Map<string, string[]>();
  readonly #ended = new Set<string>();
  readonly #faults: RecordFault[] = [];

  /** @throws RecordDecodeError */
  take(record: LogRecord, location: RecordLocation): void {
    const { type, body } = record;
    if (!isKnownRecordType(type)) return;
    const index = decodeIndex(type, record.index);
    if (index.type === RECORD_TYPE.delivery) {
      const isWithoutEvent = index.delivery.runId === null && decodeDeliveryBody(body).payload === null;
      if (isWithoutEvent) this.#faults.push({ location, message: "a test delivery has no event" });
    }
    const changes = isChangeRecordType(type) && type !== RECORD_TYPE.refusal ? decodeChanges(type, body) : [];
    for (const change of changes) this.#takeExtents(change, location);
    const message = indexFault(index, changes, record.timeUs);
    if (message !== undefined) this.#faults.push({ location, message });
    this.#references.take(index, changes, location);
  }

  /** @param isLogWhole false when the log can have lost something to which a record refers */
  faults(isLogWhole: boolean): RecordFault[] {
    const references = isLogWhole ? [...this.#references.faults()] : [];
    return [...this.#faults, ...this.#references.certainFaults(), ...references];
  }

  #takeExtents(change: Change, location: RecordLocation): void {
    if (!("runId" in change)) return;
    const { runId } = change;
    const earlier = this.#named.get(runId) ?? [];
    if (change.kind !== "run_ended") {
      if (!this.#ended.has(runId)) this.#named.set(runId, [...earlier, ...extentsOfChange(change).flatMap(keysOf)]);
      return;
    }
    const named = new Set(extentsOfRun(change.run).flatMap(keysOf));
    const message = "an earlier record of the run names stored bytes that the run's end does not";
    if (earlier.some((key) => !named.has(key))) this.#faults.push({ location, message });
    this.#named.delete(runId);
    this.#ended.add(runId);
  }
}

function keysOf({ path, extents }: { path: string; extents: readonly Extent[] }): string[] {
  return extents.map(({ offset, lengthBytes, crc32 }) => `${path} ${offset} ${lengthBytes} ${crc32}`);
}

/** What the shipped check looks at, and consistency besides. Call `assertConsistent` with the result. */
export function consistentInspection(onRecord: (record: LogRecord) => void = () => {}) {
  const verifier = new RecordVerifier();
  const consistency = new RecordConsistency();
  return {
    inspection: {
      ...verifier.inspection,
      inspectRecord: (record: LogRecord, location: RecordLocation) => {
        onRecord(record);
        const named = verifier.verify(record);
        consistency.take(record, location);
        return named;
      },
    },
    assertConsistent({ ok, summary }: CheckResult): void {
      const [fault] = consistency.faults(ok && summary.quarantineFiles === 0);
      if (fault === undefined) return;
      throw new Error(`the records contradict one another: ${fault.message}, at ${JSON.stringify(fault.location)}`);
    },
  };
}
