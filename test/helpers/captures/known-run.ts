/** A run all of whose bytes follow from one byte, its fill: whoever reads it knows what must come. */
import { formatTimeUs } from "../../../core/timestamps.js";
import { filterOutliers } from "../../../workers/artefacts/filter/outlier-filter.js";
import { newKernelMemory } from "../../../workers/artefacts/kernel-memory.js";
import { WIDTH } from "../link/link-messages.js";
import { frameOf, loadFrame } from "./made-frames.js";
import { readGreyPng } from "./png-reader.js";

/** Bytes of one point: u16 height and u16 luminance. */
export const VALUE_BYTES = 4;
/** x, y, z and intensity. */
const VERTEX_BYTES = 13;
export const LINES = 2_000;
export const LARGE_WIDTH = 300;
export const SERIES_CHANNELS = 2;
const SERIES_ROWS = 500;
const LARGE_SERIES_ROWS = 20_000;
export const SERIES_START_US = Date.UTC(2026, 10, 20, 10) * 1000;
export const SERIES_PERIOD_US = 100;

export interface KnownRun {
  id: string;
  frameId: string;
  serial: string;
  fill: number;
  width: number;
  report: Buffer;
}

export const FORMATS = ["npy", "raw.ply", "ply", "png", "luminance.png", "csv"] as const;
export type Format = (typeof FORMATS)[number];

/** Lines of a run's frame: every value follows from its fill. Heights are that byte twice, luminance is its 10 bits; 0 was not measured. */
export function linesOf({ fill, width }: KnownRun, count: number): Uint8Array {
  const heights = new Uint8Array(count * width * 2).fill(fill);
  return Buffer.concat([heights, new Uint8Array(new Uint16Array(count * width).fill(fill << 2).buffer)]);
}

/** Rows of a run's series from `firstRow` on. Now and then a value is missing (NaN). */
export function seriesOf({ fill }: KnownRun, firstRow: number, rows: number): Float32Array {
  const valueAt = (_: unknown, at: number): number => {
    const row = firstRow + Math.floor(at / SERIES_CHANNELS);
    return row % 97 === 5 ? Number.NaN : fill + row / 4 + (at % SERIES_CHANNELS) / 2;
  };
  return Float32Array.from({ length: rows * SERIES_CHANNELS }, valueAt);
}

export function seriesRows({ width }: KnownRun): number {
  return width === WIDTH ? SERIES_ROWS : LARGE_SERIES_ROWS;
}

function csvOf(run: KnownRun): string {
  const rows = seriesRows(run);
  const values = seriesOf(run, 0, rows);
  const lines = ["timestamp,channel_1,channel_2"];
  for (let row = 0; row < rows; row++) {
    const cells = values.subarray(row * SERIES_CHANNELS, (row + 1) * SERIES_CHANNELS);
    const texts = [...cells].map((value) => (Number.isNaN(value) ? "" : String(value)));
    lines.push([formatTimeUs(SERIES_START_US + row * SERIES_PERIOD_US), ...texts].join(","));
  }
  return `${lines.join("\n")}\n`;
}

/** What the filter keeps of every frame of a width: all frames are planes, which differ only in their height. */
const masks = new Map<number, Promise<Uint8Array>>();

async function maskOf(width: number): Promise<Uint8Array> {
  const values = new Uint16Array(width * LINES).fill(257);
  const frame = frameOf("plate", "u16", { width, lines: LINES, xPitchMm: 0.01, yPitchMm: 0.02 }, values);
  const memory = await newKernelMemory();
  return filterOutliers(memory, await loadFrame(memory, frame)).bits;
}

/** Vertices of a run's cloud, byte by byte. */
async function verticesOf({ fill, width }: KnownRun, isFiltered: boolean): Promise<Buffer> {
  const mask = masks.get(width) ?? maskOf(width);
  masks.set(width, mask);
  const bits = await mask;
  const vertices = Buffer.alloc(fill === 0 ? 0 : width * LINES * VERTEX_BYTES);
  let length = 0;
  for (let at = 0; at < width * LINES && fill > 0; at++) {
    if (isFiltered && (((bits[at >> 3] as number) >> (at & 7)) & 1) === 0) continue;
    vertices.writeFloatLE((at % width) * 0.01, length);
    vertices.writeFloatLE(Math.floor(at / width) * 0.02, length + 4);
    vertices.writeFloatLE(fill * 257 * 0.001 - 10, length + 8);
    vertices[length + 12] = fill;
    length += VERTEX_BYTES;
  }
  return vertices.subarray(0, length);
}

/** Whether a download of the run is what follows from its fill. */
export async function isRight(run: KnownRun, format: Format, body: Buffer): Promise<boolean> {
  const { fill, width } = run;
  switch (format) {
    case "npy": {
      // The plane as .npy holds it: without the luminance after each batch.
      const plane = body.subarray(-LINES * width * 2);
      return body.length > plane.length && plane.length === LINES * width * 2 && plane.every((byte) => byte === fill);
    }
    case "raw.ply":
    case "ply": {
      const end = body.indexOf("end_header\n") + "end_header\n".length;
      const vertices = await verticesOf(run, format === "ply");
      const count = `\nelement vertex ${vertices.length / VERTEX_BYTES}\n`;
      return body.subarray(0, end).includes(count) && body.subarray(end).equals(vertices);
    }
    case "png":
    case "luminance.png": {
      const picture = readGreyPng(body);
      const sample = format === "png" ? fill * 257 : fill;
      return picture.width === width && picture.height === LINES && picture.samples.every((one) => one === sample);
    }
    case "csv":
      return body.toString() === csvOf(run);
  }
}
