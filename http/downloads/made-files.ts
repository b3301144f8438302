/**
 * The formats that are made again for every reader: PLY and overview of a frame, CSV of a series. Only their length and
 * the position of each piece are stored or known, for Content-Length and ranges. A piece is made from the lines or rows
 * that it covers.
 */
import { cloudOf, csvOf } from "../../core/capture/artefact.js";
import type { Extent, FrameState, LineBatch, SeriesAppend, SeriesState } from "../../core/capture/capture.js";
import { npyHeader } from "../../core/capture/npy-header.js";
import { plyHeader, vertexBytes } from "../../core/capture/ply-header.js";
import type { RunState } from "../../core/run/run-state.js";
import { frameSource } from "../../workers/artefacts/frame/frame-source.js";
import { heightExtents } from "../../workers/artefacts/frame/plane-crcs.js";
import type { TaskInput, TaskName, TaskOutput } from "../../workers/artefacts/pool/artefact-tasks.js";
import { csvHeader } from "../../workers/artefacts/series/csv-encoder.js";
import { ROWS_PER_BLOCK, type SeriesSource } from "../../workers/artefacts/series/series-source.js";
import type { StreamBody } from "../replies/reply.js";
import { MadePieces } from "./made-pieces.js";
import { type MadeStreamOptions, madeStream, type PieceRequest } from "./made-stream.js";
import type { OpenStoredExtents } from "./stored-stream.js";

/** Runs a task of the pool for a waiting client. @throws StorageError, ServiceError */
export type MakeArtefact = <N extends TaskName>(
  name: N,
  input: TaskInput<N>,
  request: PieceRequest,
) => Promise<TaskOutput<N>>;

export interface MadeFilesOptions {
  make: MakeArtefact;
  open: OpenStoredExtents;
  /** Path of the run's capture file. */
  capturePathOf(runId: string): string;
  /** Limit of the cached pieces, in bytes. */
  keptBytes: number;
  /** For tests: another size of the pieces of a PLY. */
  pieceBytes?: number;
}

/** Largest piece of a PLY, unless a single line is larger. A thread makes it in a millisecond or two. */
const PIECE_BYTES = 4 * 1024 * 1024;

export class MadeFiles {
  readonly #options: MadeFilesOptions;
  readonly #pieces: MadePieces;

  constructor(options: MadeFilesOptions) {
    this.#options = options;
    this.#pieces = new MadePieces(options.keptBytes);
  }

  /** Bytes of the cached pieces. */
  get keptBytes(): number {
    return this.#pieces.keptBytes;
  }

  /** @throws StorageError `capture_missing`, `capture_damaged` */
  async cloud(run: RunState, frame: FrameState, format: "ply" | "raw.ply"): Promise<StreamBody> {
    const cloud = cloudOf(frame, format);
    if (cloud === undefined) throw new Error(`frame ${frame.id} has no ${format}`);
    const { planes, width, lines } = frame;
    const { mask } = cloud;
    const stored = await this.#read(run.id, cloud.lineCounts);
    const counts = new Uint32Array(stored.buffer);
    if (counts.length !== lines) {
      throw new Error(`frame ${frame.id} has ${lines} lines, but its ${format} has ${counts.length}`);
    }
    const head = plyHeader(frame, cloud.points, mask !== null);
    const { pieceBytes = PIECE_BYTES } = this.#options;
    const linesPerPiece = Math.max(1, Math.floor(pieceBytes / (width * vertexBytes(planes))));
    const ends = pieceEnds(head.length, counts, linesPerPiece, vertexBytes(planes));
    const path = this.#options.capturePathOf(run.id);
    const source = frameSource(frame, path);
    const extents = mask === null ? frame.batches : [...frame.batches, mask];
    const piece: MadeStreamOptions["piece"] = (nth, request) => {
      const firstLine = nth * linesPerPiece;
      const endLine = Math.min(firstLine + linesPerPiece, lines);
      const lengthBytes = (ends[nth] as number) - (nth === 0 ? head.length : (ends[nth - 1] as number));
      const make = async (own: PieceRequest): Promise<Uint8Array> => {
        await this.#verify(`${frame.id} ${format}`, path, extents, own);
        const task = { ...source, batches: linesOnly(frame.batches, firstLine, endLine) };
        return this.#options.make("packPoints", { frame: task, mask, firstLine, endLine }, own);
      };
      return this.#piece(`${frame.id} ${format} ${nth}`, lengthBytes, request, make);
    };
    return madeStream({ head, ends, piece });
  }

  /** Every `stride`-th height of every `stride`-th line, in mm. Reads throw StorageError `capture_damaged`. */
  overview(run: RunState, frame: FrameState, stride: number): StreamBody {
    const [width, lines] = [Math.ceil(frame.width / stride), Math.ceil(frame.lines / stride)];
    const head = npyHeader("f32", lines, width);
    const { pieceBytes = PIECE_BYTES } = this.#options;
    const linesPerPiece = Math.max(1, Math.floor(pieceBytes / (4 * width)));
    const ends = Float64Array.from(
      { length: Math.ceil(lines / linesPerPiece) },
      (_, nth) => head.length + 4 * width * Math.min(lines, (nth + 1) * linesPerPiece),
    );
    const path = this.#options.capturePathOf(run.id);
    const source = frameSource(frame, path);
    const piece: MadeStreamOptions["piece"] = (nth, request) => {
      const firstLine = nth * linesPerPiece * stride;
      const endLine = Math.min(firstLine + linesPerPiece * stride, frame.lines);
      const lengthBytes = (ends[nth] as number) - (nth === 0 ? head.length : (ends[nth - 1] as number));
      const make = async (own: PieceRequest): Promise<Uint8Array> => {
        await this.#verify(`${frame.id} heights`, path, heightExtents(frame), own);
        const task = { ...source, batches: linesOnly(frame.batches, firstLine, endLine) };
        return this.#options.make("overview", { frame: task, firstLine, endLine, stride }, own);
      };
      return this.#piece(`${frame.id} overview ${stride} ${nth}`, lengthBytes, request, make);
    };
    return madeStream({ head, ends, piece });
  }

