/** Four significant digits, thousands grouped. No timing is more precise than that. */
export function formatFigure(value: number): string {
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (magnitude >= 1000) {
    const digits = Math.max(0, Math.floor(Math.log10(magnitude)) - 3);
    return (Math.round(value / 10 ** digits) * 10 ** digits).toLocaleString("en-US");
  }
  return value.toFixed(Math.min(4, Math.max(0, 3 - Math.floor(Math.log10(magnitude)))));
}

/** Microseconds as a time with a fitting unit. */
export function formatMicroseconds(us: number): string {
  if (us < 1000) return `${formatFigure(us)} us`;
  if (us < 1e6) return `${formatFigure(us / 1000)} ms`;
  return `${formatFigure(us / 1e6)} s`;
}

export function formatRatio(ratio: number): string {
  return ratio.toFixed(ratio < 0.1 ? 3 : 2);
}

export function formatPercent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
