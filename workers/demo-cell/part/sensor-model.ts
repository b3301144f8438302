/**
 * How a laser profiler sees a surface. The laser comes from above, and the camera looks from the side of greater y. So
 * steps throw shadows. Heights get noise, edges get flying pixels, and dark and steep places drop out.
 */
import type { Random } from "../../../core/random.js";
import type { Grid } from "./part-form.js";

export interface SensorModel {
  /** Standard deviation of one point's height. */
  noiseMm: number;
  /** Angle between laser and camera. */
  triangulationRad: number;
  /** Share of points that lie between or beyond the surfaces. */
  flyingShare: number;
  /**
   * Share of points without a measurement, shadows included. What shadows and edges do not take is dropped in patches.
   */
  invalidShare: number;
}

export interface Measured {
  /** Heights, [lines, width]. NaN where nothing was measured. */
  zMm: Float32Array;
  /** Luminance, [lines, width], 10 bits. */
  luminance: Uint16Array;
}

export interface Texture {
  roughnessMm: number;
  markPitchMm: number;
  /** Worn places, [lines, width], 0 to 1; see `applyFlaws`. */
  wear: Float32Array;
  /** Points below this height belong to the dark table. */
  tableBelowMm: number;
}

const NOISE_TABLE = 1 << 16;
const LUMINANCE_MAX = 1023;

export function measure(
  idealMm: Float32Array,
  grid: Grid,
  texture: Texture,
  sensor: SensorModel,
  random: Random,
): Measured {
  const { width, lines } = grid;
  const normals = Float32Array.from({ length: NOISE_TABLE }, () => random.normal());
  const normal = (): number => normals[Math.floor(random.next() * NOISE_TABLE)] as number;
  const grain = smoothNoise(grid, 2.2, random);
  const cloud = smoothNoise(grid, 24, random);
  const shadow = shadows(idealMm, grid, sensor.triangulationRad);
  const zMm = new Float32Array(width * lines);
  const luminance = new Uint16Array(width * lines);
  /** How easily measurements drop out, 0 to 1. They do in stained, steep and worn places. */
  const weakness = new Float32Array(width * lines);

  let invalid = 0;
  for (let row = 0; row < lines; row++) {
    const lineJitterMm = normal() * sensor.noiseMm * 0.3;
    const mark = texture.markPitchMm === 0 ? 0 : Math.sin((row * grid.yPitchMm * 2 * Math.PI) / texture.markPitchMm);
    let speckle = 0;
    for (let col = 0; col < width; col++) {
      const i = row * width + col;
      const z = idealMm[i] as number;
      const before = idealMm[col === 0 ? i : i - 1] as number;
      const above = idealMm[row === 0 ? i : i - width] as number;
      const slopeX = (z - before) / grid.xPitchMm;
      const slopeY = (z - above) / grid.yPitchMm;
      const slope = Math.hypot(slopeX, slopeY);
      // Laser speckle is wider than a point.
      speckle = 0.6 * speckle + 0.8 * normal();

      const table = z < texture.tableBelowMm;
      const rough = texture.roughnessMm * (0.7 * mark + (grain[i] as number));
      const albedo =
        (table ? 0.13 : 0.5) * (1 + 0.12 * (cloud[i] as number) + 0.1 * (grain[i] as number) + 0.06 * mark);
      // The camera is on the side of greater y: faces that lean to it are bright, others dark.
      const shading = Math.max(0.05, (1 + 0.45 * Math.tanh(slopeY * 1.5)) / Math.sqrt(1 + slope * slope));
      const stain = Math.max(0, (cloud[i] as number) - 0.9);
      weakness[i] = Math.min(1, 0.03 + 0.5 * stain + 0.6 * Math.min(slope, 1) + 0.3 * (texture.wear[i] as number));
      const light = albedo * shading * (1 - 0.5 * (texture.wear[i] as number)) * (1 + 0.09 * speckle);
      luminance[i] = clampLuminance(light * LUMINANCE_MAX + 4 * normal());

      if ((shadow[i] as number) === 1 || (slope > 4 && random.chance(0.5))) {
        zMm[i] = Number.NaN;
        luminance[i] = clampLuminance(12 + 5 * normal());
        invalid++;
        continue;
      }
      const noiseMm = sensor.noiseMm * (1 + 0.5 * Math.min(slope, 4)) * (table ? 2 : 1);
      zMm[i] = z + rough + lineJitterMm + noiseMm * (0.8 * normal() + 0.6 * speckle);
    }
  }
  addFlyingPixels(zMm, idealMm, grid, sensor.flyingShare, random);
  dropPatches(zMm, luminance, weakness, grid, sensor.invalidShare * zMm.length - invalid, random);
  return { zMm, luminance };
}

function clampLuminance(value: number): number {
  return Math.min(LUMINANCE_MAX, Math.max(0, Math.round(value)));
}

