import type { Random } from "../../core/random.js";
import { forEachPoint, type Grid, type PartForm } from "./part-form.js";

/** A flaw of one part, in the part's frame: what the surface shows and what the cell reports are both made from it. */
export interface Flaw {
  type: "dent" | "scratch" | "pit";
  xMm: number;
  yMm: number;
  /** Of its longer axis, against x. */
  angleRad: number;
  lengthMm: number;
  widthMm: number;
  depthMm: number;
}

/** Zero to three flaws; most parts have none. */
export function drawFlaws(form: PartForm, random: Random): Flaw[] {
  const count = random.chance(0.35) ? random.integer(1, 3) : 0;
  return Array.from({ length: count }, () => {
    const type = random.pick(["dent", "scratch", "pit"] as const);
    const place = {
      type,
      xMm: (random.next() - 0.5) * form.widthMm * 0.8,
      yMm: (random.next() - 0.5) * form.lengthMm * 0.8,
      angleRad: random.next() * Math.PI,
    };
    const size = Math.min(form.widthMm, form.lengthMm);
    if (type === "scratch") {
      const lengthMm = size * (0.15 + 0.25 * random.next());
      return { ...place, lengthMm, widthMm: 0.4 + 0.4 * random.next(), depthMm: 0.03 + 0.05 * random.next() };
    }
    const lengthMm = type === "dent" ? size * (0.04 + 0.05 * random.next()) : size * (0.012 + 0.01 * random.next());
    const depthMm = type === "dent" ? 0.08 + 0.25 * random.next() : 0.1 + 0.15 * random.next();
    return { ...place, lengthMm, widthMm: lengthMm * (0.6 + 0.4 * random.next()), depthMm };
  });
}

/** How deep a flaw is at a point, 0 to 1 of its depth; below 0 for the burr that is thrown up beside it. */
function profile(flaw: Flaw, xMm: number, yMm: number): number {
  const cos = Math.cos(flaw.angleRad);
  const sin = Math.sin(flaw.angleRad);
  const along = (((xMm - flaw.xMm) * cos + (yMm - flaw.yMm) * sin) * 2) / flaw.lengthMm;
  const across = (((yMm - flaw.yMm) * cos - (xMm - flaw.xMm) * sin) * 2) / flaw.widthMm;
  if (flaw.type === "scratch") {
    if (Math.abs(along) > 1) return 0;
    // A groove that runs out at both ends, with a burr along it.
    return (
      Math.sqrt(1 - along * along) *
      (Math.exp(-4 * across * across) - 0.3 * Math.exp(-3 * (Math.abs(across) - 1.6) ** 2))
    );
  }
  const r2 = along * along + across * across;
  return Math.exp(-1.5 * r2) - 0.12 * Math.exp(-4 * (Math.sqrt(r2) - 1.6) ** 2);
}

/** Presses the flaws into the heights and gives the worn places: [lines, width], 0 untouched to 1, which luminance shows. */
export function applyFlaws(zMm: Float32Array, grid: Grid, flaws: readonly Flaw[]): Float32Array {
  const wear = new Float32Array(zMm.length);
  for (const flaw of flaws) {
    const half = flaw.lengthMm + flaw.widthMm;
    forEachPoint(grid, { xMm: flaw.xMm, yMm: flaw.yMm, halfXMm: half, halfYMm: half }, (i, x, y) => {
      const depth = profile(flaw, x, y);
      zMm[i] = (zMm[i] as number) - flaw.depthMm * depth;
      wear[i] = Math.max(wear[i] as number, Math.abs(depth));
    });
  }
  return wear;
}
