import type { UnreadablePlace } from "../disk/unreadable-places.js";
import { MAXIMUM_LISTED_FINDINGS, type RecoveryFinding, RecoveryReportBuilder } from "../recovery/recovery-report.js";

/** What may be lost of one run. */
export interface RunLoss {
  /** Lost records after the last record that has the whole run, in order; at most the last 1,000. */
  findings: readonly RecoveryFinding[];
  /** Changes that could be read but not used, because something that they need is lost: texts, the first 1,000. */
  unusable: readonly string[];
  /** Unreadable bytes after that record or beside the log. What is lost with them is mostly among the findings. */
  unreadable: readonly UnreadablePlace[];
}

/**
 * Collects a report, and selects what is lost after a sequence number. The first lost number of a finding decides for
 * all its sequence numbers, because a finding is between two records.
 */
export class LossBuilder extends RecoveryReportBuilder {
  #losses: RecoveryFinding[] = [];

  override add(finding: RecoveryFinding): void {
    super.add(finding);
    if (finding.firstLost === null) return;
    this.#losses.push(finding);
    if (this.#losses.length >= 2 * MAXIMUM_LISTED_FINDINGS) this.#losses = this.#losses.slice(-MAXIMUM_LISTED_FINDINGS);
  }

  /** Findings that lose sequence numbers above this one, in order; at most the last 1,000. */
  behind(sequence: number): RecoveryFinding[] {
    return this.#losses.filter(({ firstLost }) => Number(firstLost) > sequence).slice(-MAXIMUM_LISTED_FINDINGS);
  }
}
