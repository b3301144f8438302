import { medianOf } from "../../../workers/demo-cell/part/part-source.js";
import { type Capture, heightsMm } from "../../../workers/demo-cell/steps/capture.js";

type Place = (xMm: number, yMm: number) => boolean;

const ring =
  (xMm: number, yMm: number, innerMm: number, outerMm: number): Place =>
  (x, y) => {
    const r = Math.hypot(x - xMm, y - yMm);
    return r >= innerMm && r <= outerMm;
  };

/** Strips beside a place at x, and the place itself if `fromMm` is 0. */
const strips =
  (xMm: number, yMm: number, fromMm: number, toMm: number, halfYMm: number): Place =>
  (x, y) =>
    Math.abs(x - xMm) >= fromMm && Math.abs(x - xMm) <= toMm && Math.abs(y - yMm) <= halfYMm;

/**
 * Where a person would look for each length in the frame: on the whole of the feature, and on the face beside it. These
 * are other points than those that the cell takes.
 */
const LENGTHS: Record<string, [of: Place, beside: Place]> = {
  boss_height: [ring(0, 2, 5, 7.8), ring(0, 2, 10, 13)],
  pocket_left_depth: [strips(-23, 2, 0, 7, 10), strips(-23, 2, 8, 9.5, 10)],
  pocket_right_depth: [strips(23, 2, 0, 7, 10), strips(23, 2, 8, 9.5, 10)],
  cell_1_depth: [strips(-11.5, 0, 0, 4.5, 10), strips(-11.5, 0, 4.8, 6.6, 10)],
  cell_2_depth: [strips(0, 0, 0, 4.5, 10), strips(0, 0, 4.8, 6.6, 10)],
  cell_3_depth: [strips(11.5, 0, 0, 4.5, 10), strips(11.5, 0, 4.8, 6.6, 10)],
  bead_height_1: [ring(-25, 3, 0, 0.9), strips(-25, 8.5, 0, 4, 2)],
  bead_height_2: [ring(0, 3, 0, 0.9), strips(0, 8.5, 0, 4, 2)],
  bead_height_3: [ring(25, 3, 0, 0.9), strips(25, 8.5, 0, 4, 2)],
  groove_depth: [ring(0, 0, 7.7, 10.3), ring(0, 0, 10.8, 13.5)],
  land_height: [ring(0, 0, 0, 7.3), ring(0, 0, 10.8, 13.5)],
};

/**
 * How far a length may be from what the frame shows. It allows for roughness and noise. It is a quarter of the smallest
 * threshold of a check.
 */
export const LENGTH_TOLERANCE_MM = 0.01;

function heightAt(capture: Capture, zMm: Float32Array, place: Place): number {
  const inside = zMm.filter((_, at) => {
    const line = Math.floor(at / capture.width);
    const x = capture.xOriginMm + (at - line * capture.width) * capture.xPitchMm;
    return place(x, capture.yOriginMm + line * capture.yPitchMm);
  });
  return medianOf(inside);
}

/** The length with this name as the frame shows it, and where its feature is; undefined if it is no length. */
export function lengthInFrame(capture: Capture, name: string) {
  const [of, beside] = LENGTHS[name] ?? [];
  if (of === undefined || beside === undefined) return undefined;
  const zMm = heightsMm(capture);
  return { lengthMm: heightAt(capture, zMm, of) - heightAt(capture, zMm, beside), isOnFeature: of };
}
