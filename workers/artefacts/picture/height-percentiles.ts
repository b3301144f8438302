/**
 * Reads all heights of a frame, line by line: z in mm as f32, Infinity where there is no measurement. A line is only
 * valid during the call.
 */
export type EachLine = (use: (zs: Float32Array) => void) => Promise<void>;

/** How many values half of an f32 has. */
const HALVES = 0x1_0000;

/**
 * Percentiles of the measured heights, interpolated linearly between the two nearest ones, as numpy.percentile does it.
 *
 * They are exact, and take little memory however large the frame is. A first pass counts the upper halves of the f32. A
 * second pass counts the lower halves where they matter.
 *
 * @param shares from 0 to 1
 * @returns undefined for a frame without a measured point
 */
export async function heightPercentiles(each: EachLine, shares: readonly number[]): Promise<number[] | undefined> {
  // A frame has up to 2^32 points, which a Uint32Array could not count.
  const upper = new Float64Array(HALVES);
  await each((zs) => {
    const bits = bitsOf(zs);
    for (let at = 0; at < bits.length; at++) {
      const key = keyOf(bits[at] as number);
      if (key !== INFINITY_KEY) (upper[key >>> 16] as number)++;
    }
  });
  const points = upper.reduce((sum, count) => sum + count, 0);
  if (points === 0) return undefined;
  const ranks = shares.map((share) => share * (points - 1));
  const nearest = ranks.flatMap((rank) => [Math.floor(rank), Math.ceil(rank)]);
  const places = nearest.map((rank) => placeOf(upper, rank));
  const lower = new Map(places.map(({ at }) => [at, new Float64Array(HALVES)]));
  await each((zs) => {
    const bits = bitsOf(zs);
    for (let at = 0; at < bits.length; at++) {
      const key = keyOf(bits[at] as number);
      const counts = lower.get(key >>> 16);
      if (counts !== undefined && key !== INFINITY_KEY) (counts[key & 0xffff] as number)++;
    }
  });
  const heights = places.map(({ at, rest }) => heightOf(at, placeOf(lower.get(at) as Float64Array, rest).at));
  return ranks.map((rank, nth) => {
    const [below, above] = [heights[2 * nth] as number, heights[2 * nth + 1] as number];
    return below + (above - below) * (rank - Math.floor(rank));
  });
}

function bitsOf(zs: Float32Array): Int32Array {
  return new Int32Array(zs.buffer, zs.byteOffset, zs.length);
}

/** The bits of an f32 as an unsigned number that sorts as the f32 does. */
function keyOf(bits: number): number {
  return (bits < 0 ? ~bits : bits ^ 0x8000_0000) >>> 0;
}

const INFINITY_KEY = keyOf(0x7f80_0000);

function heightOf(upper: number, lower: number): number {
  const key = (upper * HALVES + lower) | 0;
  return new Float32Array(Int32Array.of(key < 0 ? key ^ 0x8000_0000 : ~key).buffer)[0] as number;
}

/** The class that holds the item of this rank, counted from 0, and the item's rank within the class. */
function placeOf(counts: Float64Array, rank: number): { at: number; rest: number } {
  let rest = rank;
  let at = 0;
  while (rest >= (counts[at] as number)) rest -= counts[at++] as number;
  return { at, rest };
}
