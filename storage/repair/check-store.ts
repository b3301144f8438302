import type { Extent } from "../../core/capture/capture.js";
import { CaptureInventory } from "../captures/capture-inventory.js";
import { verifyExtents } from "../captures/capture-reader.js";
import { type DataDirectory, nameIn } from "../disk/data-directory.js";
import { nodeFileSystem } from "../disk/file-system.js";
import { FileSystemError } from "../disk/file-system-error.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { type OnUnreadable, tolerantLookups, tolerantOpens, tolerantReads } from "../disk/tolerant-reads.js";
import {
  type CommittedBatch,
  forEachRecord,
  isOwnRecord,
  type LogRecord,
  type RecordLocation,
} from "../log/committed-batch.js";
import { segmentBaseOf, segmentName } from "../log/segment.js";
import { findLogEvidence } from "../recovery/log-evidence.js";
import { walkLog } from "../recovery/log-walk.js";
import { quarantinedFiles, withoutFoundAgain } from "../recovery/quarantine.js";
import { isCorruption } from "../recovery/recovery-cases.js";
import {
  describeLost,
  MAXIMUM_LISTED_FINDINGS,
  type RecoveryReport,
  RecoveryReportBuilder,
} from "../recovery/recovery-report.js";
import {
  type FileTotals,
  filesIn,
  findNeedlessFiles,
  findQuarantined,
  findUnnamedCaptures,
  totalsOfCaptures,
} from "./check-files.js";
import { type CheckFinding, type CheckFindingCode, codeOf } from "./check-finding.js";
import { checkHints } from "./check-hints.js";

const LOG_FOLDER = "meta";

/** Extents that a record names, in the file at `path` relative to the captures folder. */
export interface NamedExtents {
  path: string;
  extents: readonly Extent[];
  /** True when the record is the tombstone of the file: from here on the file may be missing. */
  isRemoved?: boolean;
}

export interface CheckOptions {
  dataDirectory: DataDirectory;
  fileSystem?: FileSystem;
  /** True while a service writes to the store. What is being written at the time is no finding then. */
  isServed?: boolean;
  /** For a store that is served: the capture files that retention has removed by now, relative to the captures folder. */
  removedSince?(): Promise<Iterable<string>>;
  /** Decodes a record that the log did not write for itself, and returns the stored bytes that it names. Throws when the record cannot be decoded. */
  inspectRecord?(record: LogRecord, location: RecordLocation): readonly NamedExtents[];
  /** Called after the last record. Returns the stored bytes that `inspectRecord` has not returned yet. */
  namedAtEnd?(): readonly NamedExtents[];
  /** Called after each batch of records and each capture file that it names. The bytes are those of log and captures together. */
  onProgress?(progress: CheckProgress): void;
}

export interface CheckProgress {
  bytes: number;
  totalBytes: number;
  records: number;
}

export interface CheckResult {
  /**
   * True when no durable data is damaged or missing, no hint file is damaged or wrong, and the quarantine folder holds
   * no damage. A torn tail or a leftover of a crash is no damage.
   */
  ok: boolean;
  /** The first 1,000. */
  findings: CheckFinding[];
  summary: {
    segments: number;
    records: number;
    logBytes: number;
    lastSequence: number;
    provenSequence: number;
    captureFiles: number;
    captureBytes: number;
    /** Count of the extents that records name and that exist. Each was compared with its CRC. */
    extents: number;
    extentBytes: number;
    quarantineFiles: number;
    quarantineBytes: number;
    findings: number;
    damages: number;
  };
}

/**
 * Verifies every byte of a store without changing anything. The log is verified by the same walk that recovery makes, each record by `inspectRecord`,
 * and the stored bytes that records name by their CRCs. Then it reports files that no record names, and those in quarantine. If the disk cannot read
 * some bytes, open a file or list a folder, the check goes on. That is a finding, and so is what is missing because of it.
 */
export function checkStore(options: CheckOptions): Promise<CheckResult> {
  return new StoreCheck(options).run();
}

/** What a service that writes leaves for a moment, and a crash for longer. */
export const UNDER_WAY: ReadonlySet<CheckFindingCode> = new Set<CheckFindingCode>([
  "tail_cut",
  "temporary_file",
  "hint_missing",
  "capture_left",
  "capture_unnamed",
  "capture_unjudged",
]);

