import { RUN_STATUSES } from "../../core/run/run-state.js";
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { withFile } from "../disk/whole-files.js";
import { forEachRecord, type LogRecord } from "../log/committed-batch.js";
import { readSegmentHeader, segmentName } from "../log/segment.js";
import { RecordDecodeError } from "../records/record-decode-error.js";
import { indexedEnd } from "../records/record-fold.js";
import { RECORD_TYPE } from "../records/record-index.js";
import { scanSegment } from "../recovery/segment-scan.js";
import { type BuiltColumns, FindingsBuilder } from "./findings-builder.js";
import { runFindings } from "./run-findings.js";

const COMPLETED = RUN_STATUSES.indexOf("completed");
const NO_FINDINGS = { checks: [], defects: [] };

export interface MadeFindings {
  columns: BuiltColumns;
  /** Something of the segment could not be read, so its columns are not kept: a repaired segment is read anew. */
  isDamaged: boolean;
}

/**
 * Reads a segment and makes its columns. Damaged records are left out: recovery and health report them. Runs that failed or were
 * cancelled have no report, so their checks and defects are left out.
 *
 * @param endSequence records from this sequence number on are left out
 * @throws FileSystemError; StorageError for a log of a newer release
 */
export function makeFindings(
  fileSystem: FileSystem,
  metaPath: string,
  base: number,
  endSequence: number,
): Promise<MadeFindings> {
  return withFile(fileSystem, `${metaPath}/${segmentName(base)}`, (file) => readFindings(file, base, endSequence));
}

async function readFindings(file: StoreFile, base: number, endSequence: number): Promise<MadeFindings> {
  const builder = new FindingsBuilder();
  const { header } = await readSegmentHeader(file);
  let isDamaged = header?.base !== base;
  if (header !== null && !isDamaged) {
    const { salt } = header;
    const scan = { file, name: segmentName(base), base, salt, endSequence, sizeBytes: await file.size() };
    for await (const item of scanSegment(scan)) {
      if (item.kind === "superseded") break;
      if (item.kind === "damage") isDamaged = true;
      if (item.kind !== "records") continue;
      forEachRecord({ bytes: item.bytes, offset: item.offset, segmentBase: base }, (record) => {
        if (!take(builder, record)) isDamaged = true;
      });
      if (item.lastSequence === endSequence - 1) break;
    }
  }
  return { columns: builder.finish(), isDamaged };
}

/** False for a record that cannot be decoded. */
function take(builder: FindingsBuilder, { type, index, body, sequence }: LogRecord): boolean {
  if (type !== RECORD_TYPE.runEnded) return true;
  try {
    const { run } = indexedEnd(index);
    // Later records of the run, with its captures' files or without them, have a later time.
    if (run.updatedAtUs !== run.completedAtUs) return true;
    const { checks, defects } = run.statusCode === COMPLETED ? runFindings(body) : NO_FINDINGS;
    builder.add(run, sequence, checks, defects);
    return true;
  } catch (error) {
    if (error instanceof RecordDecodeError) return false;
    throw error;
  }
}
