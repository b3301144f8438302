/**
 * The formats that are made again whenever somebody reads them: PLY of a frame, CSV of a series. What is stored of them says how long they are and
 * where each piece begins, so that Content-Length and ranges hold; a piece is made from the lines or rows that it covers.
 */
import { cloudOf, csvOf } from "../../core/capture/artefact.js";
import type { Extent, FrameState, LineBatch, SeriesAppend, SeriesState } from "../../core/capture/capture.js";
import { plyHeader, vertexBytes } from "../../core/capture/ply-header.js";
import type { RunState } from "../../core/run/run-state.js";
import { frameSource } from "../../workers/artefacts/frame/frame-source.js";
import { lendMemory, newSharedMemory, type SharedMemory } from "../../workers/artefacts/kernel-memory.js";
import type { LateInput } from "../../workers/artefacts/pool/artefact-pool.js";
import type { MadePiece, TaskName, TaskOutput } from "../../workers/artefacts/pool/artefact-tasks.js";
import { csvHeader } from "../../workers/artefacts/series/csv-encoder.js";
import { ROWS_PER_BLOCK, type SeriesSource } from "../../workers/artefacts/series/series-source.js";
import type { StreamBody } from "../replies/reply.js";
import { MadePieces, type Piece } from "./made-pieces.js";
import { type MadeStreamOptions, madeStream, type PieceRequest } from "./made-stream.js";
import type { OpenStoredSlices } from "./stored-stream.js";

/** Runs a task of the pool for a client that waits. @throws StorageError, ServiceError */
export type MakeArtefact = <N extends TaskName>(
  name: N,
  input: LateInput<N>,
  request: PieceRequest,
) => Promise<TaskOutput<N>>;

export interface MadeFilesOptions {
  make: MakeArtefact;
  open: OpenStoredSlices;
  /** Of the run's capture file. */
  capturePathOf(runId: string): string;
  /** Bound of the pieces that are kept for the next client. */
  keptBytes: number;
  /** Bound of the memories that wait for the next piece, one of which may be larger. Default: as that of the pieces. */
  freeBytes?: number;
  /** For tests: another size of the pieces of a PLY. */
  pieceBytes?: number;
}

interface FreeMemory {
  memory: SharedMemory;
  /** When it was put back; a thread that is at it still may make it grow. */
  lengthBytes: number;
}

/** Of a piece of a PLY at most, but for a single line: a thread makes it in a millisecond or two. */
const PIECE_BYTES = 4 * 1024 * 1024;

export class MadeFiles {
  readonly #options: MadeFilesOptions;
  readonly #pieces: MadePieces;
  /**
   * Of pieces that nobody reads any more, the smallest first, within their bound. Whoever needs one gets the largest: given any,
   * each of those that many small pieces have left would grow with the next large one.
   */
  readonly #memories: FreeMemory[] = [];
  #freeBytes = 0;

  constructor(options: MadeFilesOptions) {
    this.#options = options;
    this.#pieces = new MadePieces(options.keptBytes);
  }

