import type { Planes } from "../../../core/capture/capture.js";
import type { Random } from "../../../core/random.js";
import type { Capture } from "../steps/capture.js";
import { applyFlaws, type Flaw } from "./part-flaws.js";
import { forEachPoint, formHeights, type Grid, gridOrigin, type PartForm } from "./part-form.js";
import { measure, type SensorModel } from "./sensor-model.js";

/**
 * How the head encodes heights: as u16 counts with 0 as invalid, or as i32 in hundredths of a micrometre with codes at
 * the bottom. A head that gives f32, in mm with NaN, measures no luminance.
 */
export type HeightEncoding = "u16" | "i32" | "f32";

const I32_NO_MEASUREMENT = -0x8000_0000;
const I32_DEAD_ZONE = -0x7fff_ffff;

/** A capture of one part with its flaws, as the sensor sees it. The same `random` gives the same capture. */
export function captureSurface(
  form: PartForm,
  flaws: readonly Flaw[],
  grid: Grid,
  sensor: SensorModel,
  encoding: HeightEncoding,
  random: Random,
): Capture {
  const zMm = formHeights(form, grid);
  const wear = applyFlaws(zMm, grid, flaws);
  const texture = {
    roughnessMm: form.roughnessMm,
    markPitchMm: form.markPitchMm,
    wear,
    tableBelowMm: -form.thicknessMm * 0.8,
  };
  const measured = measure(zMm, grid, texture, sensor, random);
  for (const { xMm, yMm, radiusMm } of form.oil ?? []) {
    forEachPoint(grid, { xMm, yMm, halfXMm: radiusMm, halfYMm: radiusMm }, (i, x, y) => {
      if (Math.hypot(x - xMm, y - yMm) > radiusMm) return;
      measured.zMm[i] = Number.NaN;
      measured.luminance[i] = 0;
    });
  }
  const { planes, height } = ENCODERS[encoding](measured.zMm, random);
  const hasLuminance = encoding !== "f32";
  const origin = gridOrigin(grid);
  return {
    ...grid,
    planes: { height: planes, ...(hasLuminance && { luminance: { dtype: "u16", bits: 10 } }) },
    xOriginMm: origin.xMm,
    yOriginMm: origin.yMm,
    height,
    luminance: hasLuminance ? new Uint8Array(measured.luminance.buffer) : undefined,
    metadata: {},
  };
}

type Encoded = { planes: Planes["height"]; height: Uint8Array };

/** Counts of 1 µm, with 0 mm in the middle of the range. It covers 65 mm in all. */
function encodeU16(zMm: Float32Array): Encoded {
  const scale = 0.001;
  const middle = 32_768;
  const codes = new Uint16Array(zMm.length);
  for (let i = 0; i < zMm.length; i++) {
    const z = zMm[i] as number;
    codes[i] = Number.isNaN(z) ? 0 : Math.min(65_535, Math.max(1, Math.round(z / scale) + middle));
  }
  const planes: Planes["height"] = { dtype: "u16", scale_mm: scale, offset_mm: -middle * scale, invalid: [0] };
  return { planes, height: new Uint8Array(codes.buffer) };
}

function encodeI32(zMm: Float32Array, random: Random): Encoded {
  const scale = 0.00001;
  const codes = new Int32Array(zMm.length);
  for (let i = 0; i < zMm.length; i++) {
    const z = zMm[i] as number;
    if (!Number.isNaN(z)) codes[i] = Math.round(z / scale);
    else codes[i] = random.chance(0.8) ? I32_NO_MEASUREMENT : I32_DEAD_ZONE;
  }
  const invalid = [I32_NO_MEASUREMENT, I32_DEAD_ZONE];
  return { planes: { dtype: "i32", scale_mm: scale, offset_mm: 0, invalid }, height: new Uint8Array(codes.buffer) };
}

function encodeF32(zMm: Float32Array): Encoded {
  const planes: Planes["height"] = { dtype: "f32", scale_mm: 1, offset_mm: 0, invalid: [] };
  return { planes, height: new Uint8Array(zMm.buffer) };
}

const ENCODERS: Record<HeightEncoding, (zMm: Float32Array, random: Random) => Encoded> = {
  u16: encodeU16,
  i32: encodeI32,
  f32: encodeF32,
};