/** One check of a store, with what it has found so far. */
class StoreCheck {
  readonly #options: CheckOptions;
  readonly #directory: DataDirectory;
  readonly #findings: CheckFinding[] = [];
  #findingCount = 0;
  #damages = 0;
  #extents = 0;
  #extentBytes = 0;
  readonly #unreadable = new Set<string>();
  readonly #unreadablePaths = new Set<string>();
  /** False when a part of the log could not be read. */
  #isLogRead = true;
  readonly #lookups: FileSystem;
  readonly #fileSystem: FileSystem;
  readonly #inventory = new CaptureInventory();
  readonly #progress: CheckProgress = { bytes: 0, totalBytes: 0, records: 0 };
  /** Missing files that records name. They are lost, unless a tombstone follows. */
  readonly #missing = new Map<string, { finding: CheckFinding; count: number }>();
  readonly #builder = new RecoveryReportBuilder();

  constructor(options: CheckOptions) {
    this.#options = options;
    this.#directory = options.dataDirectory;
    this.#lookups = tolerantLookups(options.fileSystem ?? nodeFileSystem, this.#onUnreadable);
    this.#fileSystem = tolerantReads(this.#lookups, this.#onUnreadable);
  }

  async run(): Promise<CheckResult> {
    const captures = await totalsOfCaptures(this.#fileSystem, this.#directory);
    const files = await filesIn(this.#fileSystem, this.#directory.metaPath);
    const segments = files.filter(({ name }) => segmentBaseOf(name) !== undefined);
    this.#progress.totalBytes = segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, captures.bytes);

    await this.#checkLog();
    await this.#checkAllNamed(this.#options.namedAtEnd?.() ?? []);
    await this.#forgetRemoved();
    for (const { finding, count } of this.#missing.values()) {
      for (let nth = 0; nth < count; nth++) this.#add(finding, true);
    }
    const { report } = this.#builder;
    const kept = await quarantinedFiles(this.#fileSystem, this.#directory.quarantinePath);
    this.#addFindingsOfLog(report);
    await this.#findNeedless();
    await checkHints(this.#fileSystem, this.#directory, (...found) => this.#add(...found));
    const quarantine = await this.#findQuarantined(report, kept);
    return {
      ok: this.#damages === 0 && report.corruptionCount === 0,
      findings: this.#findings,
      summary: {
        ...logSummary(report),
        captureFiles: captures.files,
        captureBytes: captures.bytes,
        extents: this.#extents,
        extentBytes: this.#extentBytes,
        quarantineFiles: quarantine.files,
        quarantineBytes: quarantine.bytes,
        findings: this.#findingCount + report.findingCount - report.findings.length,
        damages: this.#damages,
      },
    };
  }

  /** Retention may have removed files after the end of the log was read. */
  async #forgetRemoved(): Promise<void> {
    if (this.#missing.size === 0) return;
    for (const path of (await this.#options.removedSince?.()) ?? []) this.#missing.delete(path);
  }

  #add(finding: CheckFinding, isDamage: boolean): void {
    if (!isDamage && this.#options.isServed && UNDER_WAY.has(finding.code)) return;
    this.#findingCount++;
    if (isDamage) this.#damages++;
    if (this.#findings.length < MAXIMUM_LISTED_FINDINGS) this.#findings.push(finding);
  }

  readonly #onUnreadable: OnUnreadable = (path, offset, lengthBytes, { message }) => {
    this.#unreadablePaths.add(path);
    this.#addUnreadable({ code: "unreadable", file: nameIn(this.#directory, path), offset, lengthBytes, message });
  };

  #addUnreadable(finding: CheckFinding): void {
    const { file, offset } = finding;
    if (file === LOG_FOLDER || (file.startsWith(`${LOG_FOLDER}/`) && segmentBaseOf(nameOf(finding)) !== undefined))
      this.#isLogRead = false;
    const place = `${file} ${offset}`;
    // The same place can be met again: the newest segment is read twice, folders are listed more than once, and many extents can lie in one block.
    if (this.#unreadable.has(place)) return;
    if (this.#unreadable.size < MAXIMUM_LISTED_FINDINGS) this.#unreadable.add(place);
    this.#add(finding, true);
  }

  async #checkLog(): Promise<void> {
    try {
      // If the folder could not be listed, the walk would find a log without segments.
      if (!this.#unreadable.has(`${LOG_FOLDER} 0`)) await this.#walkLog();
    } catch (error) {
      // The log is of another release, or the disk fails in another way than by unreadable bytes. The rest of the log cannot be read.
      this.#isLogRead = false;
      const file = error instanceof FileSystemError ? nameIn(this.#directory, error.path) : LOG_FOLDER;
      this.#add({ code: codeOf(error), file, offset: 0, lengthBytes: 0, message: messageOf(error) }, true);
    }
  }

  async #walkLog(): Promise<void> {
    await walkLog({
      fileSystem: tolerantOpens(this.#fileSystem, this.#onUnreadable),
      isUnreadable: (path) => this.#unreadablePaths.has(path),
      directory: this.#directory.metaPath,
      builder: this.#builder,
      evidence: await findLogEvidence(this.#lookups, this.#directory),
      quarantine: async () => null,
      deliversTail: true,
      onRecords: async (batch) => {
        await this.#checkAllNamed(this.#inspectRecords(batch));
        this.#progress.bytes += batch.bytes.length;
        this.#tellProgress();
      },
    });
  }

  /** Decodes the records of a batch; returns the stored bytes that they name. */
  #inspectRecords(batch: CommittedBatch): NamedExtents[] {
    const { inspectRecord } = this.#options;
    const named: NamedExtents[] = [];
    forEachRecord(batch, (record, location) => {
      this.#progress.records++;
      if (isOwnRecord(record.type) || inspectRecord === undefined) return;
      try {
        named.push(...inspectRecord(record, location));
      } catch (error) {
        const message = `record ${record.sequence} (type ${record.type}) cannot be decoded: ${messageOf(error)}`;
        this.#add(ofRecord("record_undecodable", location, message), true);
      }
    });
    return named;
  }

  async #checkAllNamed(named: readonly NamedExtents[]): Promise<void> {
    for (const item of named) {
      await this.#checkNamed(item);
      this.#tellProgress();
    }
  }

  async #checkNamed(item: NamedExtents): Promise<void> {
    const { capturesPath } = this.#directory;
    this.#inventory.note(item.path);
    if (item.isRemoved) {
      this.#missing.delete(item.path);
      if (await this.#fileSystem.exists(`${capturesPath}/${item.path}`)) this.#add(left(item.path), false);
      return;
    }
    let isThere = true;
    for (const finding of await checkExtents(this.#fileSystem, capturesPath, item)) {
      isThere = finding.code !== "capture_missing";
      if (isThere) this.#add(finding, true);
      else this.#missing.set(item.path, { finding, count: (this.#missing.get(item.path)?.count ?? 0) + 1 });
    }
    if (!isThere) return;
    this.#extents += item.extents.length;
    for (const { lengthBytes } of item.extents) {
      this.#extentBytes += lengthBytes;
      this.#progress.bytes += lengthBytes;
    }
  }

  #tellProgress(): void {
    this.#options.onProgress?.({ ...this.#progress });
  }

  #addFindingsOfLog(report: RecoveryReport): void {
    for (const finding of report.findings) {
      const message = `${finding.detail}${describeLost(finding)}`;
      const { code, offset, lengthBytes } = finding;
      this.#add({ code, file: `meta/${finding.segment}`, offset, lengthBytes, message }, isCorruption(code));
    }
  }

  async #findNeedless(): Promise<void> {
    const add = (finding: CheckFinding): void => this.#add(finding, false);
    await findUnnamedCaptures(this.#fileSystem, this.#directory, this.#inventory, this.#isLogRead, add);
    await findNeedlessFiles(this.#fileSystem, this.#directory, add);
  }

  #findQuarantined(report: RecoveryReport, kept: readonly string[]): Promise<FileTotals> {
    // Damage that is still in the log was counted there.
    const notInLog = new Set(withoutFoundAgain(kept, report));
    return findQuarantined(this.#fileSystem, this.#directory, (finding) =>
      this.#add(finding, notInLog.has(nameOf(finding))),
    );
  }
}

function logSummary(report: RecoveryReport) {
  const { segments, records, bytes, lastSequence, provenSequence } = report;
  return { segments, records, logBytes: bytes, lastSequence, provenSequence };
}

async function checkExtents(
  fileSystem: FileSystem,
  capturesPath: string,
  named: NamedExtents,
): Promise<CheckFinding[]> {
  const file = `captures/${named.path}`;
  try {
    const damages = await verifyExtents(fileSystem, `${capturesPath}/${named.path}`, named.extents);
    return damages.map(({ extent, reason }) => ({
      code: "capture_damaged",
      file,
      offset: extent.offset,
      lengthBytes: extent.lengthBytes,
      message: reason,
    }));
  } catch (error) {
    return [{ code: codeOf(error), file, offset: 0, lengthBytes: 0, message: messageOf(error) }];
  }
}

function ofRecord(
  code: CheckFindingCode,
  { segmentBase, offset, length }: RecordLocation,
  message: string,
): CheckFinding {
  return { code, file: `meta/${segmentName(segmentBase)}`, offset, lengthBytes: length, message };
}

function nameOf({ file }: CheckFinding): string {
  return file.slice(file.lastIndexOf("/") + 1);
}

function left(path: string): CheckFinding {
  const message =
    "retention has removed the run's captures, and the next start removes their file; if the file is still there after that, remove it";
  return { code: "capture_left", file: `captures/${path}`, offset: 0, lengthBytes: 0, message };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
