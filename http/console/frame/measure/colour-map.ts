import { VIRIDIS } from "../../../../core/capture/viridis.js";

/** A colour for each of 256 steps, as a canvas stores it: red in the lowest byte, alpha in the highest. */
export type Palette = Uint32Array;

const STEPS = 256;

export function packed(red: number, green: number, blue: number): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** What is drawn over a surface. These light colours on a dark edge are seen on every colour. */
export const MARKS = {
  edge: "rgb(0 0 0 / 80%)",
  line: "#ffffff",
  chosen: "#ffd60a",
  cursors: ["#ff5d8f", "#5ad1ff"],
  axes: ["#ff8787", "#8ce99a", "#74c0fc"],
} as const;

/** From blue over white to red, for differences: white is none. */
const DIVERGING = [
  [33, 102, 172],
  [146, 197, 222],
  [247, 247, 247],
  [244, 165, 130],
  [178, 24, 43],
] as const;

function palette(colour: (t: number) => [number, number, number]): Palette {
  return Uint32Array.from({ length: STEPS }, (_, step) => packed(...colour(step / (STEPS - 1))));
}

/** As in the preview. */
export const viridis: Palette = Uint32Array.from({ length: STEPS }, (_, step) => {
  const [red = 0, green = 0, blue = 0] = VIRIDIS.subarray(3 * step, 3 * step + 3);
  return packed(red, green, blue);
});

export const diverging: Palette = palette((t) => {
  const place = t * (DIVERGING.length - 1);
  const at = Math.min(DIVERGING.length - 2, Math.floor(place));
  const mix = (channel: 0 | 1 | 2): number => {
    const [from, to] = [DIVERGING[at]?.[channel] ?? 0, DIVERGING[at + 1]?.[channel] ?? 0];
    return Math.round(from + (place - at) * (to - from));
  };
  return [mix(0), mix(1), mix(2)];
});

/** The step of a height between `low` and `high`, which need not differ. Heights outside have the colours of the ends. */
export function paletteStep(z: number, low: number, high: number): number {
  if (high <= low) return z < low ? 0 : STEPS - 1;
  return Math.min(STEPS - 1, Math.max(0, Math.floor(((z - low) / (high - low)) * STEPS)));
}
