import type { RecordedCapture } from "../replay.js";
import { type Capture, heightsMm } from "../steps/capture.js";
import { lengthCheck, medianOf, type PartSource, shareCheck } from "./part-source.js";

const THRESHOLD_MM = 0.05;
/** How far the nominal height of a part that must fail is off what was recorded. */
const WRONG_NOMINAL_MM = 0.2;
/** Edge of the square, in points, over which the height of the datum is measured. */
const DATUM_POINTS = 5;

/**
 * A recorded capture as the part of a program. Its checks compare the heights with what the collection's index says. The recorded values
 * never change. A part that must fail is compared with another nominal height. A part that must be indeterminate gets its datum where the
 * sensor measured nothing; if there is no such place, it passes. It has no defects.
 */
export function recordedParts(recorded: RecordedCapture): PartSource {
  return {
    serialPrefix: "REC",
    async inspect(_random, { outcome }) {
      const capture = await recorded.load();
      const zMm = heightsMm(capture);
      let valid = 0;
      for (const z of zMm) if (!Number.isNaN(z)) valid++;
      const checks = [shareCheck("valid_share", valid / zMm.length, (recorded.validFraction ?? 0.5) - 0.001)];
      const medianMm = medianOf(zMm);
      const nominalMm = recorded.zMedianMm ?? medianMm;
      if (outcome === "failed")
        checks.push(lengthCheck("z_median", medianMm, nominalMm + WRONG_NOMINAL_MM, THRESHOLD_MM));
      else if (recorded.zMedianMm !== undefined)
        checks.push(lengthCheck("z_median", medianMm, nominalMm, THRESHOLD_MM));
      if (outcome === "indeterminate" && hasUnseenSquare(zMm, capture)) {
        checks.push(lengthCheck("datum_height", Number.NaN, nominalMm, THRESHOLD_MM));
      }
      return { capture, checks, defects: () => [] };
    },
  };
}

/** Whether there is a place for the datum where nothing was measured. */
function hasUnseenSquare(zMm: Float32Array, { width, lines }: Capture): boolean {
  const isUnseen = (line: number, column: number): boolean => {
    for (let row = line; row < line + DATUM_POINTS; row++) {
      const start = row * width + column;
      if (!zMm.subarray(start, start + DATUM_POINTS).every(Number.isNaN)) return false;
    }
    return true;
  };
  for (let line = 0; line + DATUM_POINTS <= lines; line++) {
    for (let column = 0; column + DATUM_POINTS <= width; column++) if (isUnseen(line, column)) return true;
  }
  return false;
}
