/** Compares a record's index section, from which lists are made, with its body, from which everything else is made. */
import type { Change, RunEnded } from "../../../core/link/change.js";
import { storedEnd } from "../../../core/run/run-files.js";
import { foldRun } from "../../../core/run/run-fold.js";
import { type RunSummary, summarizeRun } from "../../../core/run/run-state.js";
import type { EmittedEvent } from "../../../core/webhook/emitted-event.js";
import type { IndexedEvent } from "../../../storage/records/event-index.js";
import { RECORD_TYPE, type RecordIndex } from "../../../storage/records/record-index.js";

/** Values of the index section or of the body, by name, for comparison. */
type Said = Record<string, unknown>;

/** How index section and body differ; undefined when they agree, and for records whose index section says nothing about the body. */
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

/** `isOpen` of the captures is not compared: it depends on the formats of the release that wrote the record. */
function endFault(
  { summary, frameIds, captures, events }: Extract<RecordIndex, { type: 19 }>,
  { run }: RunEnded,
): string | undefined {
  const said: Said = {
    ...saidOfRun(summary),
    frames: frameIds,
    events: saidOfEvents(events?.list() ?? []),
    captures: [captures.bytes, captures.removedAtUs],
  };
  const meant: Said = {
    ...saidOfRun(summarizeRun(run)),
    frames: run.frames.map(({ id }) => id),
    events: saidOfEvents(run.emitted ?? []),
    captures: [storedEnd(run, "captures"), run.capturesRemovedAtUs],
  };
  return difference(said, meant);
}

/** A null time is 0 in an index section. */
function saidOfRun(summary: RunSummary): Said {
  return { ...summary, startedAtUs: summary.startedAtUs || null, completedAtUs: summary.completedAtUs || null };
}

function saidOfEvents(events: readonly (EmittedEvent | IndexedEvent)[]): unknown {
  return events.map(({ id, name, timeUs, deliveries }) => [
    ...[id, name, timeUs],
    deliveries.map((one) => [one.id, one.webhookId, one.onFailureMode, one.settled === true]),
  ]);
}

function difference(said: Said, meant: Said): string | undefined {
  // Compared as JSON, because the index section has the metadata as JSON text, where -0 is 0.
  const isOther = (name: string): boolean => JSON.stringify(said[name] ?? null) !== JSON.stringify(meant[name] ?? null);
  const names = Object.keys(meant).filter(isOther);
  return names.length === 0 ? undefined : `its index section and its body differ in ${names.join(", ")}`;
}
