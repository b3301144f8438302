import type { Random } from "../../../core/random.js";
import { forEachPoint, formHeights, type Grid, gridOrigin, type PartForm } from "./part-form.js";

/** A flaw of one part, in the part's coordinates. Both the surface and the cell's report are made from it. */
export interface Flaw {
  type: "dent" | "scratch" | "pit";
  xMm: number;
  yMm: number;
  /** Height of the sound surface at the flaw's middle. */
  zMm: number;
  /** Angle between the flaw's longer axis and x. */
  angleRad: number;
  lengthMm: number;
  widthMm: number;
  depthMm: number;
}

type Size = Pick<Flaw, "angleRad" | "lengthMm" | "widthMm">;

/** Width of sound surface around a flaw. No edge hides the flaw there or throws a shadow on it. */
const MARGIN_MM = 1.5;
/** How many places are tried for one flaw. If it fits nowhere, the part does not have it. */
const PLACE_ATTEMPTS = 200;
/** Pitch of the grid on which a place is looked for. */
const LOOK_PITCH_MM = 0.25;
/** A larger height difference than this is an edge. */
const FLAT_MM = 0.005;

/**
 * Draws zero to three flaws. Each is where the face is even, and away from the others. Most parts have none, unless at
 * least one is wanted.
 */
export function drawFlaws(form: PartForm, random: Random, isWanted = false): Flaw[] {
  const isFlawed = random.chance(0.35);
  const count = isFlawed || isWanted ? random.integer(1, 3) : 0;
  if (count === 0) return [];
  const face = new Face(form);
  const flaws: Flaw[] = [];
  for (let n = 0; n < count; n++) flaws.push(...drawFlaw(form, face, flaws, random));
  return flaws;
}

function drawFlaw(form: PartForm, face: Face, others: readonly Flaw[], random: Random): Flaw[] {
  const type = random.pick(["dent", "scratch", "pit"] as const);
  const partMm = Math.min(form.widthMm, form.lengthMm);
  const angleRad = random.next() * Math.PI;
  const share = random.next();
  const depth = random.next();
  const lengthMm =
    partMm * { scratch: 0.15 + 0.25 * share, dent: 0.04 + 0.05 * share, pit: 0.012 + 0.01 * share }[type];
  const widthMm = type === "scratch" ? 0.4 + 0.4 * random.next() : lengthMm * (0.6 + 0.4 * random.next());
  const depthMm = { scratch: 0.03 + 0.05 * depth, dent: 0.08 + 0.25 * depth, pit: 0.1 + 0.15 * depth }[type];
  for (let attempt = 0; attempt < PLACE_ATTEMPTS; attempt++) {
    const xMm = (random.next() - 0.5) * form.widthMm * 0.8;
    const yMm = (random.next() - 0.5) * form.lengthMm * 0.8;
    const size = { angleRad, lengthMm, widthMm };
    const isApart = others.every((other) => {
      return Math.hypot(xMm - other.xMm, yMm - other.yMm) > (lengthMm + other.lengthMm) / 2 + MARGIN_MM;
    });
    if (isApart && face.isEven(xMm, yMm, size))
      return [{ type, xMm, yMm, zMm: face.heightMm(xMm, yMm), ...size, depthMm }];
  }
  return [];
}

/** A part's face without flaws, on a coarse grid. */
class Face {
  readonly #grid: Grid;
  readonly #zMm: Float32Array;
  /** Heights without bow and tilt, so that an even place has one height. */
  readonly #evenMm: Float32Array;

  constructor(form: PartForm) {
    const pitch = LOOK_PITCH_MM;
    const width = Math.ceil(form.widthMm / pitch) + 1;
    const lines = Math.ceil(form.lengthMm / pitch) + 1;
    this.#grid = { width, lines, xPitchMm: pitch, yPitchMm: pitch };
    this.#zMm = formHeights(form, this.#grid);
    this.#evenMm = formHeights({ ...form, bowXMm: 0, bowYMm: 0, tiltXMm: 0, tiltYMm: 0 }, this.#grid);
  }

  heightMm(xMm: number, yMm: number): number {
    return this.#zMm[this.#indexAt(xMm, yMm)] as number;
  }

  isEven(xMm: number, yMm: number, { angleRad, lengthMm, widthMm }: Size): boolean {
    const cos = Math.cos(angleRad);
    const sin = Math.sin(angleRad);
    const halfLength = lengthMm / 2 + MARGIN_MM;
    const halfWidth = widthMm / 2 + MARGIN_MM;
    const half = Math.hypot(halfLength, halfWidth);
    const middle = this.#evenMm[this.#indexAt(xMm, yMm)] as number;
    let isEven = true;
    forEachPoint(this.#grid, { xMm, yMm, halfXMm: half, halfYMm: half }, (i, x, y) => {
      const along = (x - xMm) * cos + (y - yMm) * sin;
      const across = (y - yMm) * cos - (x - xMm) * sin;
      if (Math.abs(along) > halfLength || Math.abs(across) > halfWidth) return;
      if (Math.abs((this.#evenMm[i] as number) - middle) > FLAT_MM) isEven = false;
    });
    return isEven;
  }

  #indexAt(xMm: number, yMm: number): number {
    const { width, lines, xPitchMm, yPitchMm } = this.#grid;
    const origin = gridOrigin(this.#grid);
    const column = Math.min(width - 1, Math.max(0, Math.round((xMm - origin.xMm) / xPitchMm)));
    const line = Math.min(lines - 1, Math.max(0, Math.round((yMm - origin.yMm) / yPitchMm)));
    return line * width + column;
  }
}

/**
 * How deep a flaw is at a point, 0 to 1 of its depth. It is below 0 for the burr that is thrown up beside a scratch.
 */
function profile(flaw: Flaw, xMm: number, yMm: number): number {
  const cos = Math.cos(flaw.angleRad);
  const sin = Math.sin(flaw.angleRad);
  const along = (((xMm - flaw.xMm) * cos + (yMm - flaw.yMm) * sin) * 2) / flaw.lengthMm;
  const across = (((yMm - flaw.yMm) * cos - (xMm - flaw.xMm) * sin) * 2) / flaw.widthMm;
  if (flaw.type === "scratch") {
    if (Math.abs(along) > 1) return 0;
    // This is a groove that fades out at both ends, with a burr along it.
    return (
      Math.sqrt(1 - along * along) *
      (Math.exp(-4 * across * across) - 0.3 * Math.exp(-3 * (Math.abs(across) - 1.6) ** 2))
    );
  }
  const r2 = along * along + across * across;
  return Math.exp(-1.5 * r2) - 0.12 * Math.exp(-4 * (Math.sqrt(r2) - 1.6) ** 2);
}

/**
 * Presses the flaws into the heights. Gives the worn places, [lines, width], from 0 (untouched) to 1. Luminance shows
 * them.
 */
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
