import type { Random } from "../../../core/random.js";
import { withoutCaptures } from "../../../core/run/run-files.js";
import { isTerminal } from "../../../core/run/run-state.js";
import { decodeChanges, decodeRefusal, encodeChanges } from "../../../storage/records/change-record.js";
import { decodeIndex, RECORD_TYPE } from "../../../storage/records/record-index.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import type { CellHistory, HistoryRecord } from "../link/cell-history.js";

/** The next record of the history; now and then a tombstone of a run that has ended. */
export function nextRecord(history: CellHistory, random: Random): HistoryRecord {
  const ended = random.chance(0.03) ? history.newestFirst.filter(({ status }) => isTerminal(status)) : [];
  if (ended.length === 0) return history.next();
  history.timeUs += 1_000;
  const run = withoutCaptures(random.pick(ended), history.timeUs);
  history.runs.set(run.id, run);
  return { ...encodeChanges(null, [{ kind: "run_ended", runId: run.id, run }], undefined), timeUs: history.timeUs };
}

/** What the recorder would decide by. */
export function stateAnswers(state: RecorderState, history: CellHistory) {
  const runs = history.newestFirst;
  const producer = state.producers.get("cell-1");
  return {
    cell: state.cell(),
    counts: [state.componentCount, state.programCount, state.activeRunCount, state.runCount],
    lastRunId: state.lastRunId,
    lastTimeUs: state.lastTimeUs,
    documentBytes: state.activeDocumentBytes,
    programs: [...history.programIdsEver].map((id) => state.program(id)),
    components: [...history.components.keys()].map((key) => state.hasComponent(key)),
    runs: runs.map(({ id }) => [id, state.runHasEnded(id), state.activeRun(id)]),
    frames: [...history.runOfFrame.keys()].map((id) => [id, state.runOfFrame(id)]),
    revisions: Array.from({ length: 41 }, (_, at) => state.nextRevision(`SN-${at}`)),
    lastWriters: [...state.lastWriters()],
    taken: producer?.taken,
    refusals: [...(producer?.refusals ?? [])].map(([sequence, { refusal }]) => [sequence, refusal]),
  };
}

/** A state that has seen every record, whatever compaction dropped. */
export function shadowOf(records: readonly HistoryRecord[]): RecorderState {
  const shadow = new RecorderState();
  shadow.finishReplay();
  for (const { type, index, body, timeUs } of records) {
    const { origin } = decodeIndex(type, index);
    if (type === RECORD_TYPE.refusal && origin !== null) shadow.applyRefusal(origin, decodeRefusal(body), timeUs);
    else shadow.apply(origin, decodeChanges(type, body), timeUs);
  }
  return shadow;
}
