import { createRandom } from "../../../core/random.js";
import type { RunState } from "../../../core/run/run-state.js";
import type { LogRecord } from "../../../storage/log/committed-batch.js";
import { decodeChanges, encodeChanges } from "../../../storage/records/change-record.js";
import { RECORD_TYPE } from "../../../storage/records/record-index.js";
import { CellHistory, type HistoryRecord } from "../link/cell-history.js";

export function recordOf({ type, index, body, timeUs }: HistoryRecord, sequence = 1): LogRecord {
  return { type, flags: 1, sequence, timeUs, index, body };
}

export const endOf = (run: RunState): LogRecord =>
  recordOf({ ...encodeChanges(null, [{ kind: "run_ended", runId: run.id, run }], undefined), timeUs: run.updatedAtUs });

/** The records of one run that ended with captures, and its end apart. */
export function recordedRun(): { records: LogRecord[]; end: LogRecord; run: RunState } {
  const history = new CellHistory(createRandom(5));
  const records: LogRecord[] = [];
  for (;;) {
    const record = recordOf(history.next());
    records.push(record);
    if (record.type !== RECORD_TYPE.runEnded) continue;
    const [change] = decodeChanges(record.type, record.body);
    if (change?.kind !== "run_ended" || change.run.frames.every(({ batches }) => batches.length < 2)) continue;
    const { run } = change;
    const own = records.filter(({ type, body }) => type !== RECORD_TYPE.runEnded && Buffer.from(body).includes(run.id));
    return { records: own, end: record, run };
  }
}
