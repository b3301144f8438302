import type { UnreadablePlace } from "../disk/unreadable-places.js";
import { MAXIMUM_LISTED_FINDINGS, type RecoveryFinding, RecoveryReportBuilder } from "../recovery/recovery-report.js";

/** What the log may have lost of one run. */
export interface RunLoss {
  /** Lost numbers behind the last record that has a part of the run as a whole, the first ones first; of many the last 1,000. */
  findings: readonly RecoveryFinding[];
  /** What could be read and not be used, since what it needs is lost. For people; the first 1,000. */
  unusable: readonly string[];
  /** What the disk does not give, behind that record or beside the log; what is lost with it is mostly among the findings. */
  unreadable: readonly UnreadablePlace[];
}

/**
 * Collects a report, and of it what is lost behind a number. A finding comes between the records around it, so where its first lost number
 * lies tells where all of them do.
 */
export class LossBuilder extends RecoveryReportBuilder {
  #losses: RecoveryFinding[] = [];

  override add(finding: RecoveryFinding): void {
    super.add(finding);
    if (finding.firstLost === null) return;
    this.#losses.push(finding);
    if (this.#losses.length >= 2 * MAXIMUM_LISTED_FINDINGS) this.#losses = this.#losses.slice(-MAXIMUM_LISTED_FINDINGS);
  }

  /** Those that lose numbers above this one, in order: all, or of many the last 1,000. */
  behind(sequence: number): RecoveryFinding[] {
    return this.#losses.filter(({ firstLost }) => Number(firstLost) > sequence).slice(-MAXIMUM_LISTED_FINDINGS);
  }
}
