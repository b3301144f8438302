/** Whether a record's index section, by which lists are made and found, says what its body does, by which the rest is. */
import type { Change, RunEnded } from "../../core/link/change.js";
import { storedEnd } from "../../core/run/run-files.js";
import { foldRun } from "../../core/run/run-fold.js";
import { summarizeRun } from "../../core/run/run-state.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { RECORD_TYPE, type RecordIndex, type StoredSummary } from "../records/record-index.js";
import type { IndexedEvent } from "../records/webhook-record.js";

/** What both say, by name; as it can be compared. */
type Said = Record<string, unknown>;

/** What the two differ in; undefined where they agree, and for records of which the index section says nothing of the body. */
export function indexFault(index: RecordIndex, changes: readonly Change[], timeUs: number): string | undefined {
  const [first] = changes;
  switch (index.type) {
    case RECORD_TYPE.runCreated:
      if (first?.kind !== "run_created") return undefined;
      return difference(saidOfRun(index.summary), saidOfRun(summarizeRun(foldRun(undefined, first, timeUs))));
    case RECORD_TYPE.runDelta: {
      const frameId = first?.kind === "frame_begun" ? first.frame.id : null;
      const event = first?.kind === "run_started" ? first.event : undefined;
      const said = { frame: index.frameId, events: saidOfEvents(index.events?.list() ?? []) };
      return difference(said, { frame: frameId, events: saidOfEvents(event === undefined ? [] : [event]) });
    }
    case RECORD_TYPE.runEnded:
      return first?.kind === "run_ended" ? endFault(index, first) : undefined;
    default:
      return undefined;
  }
}

/** Whether something is still to be made of the captures is left out: that goes by the formats of the release that wrote it. */
function endFault(
  { summary, frameIds, captures, events }: Extract<RecordIndex, { type: 19 }>,
  { run }: RunEnded,
): string | undefined {
  const said: Said = { ...saidOfRun(summary), frames: frameIds, events: saidOfEvents(events?.list() ?? []) };
  const meant: Said = {
    ...saidOfRun(summarizeRun(run)),
    frames: run.frames.map(({ id }) => id),
    events: saidOfEvents(run.emitted ?? []),
  };
  // Records of before do not say these two.
  if (summary.qualityStatus === undefined) delete meant.qualityStatus;
  if (captures.bytes !== null) {
    said.captures = [captures.bytes, captures.removedAtUs];
    meant.captures = [storedEnd(run, "captures"), run.capturesRemovedAtUs];
  }
  return difference(said, meant);
}

/** An index section has 0 in place of a time that is null. */
function saidOfRun(summary: StoredSummary): Said {
  return { ...summary, startedAtUs: summary.startedAtUs || null, completedAtUs: summary.completedAtUs || null };
}

function saidOfEvents(events: readonly (EmittedEvent | IndexedEvent)[]): unknown {
  return events.map(({ id, name, timeUs, deliveries }) => [
    ...[id, name, timeUs],
    deliveries.map((one) => [one.id, one.webhookId, one.onFailureMode, one.settled === true]),
  ]);
}

function difference(said: Said, meant: Said): string | undefined {
  // As JSON, in which the index section has metadata: -0 is 0 there.
  const isOther = (name: string): boolean => JSON.stringify(said[name] ?? null) !== JSON.stringify(meant[name] ?? null);
  const names = Object.keys(meant).filter(isOther);
  return names.length === 0 ? undefined : `its index section and its body differ in ${names.join(", ")}`;
}
