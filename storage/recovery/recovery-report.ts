import type { SealedSegment } from "../log/log-options.js";
import { type FindingCode, isCorruption, type RecoveryCase } from "./recovery-cases.js";

/** What recovery found and did, as data for health, the check command and the log line at start. */

export interface RecoveryFinding {
  code: FindingCode;
  /** File name of the segment. */
  segment: string;
  offset: number;
  lengthBytes: number;
  /**
   * The first and the last lost sequence number; null when none is lost. `lastLost` is also null when nobody knows it.
   * That is so in the newest segment, and later in the gap before the round number with which recovery went on.
   */
  firstLost: number | null;
  lastLost: number | null;
  /** Name of the copy in the quarantine folder; null when there is none. */
  quarantineFile: string | null;
  detail: string;
}

/** A report lists no more findings than this, so that it can be sent and read. The others are only counted. */
export const MAXIMUM_LISTED_FINDINGS = 1_000;

export interface RecoveryReport {
  segments: number;
  /** Count of the segments that were taken from their hint files. */
  hints: number;
  /** Count of the records that were read, with opening states and marks. Records from hint files do not count. */
  records: number;
  /** Bytes of the segments and hint files that were read. */
  bytes: number;
  lastSequence: number;
  /** The log proves that every record up to this one was durable before the process ended. */
  provenSequence: number;
  /** The largest time of any record; the service's clock goes on from there. */
  lastTimeUs: number;
  findings: RecoveryFinding[];
  /** Count of all findings, listed or not. */
  findingCount: number;
  corruptionCount: number;
  /** Count of durable records that are lost, at least. */
  lostRecords: number;
  /** False when more may be lost, because nobody knows how many there were. */
  isLostCountExact: boolean;
  quarantinedBytes: number;
  /** Bytes of the torn tail. */
  cutBytes: number;
  /** Base of the segment that recovery began; null when it went on in the newest one. */
  newSegmentBase: number | null;
  /** Base of the segment that the next records go to. */
  segmentBase: number;
  /** Sealed segments that should get a hint file. */
  unhinted: SealedSegment[];
  /** How often each case applied. */
  decisions: Partial<Record<RecoveryCase, number>>;
}

/** The lost sequence numbers of a finding, for people; empty when none is lost. */
export function describeLost({ code, firstLost, lastLost }: RecoveryFinding): string {
  if (firstLost === null) return "";
  if (lastLost === null) return `, lost: ${firstLost} to an unknown number`;
  return `, lost: ${firstLost} to ${code === "log_lost" ? "at least " : ""}${lastLost}`;
}

/** Collects a report. */
export class RecoveryReportBuilder {
  readonly report: RecoveryReport = {
    segments: 0,
    hints: 0,
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
    segmentBase: 0,
    unhinted: [],
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
