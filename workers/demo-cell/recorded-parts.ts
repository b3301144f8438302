import { heightsMm } from "./capture.js";
import { lengthCheck, medianOf, type PartSource, shareCheck } from "./part-source.js";
import type { RecordedCapture } from "./replay.js";

/** A recorded capture as the part of a program: its checks compare what the heights say with what the collection's index says. */
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
        checks.push(lengthCheck("z_median", medianOf(zMm), recorded.zMedianMm, 0.05));
      }
      return { capture, checks, defects: () => [] };
    },
  };
}