  /** Of pieces that are kept. */
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
      throw new Error(`of frame ${frame.id} there are ${lines} lines, and its ${format} has ${counts.length}`);
    }
    const head = plyHeader(frame, cloud.points, mask !== null);
    const { pieceBytes = PIECE_BYTES } = this.#options;
    const linesPerPiece = Math.max(1, Math.floor(pieceBytes / (width * vertexBytes(planes))));
    const ends = pieceEnds(head.length, counts, linesPerPiece, vertexBytes(planes));
    const path = this.#options.capturePathOf(run.id);
    const source = frameSource(frame, path);
    const extents = mask === null ? frame.batches : [...frame.batches, mask];
    const piece: MadeStreamOptions["piece"] = (nth, request, use) => {
      const firstLine = nth * linesPerPiece;
      const endLine = Math.min(firstLine + linesPerPiece, lines);
      const lengthBytes = (ends[nth] as number) - (nth === 0 ? head.length : (ends[nth - 1] as number));
      const make = async (own: PieceRequest): Promise<Piece> => {
        await this.#verify(`${frame.id} ${format}`, path, extents, own);
        const task = { ...source, batches: linesOnly(frame.batches, firstLine, endLine) };
        return this.#pieceInMemory((lend) =>
          this.#options.make("packPoints", () => ({ frame: task, mask, firstLine, endLine, lent: lend() }), own),
        );
      };
      return this.#piece(`${frame.id} ${format} ${nth}`, lengthBytes, request, make, use);
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
    const piece: MadeStreamOptions["piece"] = (rowBlock, request, use) => {
      const lengthBytes = (offsets[rowBlock + 1] as number) - (offsets[rowBlock] as number);
      const id = `${run.id} ${stepIndex}`;
      const make = async (own: PieceRequest): Promise<Piece> => {
        await this.#verify(id, path, appends, own);
        const task: SeriesSource = { path, channels, appends: rowsOnly(appends, rowBlock) };
        return { bytes: await this.#options.make("writeSeries", { ...task, rowBlock }, own) };
      };
      return this.#piece(`${id} ${rowBlock}`, lengthBytes, request, make, use);
    };
    return madeStream({ head: csvHeader(channels), ends: offsets.subarray(1), piece });
  }

  /** What is stored in one extent of the run's captures, verified, in a buffer of its own. */
  async #read(runId: string, extent: Extent): Promise<Uint8Array<ArrayBuffer>> {
    // A run of which no byte was stored has no file.
    if (extent.lengthBytes === 0) return new Uint8Array(0);
    const reader = await this.#options.open(runId, "capture", [extent]);
    try {
      return Uint8Array.from(await reader.read(0, extent.lengthBytes));
    } finally {
      reader.close();
    }
  }

  #piece<T>(
    key: string,
    lengthBytes: number,
    { signal, isContinued }: PieceRequest,
    make: (own: PieceRequest) => Promise<Piece>,
    use: (bytes: Uint8Array) => T,
  ): Promise<T> {
    const makeChecked = async (unwanted: AbortSignal): Promise<Piece> => {
      const made = await make({ signal: unwanted, isContinued });
      const { length } = made.bytes;
      if (length !== lengthBytes) throw new Error(`piece ${key} has ${length} bytes, not ${lengthBytes}`);
      return made;
    };
    return this.#pieces.get(key, makeChecked, use, signal);
  }

  /**
   * A piece in memory that serves the next one once nobody reads it: fresh memory costs a fault of each of its pages, as much as packing into it, and
   * no collector knows how large it is.
   */
  async #pieceInMemory(make: (lend: () => SharedMemory) => Promise<MadePiece>): Promise<Piece> {
    let lent: SharedMemory | undefined;
    const lend = (): SharedMemory => {
      lent = this.#freeMemory();
      return lent;
    };
    let made: MadePiece;
    try {
      made = await make(lend);
    } catch (error) {
      // A thread may be at it still, of whose result nobody wants to know.
      if (lent !== undefined) this.#putBack(lent);
      throw error;
    }
    const { bytes, memory } = made;
    const held = memory ?? lent;
    if (held === undefined) return { bytes };
    const release = (): void => this.#putBack(held);
    if (bytes.buffer instanceof SharedArrayBuffer) return { bytes, heldBytes: held.buffer.byteLength, release };
    release();
    return { bytes };
  }

  #freeMemory(): SharedMemory {
    for (let at = this.#memories.length - 1; at >= 0; at--) {
      const { memory, lengthBytes } = this.#memories[at] as FreeMemory;
      const state = lendMemory(memory);
      if (state === "taken") continue;
      this.#memories.splice(at, 1);
      this.#freeBytes -= lengthBytes;
      if (state === "ready") return memory;
    }
    return newSharedMemory();
  }

  #putBack(memory: SharedMemory): void {
    const lengthBytes = memory.buffer.byteLength;
    let at = this.#memories.length;
    while (at > 0 && (this.#memories[at - 1] as FreeMemory).lengthBytes > lengthBytes) at--;
    this.#memories.splice(at, 0, { memory, lengthBytes });
    this.#freeBytes += lengthBytes;
    // One is left at least: a large one that serves every piece.
    const { keptBytes, freeBytes = keptBytes } = this.#options;
    while (this.#freeBytes > freeBytes && this.#memories.length > 1) {
      this.#freeBytes -= (this.#memories.shift() as FreeMemory).lengthBytes;
    }
  }

  /**
   * All stored bytes of a frame or series against their CRCs, once before pieces are made of it: parts of them have none of their own.
   * @throws StorageError `capture_damaged`
   */
  async #verify(id: string, path: string, extents: readonly Extent[], own: PieceRequest): Promise<void> {
    const verify = async (unwanted: AbortSignal): Promise<Piece> => {
      const plain = extents.map(({ offset, lengthBytes, crc32 }) => ({ offset, lengthBytes, crc32 }));
      await this.#options.make("verify", { path, extents: plain }, { ...own, signal: unwanted });
      return { bytes: VERIFIED };
    };
    await this.#pieces.get(`${id} is verified`, verify, () => {}, own.signal);
  }
}

const VERIFIED = new Uint8Array(0);

/** Where pieces of so many lines end in a PLY. */
function pieceEnds(headBytes: number, counts: Uint32Array, linesPerPiece: number, pointBytes: number): Float64Array {
  const ends = new Float64Array(Math.ceil(counts.length / linesPerPiece));
  let end = headBytes;
  for (let line = 0; line < counts.length; line++) {
    end += (counts[line] as number) * pointBytes;
    ends[Math.floor(line / linesPerPiece)] = end;
  }
  return ends;
}

/** A frame's batches for a task that reads some lines only: one that nobody reads stands for all before them. A message of thousands is slow. */
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

/** The same of a series, for one row block. */
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
