import type { Extent } from "../../core/capture/capture.js";
import { CaptureInventory } from "../captures/capture-inventory.js";
import { verifyExtents } from "../captures/capture-reader.js";
import { type DataDirectory, nameIn } from "../disk/data-directory.js";
import { type FileSystem, FileSystemError, nodeFileSystem } from "../disk/file-system.js";
import { type OnUnreadable, tolerantLookups, tolerantOpens, tolerantReads } from "../disk/tolerant-reads.js";
import {
  type CommittedBatch,
  forEachRecord,
  isOwnRecord,
  type LogRecord,
  type RecordLocation,
} from "../log/log-batch.js";
import { quarantinedFiles, withoutFoundAgain } from "../log/quarantine.js";
import { LOG_RECORD_TYPE } from "../log/record-format.js";
import { segmentBaseOf, segmentName } from "../log/segment.js";
import { findLogEvidence } from "../recovery/log-evidence.js";
import { walkLog } from "../recovery/log-walk.js";
import {
  describeLost,
  MAXIMUM_LISTED_FINDINGS,
  type RecoveryReport,
  RecoveryReportBuilder,
} from "../recovery/recovery-report.js";
import { isCorruption } from "../recovery/recovery-table.js";
import { StorageError } from "../storage-error.js";
import { filesIn, findNeedlessFiles, findQuarantined, findUnnamedCaptures, totalsOfCaptures } from "./check-files.js";
import type { CheckFinding, CheckFindingCode } from "./check-finding.js";

const LOG_FOLDER = "meta";

/** Extents that a record names, in the file at `path` below the captures folder. */
export interface NamedExtents {
  path: string;
  extents: readonly Extent[];
  /** The record is the tombstone of the file: from here on it may be missing. */
  isRemoved?: boolean;
  /** What is wrong with these being named here, whatever the bytes are. */
  fault?: string;
}

/** What is wrong with a record that can be decoded. */
export interface RecordFault {
  location: RecordLocation;
  message: string;
}

export interface CheckOptions {
  /** Open, so that nobody changes it meanwhile. */
  dataDirectory: DataDirectory;
  fileSystem?: FileSystem;
  understandsType(type: number): boolean;
  /**
   * Decodes a record of the owner's, or a dropped stretch, and tells which stored bytes are known by it; throws when it cannot be decoded.
   */
  inspectRecord?(record: LogRecord, location: RecordLocation): readonly NamedExtents[];
  /** Is handed all records, and tells at the end what it found beside them. */
  folds?: FoldCheck | undefined;
  /** Behind the last record: stored bytes that none has told of yet. */
  namedAtEnd?(): readonly NamedExtents[];
  /**
   * Behind the last record: what is wrong with them, beside that some cannot be decoded. `isLogWhole`: the log has lost no record that could be
   * what another one refers to, not even one of which only quarantine tells.
   */
  recordFaults?(isLogWhole: boolean): readonly RecordFault[];
  /** Called after each batch of records and each capture file that it names; the bytes are those of log and captures. */
  onProgress?(progress: CheckProgress): void;
}

export interface CheckProgress {
  bytes: number;
  totalBytes: number;
  records: number;
}

/** A check of what is kept of the log elsewhere, against the log as it is read. */
export interface FoldCheck {
  take(batch: CommittedBatch): void;
  /** `isDamaged`: what it found says that the disk did not keep it; `isFault`: that the service is wrong. */
  finish(isLogIntact: boolean): Promise<{ findings: CheckFinding[]; isDamaged: boolean; isFault: boolean }>;
}

export interface CheckResult {
  /**
   * True when nothing durable is damaged or missing, a snapshot neither, nothing that was is left in quarantine, and `folds` found no fault.
   * A torn tail or a leftover of a crash is no damage.
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
    /** Stored bytes that records name and that are there, each extent compared with its CRC. */
    extents: number;
    extentBytes: number;
    quarantineFiles: number;
    quarantineBytes: number;
    findings: number;
    damages: number;
  };
}

/**
 * Verifies every byte of a store, changing nothing: the log by the very walk that recovery makes, each record by `inspectRecord`, and the
 * stored bytes that the records name by their CRCs; then names the files that no record names, and what quarantine keeps. A disk that
 * does not give some bytes, does not open a file or list a folder ends no check: that is a finding, and so is what is missing for it.
 */
