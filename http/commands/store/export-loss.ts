import { counted } from "../../../core/counted.js";
import type { RunState } from "../../../core/run/run-state.js";
import { isTerminal } from "../../../core/run/run-state.js";
import { describeLost } from "../../../storage/recovery/recovery-report.js";
import type { RunLoss } from "../../../storage/view/run-loss.js";

/** Written beside the run's answers if the log may have lost a part of the run; a complete run has no such file. */
export const LOSS_FILE = "incomplete.json";

/**
 * The content of `incomplete.json`: what the export may lack.
 * @param leftOut files that could not be made, each with the reason, for people
 * @param nameOf gives a path relative to the data directory
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

/** What the export may lack, in one line for people. */
export function lossMessage(
  run: RunState,
  { findings, unusable, unreadable }: RunLoss,
  nameOf: (path: string) => string,
): string {
  const [first] = findings;
  const places: string[] = [];
  if (first !== undefined) {
    const more = findings.length > 1 ? `, and ${counted(findings.length - 1, "more place")}` : "";
    places.push(`meta/${first.segment}, offset ${first.offset}: ${first.detail}${describeLost(first)}${more}`);
  } else if (unusable[0] !== undefined) {
    places.push(unusable[0]);
  }
  const [unread] = unreadable;
  if (unread !== undefined) {
    const more = unreadable.length > 1 ? `, and ${counted(unreadable.length - 1, "more place")}` : "";
    places.push(`the disk cannot read ${nameOf(unread.path)}, offset ${unread.offset}${more}`);
  }
  const cause =
    findings.length + unusable.length > 0
      ? "the log has lost records that may belong to it"
      : "the places that cannot be read may belong to it, or show that the log has lost records";
  const lacks = isTerminal(run.status)
    ? "later changes may be missing: files that were made or removed after its end, and the outcome of its webhook deliveries"
    : `later changes may be missing, and its status (${run.status}) may be out of date`;
  return `run ${run.id} may be incomplete: ${cause} (${places.join("; ")}); ${lacks}`;
}
