import { existsSync, readFileSync } from "node:fs";
import type { Test } from "tap";
import { type HeightDtype, itemBytes, type Planes } from "../../../core/capture/capture.js";
import { createRandom } from "../../../core/random.js";
import type { Grid, GridGeometry } from "../../../workers/artefacts/filter/grid-layout.js";
import { loadGrid } from "../../../workers/artefacts/frame/frame-grid.js";
import type { LineSource } from "../../../workers/artefacts/frame/line-blocks.js";
import type { KernelMemory } from "../../../workers/artefacts/kernel-memory.js";
import { openCollection } from "../../../workers/demo-cell/replay.js";
import type { Capture } from "../../../workers/demo-cell/steps/capture.js";
import { heightCodes } from "../../../workers/demo-cell/steps/capture.js";
import { hasSharedData } from "../shared-data.js";
import { sized } from "../test-size.js";

/** A frame in memory, under the name that a test prints. */
export interface MadeFrame {
  name: string;
  planes: Planes;
  geometry: GridGeometry;
  height: Uint8Array;
  luminance: Uint8Array | null;
}

export function geometryOf(
  frame: Pick<Capture, "width" | "lines" | "xPitchMm" | "yPitchMm" | "xOriginMm" | "yOriginMm">,
): GridGeometry {
  const { width, lines, xPitchMm, yPitchMm, xOriginMm, yOriginMm } = frame;
  return { width, lines, xPitchMm, yPitchMm, xOriginMm, yOriginMm };
}

/** Lines of a plane that lies in memory. */
export function planeSource(memory: KernelMemory, plane: Uint8Array, lineBytes: number): LineSource {
  return async (firstLine, count, at) => {
    memory.bytes(at, count * lineBytes).set(plane.subarray(firstLine * lineBytes, (firstLine + count) * lineBytes));
  };
}

export function heightSource(memory: KernelMemory, frame: MadeFrame): LineSource {
  return planeSource(memory, frame.height, frame.geometry.width * itemBytes(frame.planes.height.dtype));
}

/** The frame in a memory that holds nothing else. */
export function loadFrame(memory: KernelMemory, frame: MadeFrame): Promise<Grid> {
  memory.reset();
  return loadGrid(memory, frame.planes.height, frame.geometry, heightSource(memory, frame));
}

/** Raw values by line x width + column. */
export function rawHeights(frame: MadeFrame): ArrayLike<number> & Iterable<number> {
  return heightCodes({ ...frame.geometry, ...frame, luminance: undefined, metadata: {} });
}

/** z in mm as f32 by line x width + column; Infinity where there is no measurement. The plainest code there is. */
export function plainHeights(frame: MadeFrame): Float32Array {
  const { scale_mm: scale, offset_mm: offset, invalid, dtype } = frame.planes.height;
  const codes = rawHeights(frame);
  const zs = new Float32Array(codes.length);
  for (let at = 0; at < codes.length; at++) {
    const raw = codes[at] as number;
    const isCode = invalid.some((code) => (dtype === "f32" ? Math.fround(code) : code) === raw);
    const z = Math.fround(raw * scale + offset);
    zs[at] = isCode || !Number.isFinite(z) ? Number.POSITIVE_INFINITY : z;
  }
  return zs;
}

/** A frame of given heights, in raw values of its type. */
export function frameOf(
  name: string,
  dtype: HeightDtype,
  geometry: Partial<GridGeometry> & { width: number; lines: number },
  values: ArrayLike<number>,
  height: Partial<Planes["height"]> = {},
): MadeFrame {
  const arrays = { u16: Uint16Array, i16: Int16Array, i32: Int32Array, f32: Float32Array };
  const raw = arrays[dtype].from(values);
  return {
    name,
    planes: { height: { dtype, scale_mm: 1, offset_mm: 0, invalid: [], ...height } },
    geometry: { xPitchMm: 0.1, yPitchMm: 0.1, xOriginMm: 0, yOriginMm: 0, ...geometry },
    height: new Uint8Array(raw.buffer),
    luminance: null,
  };
}

/** A surface with steps, noise, shadows beside the steps, points that were not measured, and points far off. */
export function surfaceFrame(seed: number, width: number, lines: number): MadeFrame {
  const random = createRandom(seed);
  const values = new Uint16Array(width * lines);
  for (let line = 0; line < lines; line++) {
    for (let column = 0; column < width; column++) {
      const step = (Math.floor(column / 200) + Math.floor(line / 250)) % 2 === 0 ? 0 : 4;
      let z = 20 + 3 * Math.sin(column / 170) * Math.cos(line / 140) + step + random.normal() * 0.01;
      if (random.chance(0.006)) z += (random.next() - 0.5) * 10;
      const isShadow = column >= 200 && column % 200 < 8;
      values[line * width + column] =
        isShadow || random.chance(0.01) ? 0 : Math.max(1, Math.min(65_535, Math.round(z / 0.002)));
    }
  }
  const frame = frameOf(`surface ${width} x ${lines}, seed ${seed}`, "u16", { width, lines }, values, {
    scale_mm: 0.002,
    invalid: [0],
  });
  frame.luminance = random.bytes(width * lines);
  frame.planes.luminance = { dtype: "u8", bits: 8 };
  return frame;
}

/** Heights without any order, as wide in z as in x. */
export function noiseFrame(seed: number, width: number, lines: number): MadeFrame {
  const random = createRandom(seed);
  const values = Float32Array.from({ length: width * lines }, () => random.next() * width * 0.1);
  return frameOf(`noise ${width} x ${lines}, seed ${seed}`, "f32", { width, lines }, values);
}

/** Where real captures are, if they are. */
export const REAL_CAPTURES = "../shared/data/heightmaps";

/** Lines of each real capture in a commit's size. With all, the programs to compare with take most of a minute. */
const MOST_REAL_LINES = sized(120, Number.POSITIVE_INFINITY);

/** The real captures for a test, which counts a skip if there are none. Long ones give only the lines in the middle. */
export async function realFrames(t: Pick<Test, "pass">): Promise<MadeFrame[]> {
  if (!hasSharedData(t, REAL_CAPTURES)) return [];
  return (await recordedFrames()).map((frame) => middleLines(frame, MOST_REAL_LINES));
}

function middleLines(frame: MadeFrame, most: number): MadeFrame {
  const { width, lines } = frame.geometry;
  if (lines <= most) return frame;
  const first = (lines - most) >> 1;
  const partOf = (plane: Uint8Array, dtype: Parameters<typeof itemBytes>[0]): Uint8Array =>
    plane.slice(first * width * itemBytes(dtype), (first + most) * width * itemBytes(dtype));
  const light = frame.planes.luminance;
  return {
    ...frame,
    geometry: { ...frame.geometry, lines: most },
    height: partOf(frame.height, frame.planes.height.dtype),
    luminance: light === undefined || frame.luminance === null ? null : partOf(frame.luminance, light.dtype),
  };
}

/** The real captures that are to be had; none without the data folder. */
export async function recordedFrames(): Promise<MadeFrame[]> {
  if (!existsSync(REAL_CAPTURES)) return [];
  const captures = await openCollection(REAL_CAPTURES, async (path) => readFileSync(path));
  return Promise.all(
    captures.map(async ({ name, load }) => {
      const capture = await load();
      const { planes, height, luminance } = capture;
      return {
        name,
        planes,
        geometry: geometryOf(capture),
        height: Uint8Array.from(height),
        luminance: luminance === undefined ? null : Uint8Array.from(luminance),
      };
    }),
  );
}