export async function checkStore(options: CheckOptions): Promise<CheckResult> {
  const { dataDirectory, inspectRecord, onProgress } = options;
  const findings: CheckFinding[] = [];
  let findingCount = 0;
  let damages = 0;
  let extents = 0;
  let extentBytes = 0;
  const add = (finding: CheckFinding, isDamage: boolean): void => {
    findingCount++;
    if (isDamage) damages++;
    if (findings.length < MAXIMUM_LISTED_FINDINGS) findings.push(finding);
  };

  const unreadable = new Set<string>();
  /** False once a part of the log could not be: what it says is not known. */
  let isLogRead = true;
  let undecodable = 0;
  const addUnreadable = (finding: CheckFinding): void => {
    const { file, offset } = finding;
    if (file === LOG_FOLDER || (file.startsWith(`${LOG_FOLDER}/`) && segmentBaseOf(nameOf(finding)) !== undefined))
      isLogRead = false;
    const place = `${file} ${offset}`;
    // The newest segment is walked twice, folders are listed more than once, and many extents can lie within one block.
    if (unreadable.has(place)) return;
    if (unreadable.size < MAXIMUM_LISTED_FINDINGS) unreadable.add(place);
    add(finding, true);
  };
  const unreadablePaths = new Set<string>();
  const onUnreadable: OnUnreadable = (path, offset, lengthBytes, { message }) => {
    unreadablePaths.add(path);
    addUnreadable({ code: "unreadable", file: nameIn(dataDirectory, path), offset, lengthBytes, message });
  };
  const lookups = tolerantLookups(options.fileSystem ?? nodeFileSystem, onUnreadable);
  const fileSystem = tolerantReads(lookups, onUnreadable);
  const inventory = new CaptureInventory();
  const captures = await totalsOfCaptures(fileSystem, dataDirectory);
  const segments = await filesIn(fileSystem, dataDirectory.metaPath);
  const progress: CheckProgress = {
    bytes: 0,
    totalBytes: segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, captures.bytes),
    records: 0,
  };

  /** Files that records name and that are not there: lost, unless a tombstone comes. */
  const missing = new Map<string, { finding: CheckFinding; count: number }>();
  const checkNamed = async (item: NamedExtents): Promise<void> => {
    inventory.note(item.path);
    if (item.fault !== undefined) add(inconsistent(item, item.fault), true);
    if (item.isRemoved) {
      missing.delete(item.path);
      if (await fileSystem.exists(`${dataDirectory.capturesPath}/${item.path}`)) add(left(item.path), false);
      return;
    }
    let isThere = true;
    for (const finding of await checkExtents(fileSystem, dataDirectory.capturesPath, item)) {
      isThere = finding.code !== "capture_missing";
      if (isThere) add(finding, true);
      else missing.set(item.path, { finding, count: (missing.get(item.path)?.count ?? 0) + 1 });
    }
    if (!isThere) return;
    extents += item.extents.length;
    for (const { lengthBytes } of item.extents) {
      extentBytes += lengthBytes;
      progress.bytes += lengthBytes;
    }
  };

  const checkAllNamed = async (named: readonly NamedExtents[]): Promise<void> => {
    for (const item of named) {
      await checkNamed(item);
      onProgress?.({ ...progress });
    }
  };

  const builder = new RecoveryReportBuilder();
  const walk = async (): Promise<void> => {
    await walkLog({
      fileSystem: tolerantOpens(fileSystem, onUnreadable),
      isUnreadable: (path) => unreadablePaths.has(path),
      directory: dataDirectory.metaPath,
      firstSequence: 1,
      understandsType: (type) => options.understandsType(type),
      builder,
      evidence: await findLogEvidence(lookups, dataDirectory),
      quarantine: async () => null,
      deliversTail: true,
      onRecords: async (batch) => {
        options.folds?.take(batch);
        const named: NamedExtents[] = [];
        forEachRecord(batch, (record, location) => {
          progress.records++;
          const hasOwner = !isOwnRecord(record.type) || record.type === LOG_RECORD_TYPE.dropped;
          if (!hasOwner || inspectRecord === undefined) return;
          try {
            named.push(...inspectRecord(record, location));
          } catch (error) {
            const message = `record ${record.sequence} (type ${record.type}) cannot be decoded: ${messageOf(error)}`;
            undecodable++;
            add(ofRecord("record_undecodable", location, message), true);
          }
        });
        await checkAllNamed(named);
        progress.bytes += batch.bytes.length;
        onProgress?.({ ...progress });
      },
    });
  };
  try {
    // A folder that is not listed is no log without segments.
    if (!unreadable.has(`${LOG_FOLDER} 0`)) await walk();
  } catch (error) {
    // Of another release, or of a disk that fails in another way than not giving its bytes: what is behind cannot be walked.
    isLogRead = false;
    const file = error instanceof FileSystemError ? nameIn(dataDirectory, error.path) : LOG_FOLDER;
    add({ code: codeOf(error), file, offset: 0, lengthBytes: 0, message: messageOf(error) }, true);
  }
  await checkAllNamed(options.namedAtEnd?.() ?? []);
  for (const { finding, count } of missing.values()) for (let nth = 0; nth < count; nth++) add(finding, true);
  const { report } = builder;
  const kept = await quarantinedFiles(fileSystem, dataDirectory.quarantinePath);
  const isKeptKnown = !unreadable.has("quarantine 0");
  const isLogWhole = isLogRead && undecodable + report.corruptionCount + kept.length === 0 && isKeptKnown;
  for (const { location, message } of options.recordFaults?.(isLogWhole) ?? [])
    add(ofRecord("record_inconsistent", location, message), true);
  for (const finding of report.findings) {
    const message = `${finding.detail}${describeLost(finding)}`;
    const { code, offset, lengthBytes } = finding;
    add({ code, file: `meta/${finding.segment}`, offset, lengthBytes, message }, isCorruption(code));
  }
  await findUnnamedCaptures(fileSystem, dataDirectory, inventory, isLogRead, (finding) => add(finding, false));
  await findNeedlessFiles(fileSystem, dataDirectory, (finding) => add(finding, false));
  const isLogIntact = damages === 0 && report.corruptionCount === 0;
  // Counted once, where the log still has it.
  const notInLog = new Set(withoutFoundAgain(kept, report));
  const quarantine = await findQuarantined(fileSystem, dataDirectory, (finding) =>
    add(finding, notInLog.has(nameOf(finding))),
  );
  const unlisted = report.findingCount - report.findings.length;
  const folds = await options.folds?.finish(isLogIntact);
  for (const finding of folds?.findings ?? []) {
    if (finding.code === "unreadable") addUnreadable(finding);
    else add(finding, folds?.isDamaged === true);
  }
  return {
    ok: damages === 0 && report.corruptionCount === 0 && folds?.isFault !== true,
    findings,
    summary: {
      ...logSummary(report),
      captureFiles: captures.files,
      captureBytes: captures.bytes,
      extents,
      extentBytes,
      quarantineFiles: quarantine.files,
      quarantineBytes: quarantine.bytes,
      findings: findingCount + unlisted,
      damages,
    },
  };
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

function inconsistent({ path, extents }: NamedExtents, message: string): CheckFinding {
  const lengthBytes = extents.reduce((sum, extent) => sum + extent.lengthBytes, 0);
  return {
    code: "record_inconsistent",
    file: `captures/${path}`,
    offset: extents[0]?.offset ?? 0,
    lengthBytes,
    message,
  };
}

function nameOf({ file }: CheckFinding): string {
  return file.slice(file.lastIndexOf("/") + 1);
}

function left(path: string): CheckFinding {
  const message =
    "retention has removed the run's captures; their file goes when the service starts next, unless it could not be unlinked and more " +
    "than 32 runs were removed since: then remove it";
  return { code: "capture_left", file: `captures/${path}`, offset: 0, lengthBytes: 0, message };
}

/** What the store or the disk says; anything else is a fault of the check itself. */
function codeOf(error: unknown): CheckFindingCode {
  if (error instanceof StorageError) return error.code;
  if (error instanceof FileSystemError) return "unreadable";
  throw error;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
