import { crc32 } from "node:zlib";
import { type FrameState, type LineBatch, lineBytes, type Planes } from "../../../core/capture/capture.js";
import { lowerBound } from "../../../core/lower-bound.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";
import { readFullySync } from "../../../storage/disk/whole-files.js";
import type { GridGeometry } from "../filter/grid-layout.js";
import type { LineSource } from "./line-blocks.js";
import { luminanceCrc } from "./plane-crcs.js";
import { damagedCapture, openStoredSync } from "./stored-bytes.js";

/** A frame as a task names it: where its bytes lie and what they mean. */
export interface FrameSource {
  path: string;
  frameId: string;
  geometry: GridGeometry;
  planes: Planes;
  batches: readonly LineBatch[];
}

/** Describes a complete frame, whose run's captures are in the file at `path`. */
export function frameSource(frame: FrameState, path: string): FrameSource {
  const { width, lines, xPitchMm, yPitchMm, xOriginMm, yOriginMm } = frame;
  const geometry = { width, lines, xPitchMm, yPitchMm, xOriginMm, yOriginMm };
  return { path, frameId: frame.id, geometry, planes: frame.planes, batches: frame.batches };
}

export interface FrameReader {
  heights: LineSource;
  luminance: LineSource;
  /** Reads lines of the luminance only for their CRC, into memory of its own. */
  checkLuminance(firstLine: number, endLine: number): void;
  close(): void;
}

/**
 * Opens a frame for reading into the memory that `bytesAt` views.
 *
 * All reads block. The thread has one task, which waits for the bytes anyway. Asynchronous reads through another thread
 * take ten times as long as reads from the page cache.
 *
 * @throws StorageError `capture_missing` if there is no such file. Reads throw `capture_damaged` if the file ends
 *   early, or if a plane that was read from its first line to its last does not match its CRC.
 */
export function openFrame(
  fileSystem: FileSystem,
  source: FrameSource,
  bytesAt: (at: number, length: number) => Uint8Array,
): FrameReader {
  const file = openStoredSync(fileSystem, source.path);
  const { width } = source.geometry;
  const { height: heightBytes, luminance: luminanceBytes } = lineBytes(source.planes, width);
  const heights = new PlaneReader(file, source, heightBytes, () => 0);
  const lights = new PlaneReader(file, source, luminanceBytes, (batch) => batch.lineCount * heightBytes);
  const readLights = (firstLine: number, count: number, into: Uint8Array): void => {
    lights.read(firstLine, count, into);
    if (lights.isWhole) verifyLuminance(source, lights.crc32);
  };
  let block: Uint8Array | undefined;
  return {
    heights: async (firstLine, count, at) => {
      heights.read(firstLine, count, bytesAt(at, count * heightBytes));
      if (heights.isWhole) verifyHeights(source, heights.crc32);
    },
    luminance: async (firstLine, count, at) => readLights(firstLine, count, bytesAt(at, count * luminanceBytes)),
    checkLuminance: (firstLine, endLine) => {
      if (luminanceBytes === 0) return;
      const linesPerBlock = Math.max(1, Math.floor(CHECKED_BYTES / luminanceBytes));
      const blockBytes = Math.min(linesPerBlock, endLine - firstLine) * luminanceBytes;
      if (block === undefined || block.length < blockBytes) block = new Uint8Array(blockBytes);
      for (let line = firstLine; line < endLine; line += linesPerBlock) {
        const count = Math.min(linesPerBlock, endLine - line);
        readLights(line, count, block.subarray(0, count * luminanceBytes));
      }
    },
    close: () => file.closeSync(),
  };
}

/** How many bytes of lines are read at a time for their CRC alone; at least one line. */
const CHECKED_BYTES = 256 * 1024;

/** @throws StorageError `capture_damaged` if this is not the CRC-32 of the whole plane of heights */
function verifyHeights({ path, batches }: FrameSource, crc32: number): void {
  if (crc32 === batches.at(-1)?.heightCrc32) return;
  throw damagedCapture(path, batches[0]?.offset ?? 0, "the plane does not match its CRC");
}

/**
 * @throws StorageError `capture_damaged` if this is not the CRC-32 of the whole plane of luminance. It is 0 without
 *   luminance
 */
function verifyLuminance({ path, planes, geometry, batches }: FrameSource, crc32: number): void {
  if (planes.luminance === undefined || crc32 === luminanceCrc(planes, geometry.width, batches)) return;
  throw damagedCapture(path, batches[0]?.offset ?? 0, "the luminance does not match its CRC");
}

/** One plane. Its lines lie batch by batch in the file. */
class PlaneReader {
  readonly #file: StoreFile;
  readonly #source: FrameSource;
  readonly #lineBytes: number;
  readonly #offsetInBatch: (batch: LineBatch) => number;
  /** First line of every batch. */
  readonly #firstLines: number[] = [];
  /** How many lines the CRC covers, from the first on. Only reads that continue the last one count. */
  #checkedLines = 0;
  #crc = 0;

  constructor(file: StoreFile, source: FrameSource, lineBytes: number, offsetInBatch: (batch: LineBatch) => number) {
    this.#file = file;
    this.#source = source;
    this.#lineBytes = lineBytes;
    this.#offsetInBatch = offsetInBatch;
    let line = 0;
    for (const batch of source.batches) {
      this.#firstLines.push(line);
      line += batch.lineCount;
    }
  }

  /** True if the CRC covers the whole plane. */
  get isWhole(): boolean {
    return this.#checkedLines === this.#source.geometry.lines;
  }

  get crc32(): number {
    return this.#crc;
  }

  read(firstLine: number, count: number, into: Uint8Array): void {
    for (let done = 0; done < count; ) {
      const nth = this.#batchOf(firstLine + done);
      const batch = this.#source.batches[nth] as LineBatch;
      const inBatch = firstLine + done - (this.#firstLines[nth] as number);
      const lines = Math.min(count - done, batch.lineCount - inBatch);
      const part = into.subarray(done * this.#lineBytes, (done + lines) * this.#lineBytes);
      const offset = batch.offset + this.#offsetInBatch(batch) + inBatch * this.#lineBytes;
      const readBytes = readFullySync(this.#file, part, offset);
      if (readBytes < part.length) {
        throw damagedCapture(this.#source.path, offset + readBytes, "the file ends within stored bytes");
      }
      done += lines;
    }
    if (firstLine !== this.#checkedLines) return;
    this.#crc = crc32(into, this.#crc);
    this.#checkedLines += count;
  }

  #batchOf(line: number): number {
    return lowerBound(1, this.#firstLines.length, (nth) => (this.#firstLines[nth] as number) <= line) - 1;
  }
}
