import { isProcessingOpen } from "../../core/capture/artefact.js";
import type { Change, RunEnded } from "../../core/link/change.js";
import { capturePath } from "../captures/capture-path.js";
import { extentsOfChange, extentsOfRun } from "../captures/stored-extents.js";
import type { LogRecord } from "../log/committed-batch.js";
import { decodeChanges } from "../records/change-record.js";
import { isChangeRecordType } from "../records/record-index.js";
import type { NamedExtents } from "../repair/check-store.js";

/**
 * What a record says of a capture file:
 * - `final`: it is named up to `end`, and the service never writes to it again.
 * - `removed`: retention has removed it.
 */
export type CaptureWord = { path: string; says: "final"; end: number } | { path: string; says: "removed" };

/** Reads from the records of a log which capture files a backup needs. Paths are relative to the captures folder. */
export class NamedCaptures {
  /** Files of runs that have not ended, or whose formats are still being made: where the named bytes end. */
  readonly growing = new Map<string, number>();

  /** @throws RecordDecodeError */
  take({ type, body }: LogRecord): CaptureWord[] {
    if (!isChangeRecordType(type)) return [];
    return decodeChanges(type, body).flatMap((change) => this.#takeChange(change));
  }

  #takeChange(change: Change): CaptureWord[] {
    if (change.kind === "run_ended") return this.#end(change);
    for (const named of extentsOfChange(change)) this.#grow(named);
    return [];
  }

  #end({ runId, run }: RunEnded): CaptureWord[] {
    const captures = capturePath(runId, "capture");
    this.growing.delete(captures);
    this.growing.delete(capturePath(runId, "report"));
    const words: CaptureWord[] = [];
    const isRemoved = run.capturesRemovedAtUs !== null;
    if (isRemoved) words.push({ path: captures, says: "removed" });
    for (const named of extentsOfRun(run)) {
      const isOfCaptures = named.path === captures;
      if (isOfCaptures && isRemoved) continue;
      if (isOfCaptures && isProcessingOpen(run)) this.#grow(named);
      else words.push({ path: named.path, says: "final", end: endOf(named) });
    }
    return words;
  }

  #grow(named: NamedExtents): void {
    this.growing.set(named.path, Math.max(endOf(named), this.growing.get(named.path) ?? 0));
  }
}

function endOf({ extents }: NamedExtents): number {
  return extents.reduce((most, { offset, lengthBytes }) => Math.max(most, offset + lengthBytes), 0);
}
