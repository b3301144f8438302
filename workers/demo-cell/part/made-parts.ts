import type { Random } from "../../../core/random.js";
import { type Defect, type QualityCheck, reportStatus } from "../../../core/run/quality.js";
import { type Capture, heightsMm } from "../steps/capture.js";
import { type Deviate, type Dimension, type PartKind, type Region, usualDeviation } from "./demo-parts.js";
import { drawFlaws, type Flaw } from "./part-flaws.js";
import { forEachPoint, type Grid, gridOrigin, type PartForm, roundedBox } from "./part-form.js";
import { type Inspection, lengthCheck, medianOf, type PartSource, type PartWish, shareCheck } from "./part-source.js";
import { captureSurface } from "./surface.js";

/** How many parts are drawn at most until one is as wanted. Nearly always the first one is. */
const PART_ATTEMPTS = 12;
/** How far off the first dimension is in a part that must fail, in thresholds. */
const OUT_OF_TOLERANCE = 1.6;

/** Parts that are made from a form, measured by the modelled sensor, and inspected by what it measured. */
export function madeParts(kind: PartKind): PartSource {
  return {
    serialPrefix: kind.serialPrefix,
    async inspect(random, wish) {
      for (let attempt = 1; ; attempt++) {
        const { inspection, flaws } = inspectPart(kind, random, wish);
        const hasOutcome = wish.outcome === undefined || reportStatus(inspection.checks) === wish.outcome;
        const hasFlaws = wish.isFlawed !== true || flaws.length > 0;
        if ((hasOutcome && hasFlaws) || attempt === PART_ATTEMPTS) return inspection;
      }
    },
  };
}

function inspectPart(kind: PartKind, random: Random, wish: PartWish): { inspection: Inspection; flaws: Flaw[] } {
  const form = drawForm(kind, random, wish);
  const flaws = wish.isUnseen ? [] : drawFlaws(form, random, wish.isFlawed);
  const capture = captureSurface(form, flaws, kind.grid, kind.sensor, kind.encoding, random);
  const zMm = heightsMm(capture);
  const measurements = kind.dimensions.map((dimension) => {
    const { name, of, over, nominalMm, thresholdMm } = dimension;
    const isMm = regionHeight(zMm, kind.grid, of);
    const check = lengthCheck(name, isMm - regionHeight(zMm, kind.grid, over), nominalMm, thresholdMm);
    return { dimension, isMm, check };
  });
  const off = measurements.filter(({ check }) => check.status === "failed");
  // The console links a failed check to the finding that marks its place.
  const checks = measurements.map((one): QualityCheck => {
    const { measured } = one.dimension;
    const metadata = off.includes(one) ? { measured, defect_id: findingId(off.indexOf(one)) } : { measured };
    return { ...one.check, metadata };
  });
  let valid = 0;
  for (const z of zMm) if (!Number.isNaN(z)) valid++;
  checks.push(shareCheck("valid_share", valid / zMm.length, 0.9));
  const found = flaws.map((flaw) => ({ flaw, confidence: Math.round((0.7 + 0.29 * random.next()) * 1000) / 1000 }));
  const defects = (frameId: string): Defect[] => {
    const deviations = off.map(({ dimension, isMm, check }) => describeDeviation(check, dimension, isMm));
    const findings = [...deviations, ...found.map(({ flaw, confidence }) => describeFlaw(flaw, confidence))];
    return findings.flatMap((finding, i) => placeFinding(finding, capture, frameId, findingId(i)));
  };
  return { inspection: { capture, checks, defects }, flaws };
}

/**
 * A part that fails is out of tolerance in one dimension. A part with an indeterminate result has oil where the first
 * dimension is measured. A part that is not seen has oil everywhere.
 */
function drawForm(kind: PartKind, random: Random, { outcome, isUnseen }: PartWish): PartForm {
  const usual = usualDeviation(random);
  let isFirst = true;
  const deviate: Deviate = (thresholdMm) => {
    const usualMm = usual(thresholdMm);
    const isOff = outcome === "failed" && isFirst;
    isFirst = false;
    return isOff ? Math.sign(usualMm) * OUT_OF_TOLERANCE * thresholdMm : usualMm;
  };
  const form = kind.draw(random, deviate);
  if (isUnseen) return { ...form, oil: [{ xMm: 0, yMm: 0, radiusMm: form.widthMm + form.lengthMm }] };
  const [dimension] = kind.dimensions;
  if (outcome !== "indeterminate" || dimension === undefined) return form;
  const { xMm, yMm, radiusMm } = dimension.of;
  return { ...form, oil: [{ xMm, yMm, radiusMm: radiusMm + 0.4 }] };
}

