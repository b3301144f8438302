import type { Defect } from "../../core/quality.js";
import { type Capture, heightsMm } from "./capture.js";
import type { PartKind, Region } from "./demo-parts.js";
import { drawFlaws, type Flaw } from "./part-flaws.js";
import { forEachPoint, type Grid, gridOrigin } from "./part-form.js";
import { lengthCheck, medianOf, type PartSource, shareCheck } from "./part-source.js";
import { captureSurface } from "./surface.js";

/** Parts made from a form, measured by the modelled sensor, and inspected on what it measured. */
export function madeParts(kind: PartKind): PartSource {
  return {
    serialPrefix: kind.serialPrefix,
    async inspect(random) {
      const form = kind.draw(random);
      const flaws = drawFlaws(form, random);
      const capture = captureSurface(form, flaws, kind.grid, kind.sensor, kind.encoding, random);
      const zMm = heightsMm(capture);
      const checks = kind.dimensions.map(({ name, of, over, nominalMm, thresholdMm }) => {
        const heightMm = regionHeight(zMm, kind.grid, of) - regionHeight(zMm, kind.grid, over);
        return lengthCheck(name, heightMm, nominalMm, thresholdMm);
      });
      let valid = 0;
      for (const z of zMm) if (!Number.isNaN(z)) valid++;
      checks.push(shareCheck("valid_share", valid / zMm.length, 0.9));
      const found = flaws.map((flaw) => ({ flaw, confidence: Math.round((0.7 + 0.29 * random.next()) * 1000) / 1000 }));
      const defects = (frameId: string): Defect[] =>
        found.flatMap(({ flaw, confidence }, i) => describeFlaw(flaw, confidence, capture, frameId, i + 1));
      return { capture, checks, defects };
    },
  };
}

/** Median height of a region: flying pixels do not move it. */
function regionHeight(zMm: Float32Array, grid: Grid, region: Region): number {
  const { xMm, yMm, innerMm, outerMm } = region;
  const values: number[] = [];
  forEachPoint(grid, { xMm, yMm, halfXMm: outerMm, halfYMm: outerMm }, (i, x, y) => {
    const r = Math.hypot(x - xMm, y - yMm);
    if (r >= innerMm && r <= outerMm) values.push(zMm[i] as number);
  });
  return medianOf(Float64Array.from(values));
}

/** As a finding; none where the flaw lies outside of the scan. */
function describeFlaw(flaw: Flaw, confidence: number, capture: Capture, frameId: string, n: number): Defect[] {
  const { width, lines, xPitchMm, yPitchMm } = capture;
  const origin = gridOrigin(capture);
  const cos = Math.abs(Math.cos(flaw.angleRad));
  const sin = Math.abs(Math.sin(flaw.angleRad));
  const halfX = (flaw.lengthMm * cos + flaw.widthMm * sin) / 2;
  const halfY = (flaw.lengthMm * sin + flaw.widthMm * cos) / 2;
  const column = (xMm: number): number => Math.min(width - 1, Math.max(0, Math.round((xMm - origin.xMm) / xPitchMm)));
  const line = (yMm: number): number => Math.min(lines - 1, Math.max(0, Math.round((yMm - origin.yMm) / yPitchMm)));
  const bbox = [column(flaw.xMm - halfX), line(flaw.yMm - halfY), column(flaw.xMm + halfX), line(flaw.yMm + halfY)];
  if (bbox[0] === bbox[2] || bbox[1] === bbox[3]) return [];
  const round = (value: number): number => Math.round(value * 1000) / 1000;
  const text: Record<Flaw["type"], string> = {
    dent: `dent of ${round(flaw.lengthMm)} x ${round(flaw.widthMm)} mm`,
    scratch: `scratch, ${round(flaw.lengthMm)} mm long`,
    pit: `pit of ${round(flaw.lengthMm)} mm`,
  };
  return [
    {
      id: `finding-${n}`,
      type: flaw.type,
      description: `${text[flaw.type]}, ${round(flaw.depthMm)} mm deep`,
      region_2d: { file: `frame-${frameId}.png`, bbox },
      region_3d: {
        file: `frame-${frameId}.ply`,
        location: [round(flaw.xMm), round(flaw.yMm), round(-flaw.depthMm / 2)],
        extents: [round(flaw.lengthMm), round(flaw.widthMm), round(flaw.depthMm)],
        // Quaternion x, y, z, w: turned about z only.
        orientation: [0, 0, round(Math.sin(flaw.angleRad / 2)), round(Math.cos(flaw.angleRad / 2))],
        frame: "scan",
      },
      confidence,
      severity: flaw.depthMm > 0.15 ? "major" : "minor",
      metadata: { depth_mm: round(flaw.depthMm) },
    },
  ];
}
