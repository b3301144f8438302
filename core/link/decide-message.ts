import { checkDocumentBytes, decideCapture } from "../capture/decide-capture.js";
import { documentGrowthBytes } from "../json/document-size.js";
import { decideRun } from "../run/decide-run.js";
import type { CellMessage } from "./cell-message-schema.js";
import type { Change } from "./change.js";
import { decideCell } from "./decide-cell.js";
import type { DecisionContext, PayloadStore } from "./decision-context.js";
import { RefusedError } from "./refusal.js";

/**
 * Decides one message of the cell link: returns the changes of its record, in order, or throws a refusal. Only `payload.store` has a side
 * effect.
 *
 * @param timeUs the record's time
 * @throws {RefusedError} when the message is refused; nothing of it is applied and its payload is not stored
 */
export function decideMessage(
  context: DecisionContext,
  message: CellMessage,
  payload: PayloadStore,
  timeUs: number,
): Change[] {
  switch (message.type) {
    case "frame.lines":
    case "series.append":
    case "file.put":
      return decideCapture(context, message, payload);
    default:
      break;
  }
  if (payload.lengthBytes !== 0) {
    throw new RefusedError(
      "size_mismatch",
      `${message.type} carries no payload, but ${payload.lengthBytes} bytes came`,
      {
        path: "payload",
        value: payload.lengthBytes,
        allowed: 0,
      },
    );
  }
  switch (message.type) {
    case "cell.put":
    case "component.put":
    case "component.delete":
    case "program.put":
    case "program.delete":
      return decideCell(context, message);
    case "frame.begin":
    case "frame.end":
      return roomInDocument(context, decideCapture(context, message, payload));
    default:
      return roomInDocument(context, decideRun(context, message, timeUs));
  }
}

/** Refuses changes that would make a run's document too large. */
function roomInDocument(context: DecisionContext, changes: Change[]): Change[] {
  for (const change of changes) {
    if (!("runId" in change) || change.kind === "run_ended") continue;
    const run = context.activeRun(change.runId);
    if (run !== undefined) checkDocumentBytes(run, documentGrowthBytes(change));
  }
  return changes;
}
