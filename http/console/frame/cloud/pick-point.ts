/** A point in front of others that is this near to the pointer is meant, even if another one is nearer on the screen. */
const FRONT_PIXELS = 3;
/** Beyond this, nothing is meant. */
const MAX_PIXELS = 14;

export interface PickPlace {
  /** Projection times view times model, by columns, as three.js stores it: from positions to clip space. */
  readonly matrix: ArrayLike<number>;
  readonly width: number;
  readonly height: number;
  /** Place of the pointer, in pixels from the top left. */
  readonly x: number;
  readonly y: number;
}

/** Which point lies under the pointer: the front one of those that are very near to it, else the nearest on the screen. -1: none. */
export function pickPoint(positions: Float32Array, { matrix: m, width, height, x, y }: PickPlace): number {
  const at = (index: number): number => m[index] as number;
  let [front, frontDepth] = [-1, Number.POSITIVE_INFINITY];
  let [nearest, nearestPixels] = [-1, MAX_PIXELS];
  for (let point = 0; 3 * point < positions.length; point++) {
    const px = positions[3 * point] as number;
    const py = positions[3 * point + 1] as number;
    const pz = positions[3 * point + 2] as number;
    const w = at(3) * px + at(7) * py + at(11) * pz + at(15);
    if (w <= 0) continue;
    const screenX = (((at(0) * px + at(4) * py + at(8) * pz + at(12)) / w + 1) / 2) * width;
    const screenY = ((1 - (at(1) * px + at(5) * py + at(9) * pz + at(13)) / w) / 2) * height;
    const pixels = Math.hypot(screenX - x, screenY - y);
    if (pixels > MAX_PIXELS) continue;
    const depth = (at(2) * px + at(6) * py + at(10) * pz + at(14)) / w;
    if (depth < -1 || depth > 1) continue;
    if (pixels < nearestPixels) [nearest, nearestPixels] = [point, pixels];
    if (pixels <= FRONT_PIXELS && depth < frontDepth) [front, frontDepth] = [point, depth];
  }
  return front >= 0 ? front : nearest;
}
