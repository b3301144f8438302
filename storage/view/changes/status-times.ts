/**
 * When runs got the status that they have, for those who follow the runs of one status.
 *
 * When a run leaves the filter, the follower is told of it once more. To decide whether a run may have left, nobody has to remember what each
 * follower was told. It is enough to know the last time at which the follower had been told everything.
 * - A run that has had its status since before then: the follower knows it with that status, or it never matched. The follower is not told.
 * - A run that got its status later may be on the follower's list. The follower is told. At worst the run never was on the list, which is harmless.
 *
 * So a follower never keeps a wrong row. The mark cannot replace that time: of a run that changed before the mark and again after it, only the
 * later change is told.
 */
import { isTerminal, RUN_STATUSES, type RunStatus } from "../../../core/run/run-state.js";

/** More than the runs that can be active, so that the oldest ones have ended long ago. */
const KEPT_TIMES = 16_384;

export class StatusTimes {
  /** By ordinal, the latest change last. */
  readonly #sinceUs = new Map<number, number>();
  /** Runs that are not in the map have had their status since this time or longer. Infinity: nothing is known yet. */
  #othersUs = Number.POSITIVE_INFINITY;

  /** @param nowUs no run was updated later */
  begin(nowUs: number): void {
    this.#othersUs = nowUs;
  }

  changed(ordinal: number, timeUs: number): void {
    if (this.#othersUs === Number.POSITIVE_INFINITY) return;
    this.#sinceUs.delete(ordinal);
    this.#sinceUs.set(ordinal, timeUs);
    if (this.#sinceUs.size <= KEPT_TIMES) return;
    for (const [oldest, sinceUs] of this.#sinceUs) {
      this.#sinceUs.delete(oldest);
      this.#othersUs = Math.max(this.#othersUs, sinceUs);
      return;
    }
  }

  /** The run has had its status since this time, perhaps longer. */
  sinceUs(ordinal: number): number {
    return this.#sinceUs.get(ordinal) ?? this.#othersUs;
  }
}

/** Whether a run of status `now` may have had the status `wanted` before. A run takes its statuses in their order, and stays in a terminal one. */
export function mayHaveBeen(wanted: string, now: RunStatus): boolean {
  const before = RUN_STATUSES.indexOf(wanted as RunStatus);
  return before >= 0 && !isTerminal(wanted as RunStatus) && before < RUN_STATUSES.indexOf(now);
}
