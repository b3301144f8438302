import { type MadeFrame, plainHeights } from "../../../test/helpers/captures/made-frames.js";

/** Valid points as x, y, z in f32, and the position of each. */
export function frameXyz(frame: MadeFrame): { xyz: Float32Array; positions: Uint32Array } {
  const { width, xOriginMm, yOriginMm, xPitchMm, yPitchMm } = frame.geometry;
  const zs = plainHeights(frame);
  const positions = new Uint32Array(zs.length);
  const xyz = new Float32Array(3 * zs.length);
  let point = 0;
  for (let at = 0; at < zs.length; at++) {
    if (zs[at] === Number.POSITIVE_INFINITY) continue;
    xyz[3 * point] = xOriginMm + (at % width) * xPitchMm;
    xyz[3 * point + 1] = yOriginMm + Math.floor(at / width) * yPitchMm;
    xyz[3 * point + 2] = zs[at] as number;
    positions[point++] = at;
  }
  return { xyz: xyz.slice(0, 3 * point), positions: positions.slice(0, point) };
}
