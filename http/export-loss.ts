import type { RunState } from "../core/run-state.js";
import { isTerminal } from "../core/run-state.js";
import { describeLost } from "../storage/recovery-report.js";
import type { RunLoss } from "../storage/run-loss.js";

/** Beside the answers of a run of which the log may have lost something; of a whole one there is none. */
export const LOSS_FILE = "incomplete.json";

/** An export's account of what it may lack. `leftOut`: files that could not be made, for people. */
export function lossAnswer(run: RunState, { findings, unusable }: RunLoss, leftOut: readonly string[]) {
  return {
    message: lossMessage(run, { findings, unusable }),
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
    left_out: leftOut,
  };
}

/** One line. */
export function lossMessage(run: RunState, { findings, unusable }: RunLoss): string {
  const [first] = findings;
  const places =
    first === undefined
      ? unusable[0]
      : `meta/${first.segment}, offset ${first.offset}: ${first.detail}${describeLost(first)}` +
        (findings.length > 1 ? `, and ${findings.length - 1} places more` : "");
  const lacks = isTerminal(run.status)
    ? "what was made or removed of it after its end, or became of its webhooks' deliveries, can be missing"
    : `what came after can be missing, and its status (${run.status}) an earlier one`;
  return `run ${run.id} may be incomplete: the log has lost records that can have been of it (${places}); ${lacks}`;
}
