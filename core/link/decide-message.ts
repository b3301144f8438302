import { checkDocumentBytes, decideCapture } from "../capture/decide-capture.js";
import { documentGrowthBytes } from "../json/document-size.js";
import { decideRun } from "../run/decide-run.js";
import type { CellMessage } from "./cell-message.js";
import type { Change } from "./change.js";
import { decideCell } from "./decide-cell.js";
import { RefusedError } from "./refusal.js";
import type { PayloadStore, World } from "./world.js";

/**
 * Decides one message of the cell link: the changes of its record, in order, or a refusal. Pure but for `payload.store`. The times
 * in the changes are `timeUs`, the record's.
 *
 * @throws {RefusedError} Nothing of the message is applied, and nothing of its payload stored.
 */
export function decideMessage(world: World, message: CellMessage, payload: PayloadStore, timeUs: number): Change[] {
  switch (message.type) {
    case "frame.lines":
    case "series.append":
    case "file.put":
      return decideCapture(world, message, payload);
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
      return decideCell(world, message);
    case "frame.begin":
    case "frame.end":
      return roomInDocument(world, decideCapture(world, message, payload));
    default:
      return roomInDocument(world, decideRun(world, message, timeUs));
  }
}

/** The document of a run is bounded as a whole: a change that would let it grow beyond is refused. */
function roomInDocument(world: World, changes: Change[]): Change[] {
  for (const change of changes) {
    if (!("runId" in change) || change.kind === "run_ended") continue;
    const run = world.activeRun(change.runId);
    if (run !== undefined) checkDocumentBytes(run, documentGrowthBytes(change));
  }
  return changes;
}
