import type { RunState } from "../../core/run/run-state.js";
import { isTerminal } from "../../core/run/run-state.js";
import { describeLost } from "../../storage/recovery/recovery-report.js";
import type { RunLoss } from "../../storage/view/run-loss.js";

/** Beside the answers of a run of which the log may have lost something; of a whole one there is none. */
export const LOSS_FILE = "incomplete.json";

/**
 * An export's account of what it may lack. `leftOut`: files that could not be made, for people; `nameOf` a path: as it stands in the data
 * directory.
 */
export function lossAnswer(run: RunState, loss: RunLoss, leftOut: readonly string[], nameOf: (path: string) => string) {
  const { findings, unusable, unreadable } = loss;
  return {
    message: lossMessage(run, loss, nameOf),
    lost: findings.map(({ code, segment, offset, lengthBytes, firstLost, lastLost, detail }) => ({
      code,
      file: `meta/${segment}`,
      offset,
      length_bytes: lengthBytes,
      first_sequence: firstLost,
      last_sequence: lastLost,
      detail,
    })),
    unusable,
    unreadable: unreadable.map(({ path, offset, lengthBytes, message }) => ({
      file: nameOf(path),
      offset,
      length_bytes: lengthBytes,
      detail: message,
    })),
    left_out: leftOut,
  };
}

/** One line. */
export function lossMessage(
  run: RunState,
  { findings, unusable, unreadable }: RunLoss,
  nameOf: (path: string) => string,
): string {
  const [first] = findings;
  const places: string[] = [];
  if (first !== undefined) {
    const more = findings.length > 1 ? `, and ${findings.length - 1} places more` : "";
    places.push(`meta/${first.segment}, offset ${first.offset}: ${first.detail}${describeLost(first)}${more}`);
  } else if (unusable[0] !== undefined) {
    places.push(unusable[0]);
  }
  const [unread] = unreadable;
  if (unread !== undefined) {
    const more = unreadable.length > 1 ? `, nor ${unreadable.length - 1} places more` : "";
    places.push(`the disk does not give ${nameOf(unread.path)}, offset ${unread.offset}${more}`);
  }
  const cause =
    findings.length + unusable.length > 0
      ? "the log has lost records that can have been of it"
      : "what cannot be read can have been of it, or tell that the log has lost records";
  const lacks = isTerminal(run.status)
    ? "what was made or removed of it after its end, or became of its webhooks' deliveries, can be missing"
    : `what came after can be missing, and its status (${run.status}) an earlier one`;
  return `run ${run.id} may be incomplete: ${cause} (${places.join("; ")}); ${lacks}`;
}