  /** @throws StorageError `capture_missing`, `capture_damaged` */
  async csv(run: RunState, series: SeriesState): Promise<StreamBody> {
    const csv = csvOf(series);
    const { stepIndex, channels, appends } = series;
    if (csv === undefined) throw new Error(`step ${stepIndex} of run ${run.id} has no CSV`);
    const offsets = new Float64Array((await this.#read(run.id, csv.offsets)).buffer);
    const path = this.#options.capturePathOf(run.id);
    const piece: MadeStreamOptions["piece"] = (rowBlock, request) => {
      const lengthBytes = (offsets[rowBlock + 1] as number) - (offsets[rowBlock] as number);
      const id = `${run.id} ${stepIndex}`;
      const make = async (own: PieceRequest): Promise<Uint8Array> => {
        await this.#verify(id, path, appends, own);
        const task: SeriesSource = { path, channels, appends: rowsOnly(appends, rowBlock) };
        return this.#options.make("writeSeries", { ...task, rowBlock }, own);
      };
      return this.#piece(`${id} ${rowBlock}`, lengthBytes, request, make);
    };
    return madeStream({ head: csvHeader(channels), ends: offsets.subarray(1), piece });
  }

  /** One extent of the run's captures, verified, in a buffer of its own. */
  async #read(runId: string, extent: Extent): Promise<Uint8Array<ArrayBuffer>> {
    // A run without stored bytes has no file.
    if (extent.lengthBytes === 0) return new Uint8Array(0);
    const reader = await this.#options.open(runId, "capture", [extent]);
    try {
      return Uint8Array.from(await reader.read(0, extent.lengthBytes));
    } finally {
      reader.close();
    }
  }

  #piece(
    key: string,
    lengthBytes: number,
    { signal, isContinued }: PieceRequest,
    make: (own: PieceRequest) => Promise<Uint8Array>,
  ): Promise<Uint8Array> {
    const makeChecked = async (unwanted: AbortSignal): Promise<Uint8Array> => {
      const made = await make({ signal: unwanted, isContinued });
      if (made.length !== lengthBytes) throw new Error(`piece ${key} has ${made.length} bytes, not ${lengthBytes}`);
      return made;
    };
    return this.#pieces.get(key, makeChecked, signal);
  }

  /**
   * Verifies all stored bytes of a frame or series once, before pieces are made from parts of them: the CRCs cover whole extents.
   * @throws StorageError `capture_damaged`
   */
  async #verify(id: string, path: string, extents: readonly Extent[], own: PieceRequest): Promise<void> {
    const verify = async (unwanted: AbortSignal): Promise<Uint8Array> => {
      const plain = extents.map(({ offset, lengthBytes, crc32 }) => ({ offset, lengthBytes, crc32 }));
      await this.#options.make("verify", { path, extents: plain }, { ...own, signal: unwanted });
      return VERIFIED;
    };
    await this.#pieces.get(`${id} is verified`, verify, own.signal);
  }
}

const VERIFIED = new Uint8Array(0);

/** End position of each piece of a PLY, in bytes. */
function pieceEnds(headBytes: number, counts: Uint32Array, linesPerPiece: number, pointBytes: number): Float64Array {
  const ends = new Float64Array(Math.ceil(counts.length / linesPerPiece));
  let end = headBytes;
  for (let line = 0; line < counts.length; line++) {
    end += (counts[line] as number) * pointBytes;
    ends[Math.floor(line / linesPerPiece)] = end;
  }
  return ends;
}

/** The batches that a task needs for some lines; one empty batch stands for all before them, because a message of thousands of batches is slow. */
function linesOnly(batches: readonly LineBatch[], firstLine: number, endLine: number): LineBatch[] {
  const kept: LineBatch[] = [];
  let line = 0;
  let skipped = 0;
  for (const batch of batches) {
    if (line >= endLine) break;
    line += batch.lineCount;
    if (line > firstLine) kept.push(batch);
    else skipped += batch.lineCount;
  }
  if (skipped === 0) return kept;
  return [{ offset: 0, lengthBytes: 0, crc32: 0, heightCrc32: 0, lineCount: skipped }, ...kept];
}

/** The appends that a task needs for one row block of a series, in the same way. */
function rowsOnly(appends: readonly SeriesAppend[], rowBlock: number): SeriesAppend[] {
  const firstRow = rowBlock * ROWS_PER_BLOCK;
  const endRow = firstRow + ROWS_PER_BLOCK;
  const kept: SeriesAppend[] = [];
  let row = 0;
  let skipped = 0;
  for (const append of appends) {
    if (row >= endRow) break;
    row += append.rows;
    if (row > firstRow) kept.push(append);
    else skipped += append.rows;
  }
  const [first] = kept;
  if (skipped === 0 || first === undefined) return kept;
  return [{ ...first, lengthBytes: 0, rows: skipped }, ...kept];
}
