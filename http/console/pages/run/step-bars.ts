interface TimedStep {
  readonly started_at?: string | null;
  readonly completed_at?: string | null;
}

/** Where the bars of steps lie on one time axis, in percent of it, and how long it is. Undefined: not begun. */
export function stepBars(steps: readonly TimedStep[], nowMs: number) {
  const spans = steps.map(({ started_at: from, completed_at: to }) =>
    from ? { from: Date.parse(from), to: to ? Date.parse(to) : nowMs } : undefined,
  );
  const begun = spans.filter((span) => span !== undefined);
  const begin = Math.min(...begun.map(({ from }) => from));
  const lengthMs = Math.max(1, Math.max(...begun.map(({ to }) => to)) - begin);
  const share = (ms: number) => `${Math.min(100, Math.max(0, (ms / lengthMs) * 100)).toFixed(2)}%`;
  const bars = spans.map((span) => span && { left: share(span.from - begin), width: share(span.to - span.from) });
  return { lengthMs: begun.length === 0 ? undefined : lengthMs, bars };
}
