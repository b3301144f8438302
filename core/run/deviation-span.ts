/** The numbers of a check. */
interface Measured {
  readonly value?: number | null;
  readonly nominal?: number | null;
  readonly delta?: number | null;
  readonly threshold?: number | null;
}

/** How far a value is from where it should be. All as shares of the bar's width. */
export interface DeviationSpan {
  low: number;
  high: number;
  nominal: number | undefined;
  value: number;
  /** The value lies beyond the bar's end. */
  isBeyond: boolean;
}

/** How far the value is from the nominal one: what the producer says, else their difference. Undefined without these numbers. */
export function deviationOf({ value, nominal, delta }: Measured): number | undefined {
  if (delta !== null && delta !== undefined) return delta;
  return value == null || nominal == null ? undefined : value - nominal;
}

/**
 * The tolerance takes the middle half of the bar. Without a nominal value the limit lies in the middle. Undefined for a
 * check without a value or a threshold.
 */
export function deviationSpan({ value, nominal, threshold }: Measured): DeviationSpan | undefined {
  if (value === null || value === undefined || threshold === null || threshold === undefined) return undefined;
  const at = (share: number): Pick<DeviationSpan, "value" | "isBeyond"> => ({
    value: Math.min(1, Math.max(0, share)),
    isBeyond: !(share >= 0 && share <= 1),
  });
  if (nominal === null || nominal === undefined) {
    const scale = Math.abs(threshold) || 1;
    return { low: 0.5, high: 1, nominal: undefined, ...at(0.5 + (value - threshold) / scale / 2) };
  }
  const scale = Math.abs(threshold) || Math.abs(nominal) || 1;
  return { low: 0.25, high: 0.75, nominal: 0.5, ...at(0.5 + (value - nominal) / scale / 4) };
}
