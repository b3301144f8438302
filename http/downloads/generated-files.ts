/**
 * The formats that are generated for every reader: PLY and overview of a frame, CSV of a series. Only their length and
 * the position of each piece are stored or known, for Content-Length and ranges. A piece is made from the lines or rows
 * that it covers.
 */
import { cloudOf, csvOf } from "../../core/capture/artefact.js";
import type { Extent, FrameState, SeriesState } from "../../core/capture/capture.js";
import { npyHeader } from "../../core/capture/npy-header.js";
import { plyHeader, vertexBytes } from "../../core/capture/ply-header.js";
import type { RunState } from "../../core/run/run-state.js";
import { frameSource } from "../../workers/artefacts/frame/frame-source.js";
import { heightExtents } from "../../workers/artefacts/frame/plane-crcs.js";
import type { TaskInput, TaskName, TaskOutput } from "../../workers/artefacts/pool/artefact-tasks.js";
import { csvHeader } from "../../workers/artefacts/series/csv-encoder.js";
import { ROWS_PER_BLOCK } from "../../workers/artefacts/series/series-source.js";
import type { StreamBody } from "../replies/reply.js";
import { GeneratedPieces } from "./generated-pieces.js";
import { type GeneratedStreamOptions, generatedStream, type PieceRequest } from "./generated-stream.js";
import type { OpenStoredExtents, UseStored } from "./stored-stream.js";

/** Runs a task of the pool for a waiting client. @throws StorageError, ServiceError */
export type MakeArtefact = <N extends TaskName>(
  name: N,
  input: TaskInput<N>,
  request: PieceRequest,
) => Promise<TaskOutput<N>>;

export interface GeneratedFilesOptions {
  make: MakeArtefact;
  open: OpenStoredExtents;
  /** At a hub: pieces are made from files that must be fetched first. */
  useStored?: UseStored | undefined;
  capturePathOf(runId: string): string;
  /** Limit of the cached pieces, in bytes. */
  keptBytes: number;
  /** For tests: another size of the pieces of a PLY. */
  pieceBytes?: number;
}

/** A file that is generated piece by piece. */
interface GeneratedFile extends Pick<GeneratedStreamOptions, "head" | "ends"> {
  id: string;
  /** All stored bytes of the frame or series. They are verified once, before pieces are made from parts of them: the CRCs cover whole extents. */
  verified: { id: string; runId: string; path: string; extents(): readonly Extent[] };
  make(nth: number, request: PieceRequest): Promise<Uint8Array>;
}

/** Largest piece of a PLY, unless a single line is larger. A thread makes it in a millisecond or two. */
const PIECE_BYTES = 4 * 1024 * 1024;

export class GeneratedFiles {
  readonly #options: GeneratedFilesOptions;
  readonly #pieces: GeneratedPieces;

  constructor(options: GeneratedFilesOptions) {
    this.#options = options;
    this.#pieces = new GeneratedPieces(options.keptBytes);
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
    const make = (nth: number, request: PieceRequest) => {
      const firstLine = nth * linesPerPiece;
      const endLine = Math.min(firstLine + linesPerPiece, lines);
      const task = { ...source, batches: partsOnly(frame.batches, "lineCount", firstLine, endLine) };
      return this.#options.make("packPoints", { frame: task, mask, firstLine, endLine }, request);
    };
    const id = `${frame.id} ${format}`;
    const verified = {
      id,
      runId: run.id,
      path,
      extents: () => (mask === null ? frame.batches : [...frame.batches, mask]),
    };
    return this.#stream({ id, head, ends, verified, make });
  }

