import { type FindingCode, isCorruption, type RecoveryCase } from "./recovery-table.js";

/** What recovery found and did, as data for health, the check command and the log line at start. */

export interface RecoveryFinding {
  code: FindingCode;
  /** File name of the segment. */
  segment: string;
  offset: number;
  lengthBytes: number;
  /**
   * Sequence numbers that are lost with it: from, to; null when none is, `lastLost` also when it cannot be told: of the newest segment, and
   * later of what recovery went on behind with a round number.
   */
  firstLost: number | null;
  lastLost: number | null;
  /** Name of the file in the quarantine folder that has the bytes; null when there is none. */
  quarantineFile: string | null;
  detail: string;
}

/** Findings beyond this are counted, not listed: a report stays a thing that can be sent and read. */
export const MAXIMUM_LISTED_FINDINGS = 1_000;

export interface RecoveryReport {
  segments: number;
  /** What a snapshot had, so that it was not read; null without one. */
  snapshotSequence: number | null;
  /** Records read, opening states and marks among them. */
  records: number;
  /** Bytes of the segments, as far as they were read. */
  bytes: number;
  lastSequence: number;
  /** Every record up to this one was proven durable before the process ended. */
  provenSequence: number;
  /** The largest time of any record: where the service's clock resumes. */
  lastTimeUs: number;
  findings: RecoveryFinding[];
  /** All findings, listed or not. */
  findingCount: number;
  corruptionCount: number;
  /** Durable records that are lost, at least. */
  lostRecords: number;
  /** False when more may be lost than that: it cannot be told how many there were. */
  isLostCountExact: boolean;
  quarantinedBytes: number;
  /** Bytes of the torn tail. */
  cutBytes: number;
  /** Base of the segment that recovery began for the records that were not proven durable; null when it went on in the newest one. */
  newSegmentBase: number | null;
  /** How often each row of the decision table applied. */
  decisions: Partial<Record<RecoveryCase, number>>;
}

/** The numbers that are lost with a finding, for people; empty when none is. */
export function describeLost({ code, firstLost, lastLost }: RecoveryFinding): string {
  if (firstLost === null) return "";
  if (lastLost === null) return `, lost: ${firstLost} to an unknown number`;
  return `, lost: ${firstLost} to ${code === "log_lost" ? "at least " : ""}${lastLost}`;
}

/** Collects a report. */
export class RecoveryReportBuilder {
  readonly report: RecoveryReport = {
    segments: 0,
    snapshotSequence: null,
    records: 0,
    bytes: 0,
    lastSequence: 0,
    provenSequence: 0,
    lastTimeUs: 0,
    findings: [],
    findingCount: 0,
    corruptionCount: 0,
    lostRecords: 0,
    isLostCountExact: true,
    quarantinedBytes: 0,
    cutBytes: 0,
    newSegmentBase: null,
    decisions: {},
  };

  decided(recoveryCase: RecoveryCase): void {
    const { decisions } = this.report;
    decisions[recoveryCase] = (decisions[recoveryCase] ?? 0) + 1;
  }

  add(finding: RecoveryFinding): void {
    const { report } = this;
    report.findingCount++;
    if (isCorruption(finding.code)) {
      report.corruptionCount++;
      if (finding.firstLost !== null && finding.lastLost !== null) {
        report.lostRecords += finding.lastLost - finding.firstLost + 1;
      }
      if (finding.code === "log_lost" || (finding.firstLost !== null && finding.lastLost === null)) {
        report.isLostCountExact = false;
      }
    }
    if (finding.quarantineFile !== null) report.quarantinedBytes += finding.lengthBytes;
    if (finding.code === "tail_cut") report.cutBytes += finding.lengthBytes;
    if (report.findings.length < MAXIMUM_LISTED_FINDINGS) report.findings.push(finding);
  }
}
