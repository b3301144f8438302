import type { RecordedCapture } from "../replay.js";
import { heightsMm } from "../steps/capture.js";
import { lengthCheck, medianOf, type PartSource, shareCheck } from "./part-source.js";

const THRESHOLD_MM = 0.05;

/**
 * A recorded capture as the part of a program, whatever part is wanted. Its checks compare the heights with what the
 * collection's index says. It has no defects.
 */
export function recordedParts(recorded: RecordedCapture): PartSource {
  return {
    serialPrefix: "REC",
    async inspect() {
      const capture = await recorded.load();
      const zMm = heightsMm(capture);
      let valid = 0;
      for (const z of zMm) if (!Number.isNaN(z)) valid++;
      const checks = [shareCheck("valid_share", valid / zMm.length, (recorded.validFraction ?? 0.5) - 0.001)];
      if (recorded.zMedianMm !== undefined) {
        checks.push(lengthCheck("z_median", medianOf(zMm), recorded.zMedianMm, THRESHOLD_MM));
      }
      return { capture, checks, defects: () => [] };
    },
  };
}