/** Median height of a region: flying pixels do not move it. */
function regionHeight(zMm: Float32Array, grid: Grid, region: Region): number {
  const { xMm, yMm, halfXMm, halfYMm, radiusMm, borderMm } = region;
  const values: number[] = [];
  forEachPoint(grid, region, (i, x, y) => {
    const withinMm = -roundedBox(x - xMm, y - yMm, halfXMm, halfYMm, radiusMm);
    if (withinMm >= 0 && withinMm <= borderMm) values.push(zMm[i] as number);
  });
  return medianOf(Float64Array.from(values));
}

const round = (value: number, digits = 3): number => Number(value.toFixed(digits));

/** What was found, and a box in space around it. The box is turned about z only. */
interface Finding {
  defect: Defect;
  box: Pick<Flaw, "xMm" | "yMm" | "angleRad" | "lengthMm" | "widthMm"> & { bottomMm: number; topMm: number };
}

/** Deviations come first, then flaws. @param at from 0 */
const findingId = (at: number): string => `finding-${at + 1}`;

function describeFlaw(flaw: Flaw, confidence: number): Finding {
  const { zMm, lengthMm, widthMm, depthMm } = flaw;
  const text: Record<Flaw["type"], string> = {
    dent: `dent of ${round(lengthMm)} x ${round(widthMm)} mm`,
    scratch: `scratch, ${round(lengthMm)} mm long`,
    pit: `pit of ${round(lengthMm)} mm`,
  };
  return {
    defect: {
      type: flaw.type,
      description: `${text[flaw.type]}, ${round(depthMm)} mm deep`,
      confidence,
      severity: depthMm > 0.15 ? "major" : "minor",
      metadata: { depth_mm: round(depthMm) },
    },
    // The box reaches from the sound surface down to the bottom of the flaw.
    box: { ...flaw, bottomMm: zMm - depthMm, topMm: zMm },
  };
}

/**
 * The place where a dimension is out of tolerance. The middle of the box is at the surface that was measured, and the
 * box reaches as far up and down as the surface is off.
 *
 * @param isMm height that was measured
 */
function describeDeviation({ name, delta, message }: QualityCheck, { of, boxMm }: Dimension, isMm: number): Finding {
  const offMm = Math.abs(delta ?? 0);
  return {
    defect: { type: "out of tolerance", description: `${name}: ${message}`, severity: "major" },
    box: { ...of, angleRad: 0, lengthMm: boxMm[0], widthMm: boxMm[1], bottomMm: isMm - offMm, topMm: isMm + offMm },
  };
}

/**
 * The finding with its places; none if it lies outside the scan. `bbox` is [x_min, y_min, x_max, y_max] in pixels, with
 * x = column and y = line. It covers the pixels from the minima up to but not including the maxima.
 */
function placeFinding({ defect, box }: Finding, capture: Capture, frameId: string, id: string): Defect[] {
  const { width, lines, xPitchMm, yPitchMm } = capture;
  const { xMm, yMm, angleRad, lengthMm, widthMm, bottomMm, topMm } = box;
  const origin = gridOrigin(capture);
  const cos = Math.abs(Math.cos(angleRad));
  const sin = Math.abs(Math.sin(angleRad));
  const halfX = (lengthMm * cos + widthMm * sin) / 2;
  const halfY = (lengthMm * sin + widthMm * cos) / 2;
  // These are the pixels whose centres lie inside.
  const first = (mm: number, count: number): number => Math.min(count, Math.max(0, Math.ceil(mm)));
  const end = (mm: number, count: number): number => Math.min(count, Math.max(0, Math.floor(mm) + 1));
  const column = (x: number): number => (x - origin.xMm) / xPitchMm;
  const line = (y: number): number => (y - origin.yMm) / yPitchMm;
  const bbox = [
    first(column(xMm - halfX), width),
    first(line(yMm - halfY), lines),
    end(column(xMm + halfX), width),
    end(line(yMm + halfY), lines),
  ] as const;
  if (bbox[0] >= bbox[2] || bbox[1] >= bbox[3]) return [];
  return [
    {
      id,
      ...defect,
      region_2d: { file: `frame-${frameId}.png`, bbox: [...bbox] },
      region_3d: {
        file: `frame-${frameId}.ply`,
        location: [round(xMm), round(yMm), round((bottomMm + topMm) / 2)],
        extents: [round(lengthMm), round(widthMm), round(topMm - bottomMm)],
        orientation: [0, 0, round(Math.sin(angleRad / 2), 9), round(Math.cos(angleRad / 2), 9)],
        frame: "scan",
      },
    },
  ];
}