  /** Every `stride`-th height of every `stride`-th line, in mm. Reads throw StorageError `capture_damaged`. */
  async overview(run: RunState, frame: FrameState, stride: number): Promise<StreamBody> {
    // Nothing else is read before the answer begins.
    await this.#options.useStored?.(run.id, "capture", frame.batches.slice(0, 1), async () => {});
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
    const make = (nth: number, request: PieceRequest) => {
      const firstLine = nth * linesPerPiece * stride;
      const endLine = Math.min(firstLine + linesPerPiece * stride, frame.lines);
      const task = { ...source, batches: partsOnly(frame.batches, "lineCount", firstLine, endLine) };
      return this.#options.make("overview", { frame: task, firstLine, endLine, stride }, request);
    };
    const verified = { id: `${frame.id} heights`, runId: run.id, path, extents: () => heightExtents(frame) };
    return this.#stream({ id: `${frame.id} overview ${stride}`, head, ends, verified, make });
  }

  /** The report page of a run. */
  report(runId: string, run: TaskInput<"report">["run"]): Promise<TaskOutput<"report">> {
    const path = this.#options.capturePathOf(runId);
    return this.#options.make("report", { path, run }, { signal: undefined, isContinued: false });
  }

  /** @throws StorageError `capture_missing`, `capture_damaged` */
  async csv(run: RunState, series: SeriesState): Promise<StreamBody> {
    const csv = csvOf(series);
    const { stepIndex, channels, appends } = series;
    if (csv === undefined) throw new Error(`step ${stepIndex} of run ${run.id} has no CSV`);
    const offsets = new Float64Array((await this.#read(run.id, csv.offsets)).buffer);
    const path = this.#options.capturePathOf(run.id);
    const make = (rowBlock: number, request: PieceRequest) => {
      const firstRow = rowBlock * ROWS_PER_BLOCK;
      const task = { path, channels, appends: partsOnly(appends, "rows", firstRow, firstRow + ROWS_PER_BLOCK) };
      return this.#options.make("writeSeries", { ...task, rowBlock }, request);
    };
    const id = `${run.id} ${stepIndex}`;
    const verified = { id, runId: run.id, path, extents: () => appends };
    return this.#stream({ id, head: csvHeader(channels), ends: offsets.subarray(1), verified, make });
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

  #stream({ id, head, ends, verified, make }: GeneratedFile): StreamBody {
    const piece: GeneratedStreamOptions["piece"] = (nth, { signal, isContinued }) => {
      const lengthBytes = (ends[nth] as number) - (nth === 0 ? head.length : (ends[nth - 1] as number));
      const makeChecked = async (unwanted: AbortSignal): Promise<Uint8Array> => {
        const request = { signal: unwanted, isContinued };
        const made = await this.#use(verified, async () => {
          await this.#verify(verified, request);
          return make(nth, request);
        });
        if (made.length !== lengthBytes) throw new Error(`${id} ${nth} has ${made.length} bytes, not ${lengthBytes}`);
        return made;
      };
      return this.#pieces.get(`${id} ${nth}`, makeChecked, signal);
    };
    return generatedStream({ head, ends, piece });
  }

  #use<T>({ runId, extents }: GeneratedFile["verified"], use: () => Promise<T>): Promise<T> {
    const { useStored } = this.#options;
    return useStored === undefined ? use() : useStored(runId, "capture", extents(), use);
  }

  /** @throws StorageError `capture_damaged` */
  async #verify({ id, path, extents }: GeneratedFile["verified"], own: PieceRequest): Promise<void> {
    const verify = async (unwanted: AbortSignal): Promise<Uint8Array> => {
      const plain = extents().map(({ offset, lengthBytes, crc32 }) => ({ offset, lengthBytes, crc32 }));
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

/** The batches or appends that a task needs for some lines or rows. One empty entry represents all before them: a long message is slow. */
function partsOnly<K extends "lineCount" | "rows", Part extends Extent & Record<K, number>>(
  parts: readonly Part[],
  count: K,
  first: number,
  end: number,
): Part[] {
  const kept: Part[] = [];
  let at = 0;
  let skipped = 0;
  for (const part of parts) {
    if (at >= end) break;
    at += part[count];
    if (at > first) kept.push(part);
    else skipped += part[count];
  }
  const [next] = kept;
  if (skipped === 0 || next === undefined) return kept;
  return [{ ...next, lengthBytes: 0, [count]: skipped }, ...kept];
}
