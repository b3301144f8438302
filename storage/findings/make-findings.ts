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

/**
 * Reads a segment into columns. It can be read on, because the newest segment grows. Damaged records are left out: recovery and
 * health report them. Runs that failed or were cancelled have no report, so their checks and defects are left out.
 */
export class FindingsScan {
  readonly #fileSystem: FileSystem;
  readonly #path: string;
  readonly #base: number;
  readonly #builder = new FindingsBuilder();
  /** Where the records end that have been read; undefined: nothing has been read. */
  #offset: number | undefined;
  #lastSequence: number;
  #isDamaged = false;

  constructor(fileSystem: FileSystem, metaPath: string, base: number) {
    this.#fileSystem = fileSystem;
    this.#path = `${metaPath}/${segmentName(base)}`;
    this.#base = base;
    this.#lastSequence = base - 1;
  }

  /** Something of the segment could not be read, so its columns are not kept: a repaired segment is read anew. */
  get isDamaged(): boolean {
    return this.#isDamaged;
  }

  /**
   * Reads on, to before this record; what fails must begin anew.
   *
   * @returns whether runs have been added
   * @throws FileSystemError; StorageError for a log of a newer release
   */
  async readTo(endSequence: number): Promise<boolean> {
    if (this.#lastSequence >= endSequence - 1) return false;
    const runs = this.#builder.runs;
    await withFile(this.#fileSystem, this.#path, (file) => this.#read(file, endSequence));
    return this.#builder.runs > runs;
  }

  columns(): BuiltColumns {
    return this.#builder.finish();
  }

  async #read(file: StoreFile, endSequence: number): Promise<void> {
    const base = this.#base;
    const { header } = await readSegmentHeader(file);
    if (header?.base !== base) {
      this.#isDamaged = true;
      return;
    }
    const scan = { file, name: segmentName(base), base, salt: header.salt, endSequence, sizeBytes: await file.size() };
    const from = this.#offset === undefined ? {} : { fromOffset: this.#offset, afterSequence: this.#lastSequence };
    for await (const item of scanSegment({ ...scan, ...from })) {
      if (item.kind === "superseded") break;
      if (item.kind === "damage") this.#isDamaged = true;
      if (item.kind !== "records") continue;
      const { bytes, offset, lastSequence } = item;
      forEachRecord({ bytes, offset, segmentBase: base }, (record) => {
        if (!take(this.#builder, record)) this.#isDamaged = true;
      });
      this.#offset = offset + bytes.length;
      this.#lastSequence = lastSequence;
      if (lastSequence === endSequence - 1) break;
    }
  }
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
