import type { Extent } from "../core/capture.js";
import { verifyExtents } from "./capture-reader.js";
import type { DataDirectory } from "./data-directory.js";
import { type FileSystem, nodeFileSystem } from "./file-system.js";
import { forEachRecord, isOwnRecord, type LogRecord, type RecordLocation } from "./log-batch.js";
import { walkLog } from "./log-walk.js";
import { MAXIMUM_LISTED_FINDINGS, type RecoveryReport, RecoveryReportBuilder } from "./recovery-report.js";
import { isCorruption } from "./recovery-table.js";
import { segmentName } from "./segment.js";
import { StorageError } from "./storage-error.js";

/** Extents that a record names, in the file at `path` below the captures folder. */
export interface NamedExtents {
  path: string;
  extents: readonly Extent[];
  /** The record is the tombstone of the file: from here on it may be missing. */
  isRemoved?: boolean;
}

export interface CheckOptions {
  /** Open, so that nobody changes it meanwhile. */
  dataDirectory: DataDirectory;
  fileSystem?: FileSystem;
  understandsType(type: number): boolean;
  /** Decodes a record and tells which stored bytes it is the first to name; throws when it cannot be decoded. */
  inspectRecord?(record: LogRecord, location: RecordLocation): readonly NamedExtents[];
  /** Called after each batch of records. */
  onProgress?(progress: { bytes: number; records: number }): void;
}

export interface CheckFinding {
  /** A code of the recovery table, or `record_undecodable`, `capture_damaged`, `capture_missing`, `capture_left`, `format_unsupported`, … */
  code: string;
  /** File, relative to the data directory. */
  file: string;
  offset: number;
  lengthBytes: number;
  message: string;
}

export interface CheckResult {
  /** True when nothing durable is damaged or missing. A torn tail or a leftover of a crash is listed and is no damage. */
  ok: boolean;
  /** The first 1,000. */
  findings: CheckFinding[];
  summary: {
    segments: number;
    records: number;
    logBytes: number;
    lastSequence: number;
    provenSequence: number;
    extents: number;
    extentBytes: number;
    findings: number;
    damages: number;
  };
}

/**
 * Verifies every byte of a store, changing nothing: the log by the very walk that recovery makes, each record by `inspectRecord`, and the
 * stored bytes that the records name by their CRCs.
 */
export async function checkStore(options: CheckOptions): Promise<CheckResult> {
  const { dataDirectory, fileSystem = nodeFileSystem, inspectRecord, onProgress } = options;
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

  /** Files that records name and that are not there: lost, unless a tombstone comes. */
  const missing = new Map<string, { finding: CheckFinding; count: number }>();
  const checkNamed = async (item: NamedExtents): Promise<void> => {
    if (item.isRemoved) {
      missing.delete(item.path);
      if (await fileSystem.exists(`${dataDirectory.capturesPath}/${item.path}`)) add(left(item.path), false);
      return;
    }
    for (const finding of await checkExtents(fileSystem, dataDirectory.capturesPath, item)) {
      if (finding.code !== "capture_missing") add(finding, true);
      else missing.set(item.path, { finding, count: (missing.get(item.path)?.count ?? 0) + 1 });
    }
  };

  const builder = new RecoveryReportBuilder();
  const progress = { bytes: 0, records: 0 };
  try {
    await walkLog({
      fileSystem,
      directory: dataDirectory.metaPath,
      firstSequence: 1,
      understandsType: (type) => options.understandsType(type),
      builder,
      quarantine: async () => null,
      deliversTail: true,
      onRecords: async (batch) => {
        const named: NamedExtents[] = [];
        forEachRecord(batch, (record, location) => {
          progress.records++;
          if (isOwnRecord(record.type) || inspectRecord === undefined) return;
          try {
            named.push(...inspectRecord(record, location));
          } catch (error) {
            const message = `record ${record.sequence} (type ${record.type}) cannot be decoded: ${messageOf(error)}`;
            const file = `meta/${segmentName(location.segmentBase)}`;
            add(
              { code: "record_undecodable", file, offset: location.offset, lengthBytes: location.length, message },
              true,
            );
          }
        });
        for (const item of named) {
          extents += item.extents.length;
          for (const extent of item.extents) extentBytes += extent.lengthBytes;
          await checkNamed(item);
        }
        progress.bytes += batch.bytes.length;
        onProgress?.({ ...progress });
      },
    });
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    add({ code: error.code, file: "meta", offset: 0, lengthBytes: 0, message: error.message }, true);
  }
  for (const { finding, count } of missing.values()) for (let nth = 0; nth < count; nth++) add(finding, true);
  const { report } = builder;
  for (const finding of report.findings) {
    const lost = finding.firstLost === null ? "" : `, lost: ${finding.firstLost} to ${finding.lastLost ?? "?"}`;
    const message = `${finding.detail}${lost}`;
    const { code, offset, lengthBytes } = finding;
    add({ code, file: `meta/${finding.segment}`, offset, lengthBytes, message }, isCorruption(code));
  }
  const unlisted = report.findingCount - report.findings.length;
  return {
    ok: damages === 0 && report.corruptionCount === 0,
    findings,
    summary: { ...logSummary(report), extents, extentBytes, findings: findingCount + unlisted, damages },
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
    if (!(error instanceof StorageError)) throw error;
    return [{ code: error.code, file, offset: 0, lengthBytes: 0, message: error.message }];
  }
}

function left(path: string): CheckFinding {
  const message = "retention has removed the run's captures; their file goes when the service starts next";
  return { code: "capture_left", file: `captures/${path}`, offset: 0, lengthBytes: 0, message };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