/** 1 where a higher surface is between the point and the camera, which looks along y at the triangulation angle. */
function shadows(zMm: Float32Array, grid: Grid, triangulationRad: number): Uint8Array {
  const { width, lines } = grid;
  const shadow = new Uint8Array(zMm.length);
  const risePerLineMm = grid.yPitchMm / Math.tan(triangulationRad);
  // A point is hidden if a point at greater y rises above the line of sight.
  const horizon = new Float32Array(width).fill(Number.NEGATIVE_INFINITY);
  for (let row = lines - 1; row >= 0; row--) {
    for (let col = 0; col < width; col++) {
      const i = row * width + col;
      const sight = (zMm[i] as number) - row * risePerLineMm;
      if (sight < (horizon[col] as number) - 0.02) shadow[i] = 1;
      else horizon[col] = sight;
    }
  }
  return shadow;
}

/** Roughly normal noise that is smooth over `cellMm`: a lattice of normals, blended between. */
function smoothNoise(grid: Grid, cellMm: number, random: Random): Float32Array {
  const columns = Math.ceil((grid.width * grid.xPitchMm) / cellMm) + 2;
  const rows = Math.ceil((grid.lines * grid.yPitchMm) / cellMm) + 2;
  const lattice = Float32Array.from({ length: columns * rows }, () => random.normal());
  const noise = new Float32Array(grid.width * grid.lines);
  const ease = (t: number): number => t * t * (3 - 2 * t);
  for (let row = 0; row < grid.lines; row++) {
    const v = (row * grid.yPitchMm) / cellMm;
    const v0 = Math.floor(v);
    const fv = ease(v - v0);
    for (let col = 0; col < grid.width; col++) {
      const u = (col * grid.xPitchMm) / cellMm;
      const u0 = Math.floor(u);
      const fu = ease(u - u0);
      const at = v0 * columns + u0;
      const top = (lattice[at] as number) * (1 - fu) + (lattice[at + 1] as number) * fu;
      const bottom = (lattice[at + columns] as number) * (1 - fu) + (lattice[at + columns + 1] as number) * fu;
      noise[row * grid.width + col] = top * (1 - fv) + bottom * fv;
    }
  }
  return noise;
}

/**
 * At edges the spot hits two surfaces, and the sensor reports a height between or beyond them. Elsewhere stray light
 * seldom does the same.
 */
function addFlyingPixels(zMm: Float32Array, idealMm: Float32Array, grid: Grid, share: number, random: Random): void {
  const { width } = grid;
  const reach = 3;
  let wanted = Math.round(share * zMm.length);
  const edges: number[] = [];
  for (let i = reach * width + reach; i < zMm.length - reach * width - reach; i++) {
    if (Number.isNaN(zMm[i])) continue;
    const across = Math.abs((idealMm[i + reach] as number) - (idealMm[i - reach] as number));
    const along = Math.abs((idealMm[i + reach * width] as number) - (idealMm[i - reach * width] as number));
    if (across + along > 0.5) edges.push(i);
  }
  while (wanted > 0) {
    const atEdge = edges.length > 0 && random.chance(0.7);
    const i = atEdge ? random.pick(edges) : random.integer(0, zMm.length - 1);
    wanted--;
    if (Number.isNaN(zMm[i])) continue;
    const other = idealMm[Math.max(0, i - reach * width)] as number;
    const z = idealMm[i] as number;
    zMm[i] = atEdge ? z + (other - z) * (random.next() * 1.6 - 0.3) + random.normal() * 0.2 : z + random.normal() * 2.5;
  }
}

/**
 * Drops measurements until `count` more are gone, in small patches where the surface is weak. Some patches lie along a
 * line, as glare does.
 */
function dropPatches(
  zMm: Float32Array,
  luminance: Uint16Array,
  weakness: Float32Array,
  grid: Grid,
  count: number,
  random: Random,
): void {
  const { width, lines } = grid;
  let left = count;
  while (left > 0) {
    const row0 = random.integer(0, lines - 1);
    const col0 = random.integer(0, width - 1);
    if (!random.chance(weakness[row0 * width + col0] as number)) continue;
    const glare = random.chance(0.25);
    // Most are specks; seldom one is a large patch.
    const size = 1 + 5 * random.next() ** 3;
    const reachX = glare ? size * 3 : size;
    const reachY = glare ? 1 + size / 3 : size;
    for (let row = Math.max(0, Math.ceil(row0 - reachY)); row <= Math.min(lines - 1, row0 + reachY); row++) {
      for (let col = Math.max(0, Math.ceil(col0 - reachX)); col <= Math.min(width - 1, col0 + reachX); col++) {
        const r = Math.hypot((row - row0) / reachY, (col - col0) / reachX);
        const i = row * width + col;
        if (r + 0.5 * random.next() > 1 || Number.isNaN(zMm[i])) continue;
        zMm[i] = Number.NaN;
        luminance[i] = glare ? LUMINANCE_MAX : clampLuminance(20 * random.next());
        left--;
      }
    }
  }
}
