/** A colour for each of 256 steps, as a canvas stores it: red in the lowest byte, alpha in the highest. */
export type Palette = Uint32Array;

const STEPS = 256;

export function packed(red: number, green: number, blue: number): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

export function cssColour(colour: number): string {
  return `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
}

function polynomial(coefficients: readonly number[], t: number): number {
  return coefficients.reduceRight((sum, coefficient) => sum * t + coefficient, 0);
}

/**
 * Viridis (van der Walt and Smith, CC0) by Matt Zucker's polynomials (CC0): within six of 255 of the table. Its lightness rises evenly, so
 * equal steps of height look equal, to the colour-blind too.
 */
const VIRIDIS = [
  [0.2777273, 0.105093, -0.3308618, -4.6342305, 6.2282699, 4.776385, -5.4354559],
  [0.0054073, 1.4046135, 0.2148476, -5.799101, 14.1799334, -13.7451454, 4.6458526],
  [0.3340998, 1.3845902, 0.0950952, -19.332441, 56.6905526, -65.3530326, 26.3124352],
] as const;

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

const byte = (value: number): number => Math.round(Math.min(1, Math.max(0, value)) * 255);

export const viridis: Palette = palette((t) => {
  const [red, green, blue] = VIRIDIS.map((coefficients) => byte(polynomial(coefficients, t)));
  return [red as number, green as number, blue as number];
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
