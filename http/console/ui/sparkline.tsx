import type { Check } from "../data/api.js";

const WIDTH = 240;
const HEIGHT = 56;
const EDGE = 5;

/** Values one after another, with the band in which they pass. What was not measured leaves a gap. */
export function Sparkline({ checks, label }: { checks: readonly Check[]; label: string }) {
  const limits = limitsOf(checks.at(-1));
  const values = checks.map(({ value }) => value ?? null);
  const all = [...values.filter((value): value is number => value !== null), ...limits];
  if (all.length === 0) return <p class="note">Without values.</p>;
  const least = Math.min(...all);
  const most = Math.max(...all);
  const span = most - least || Math.abs(most) || 1;
  const x = (at: number) => EDGE + (at * (WIDTH - 2 * EDGE)) / Math.max(1, checks.length - 1);
  const y = (value: number) => HEIGHT - EDGE - ((value - least) / span) * (HEIGHT - 2 * EDGE);
  const [low, high] = limits;
  const top = high === undefined ? EDGE : y(high);
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {low !== undefined && <rect class="spark-zone" x={0} width={WIDTH} y={top} height={Math.max(1, y(low) - top)} />}
      <path class="spark-line" d={pathOf(values, x, y)} vector-effect="non-scaling-stroke" />
      {checks.map(({ status, value }, at) =>
        status === "failed" && value != null ? (
          <path
            key={at}
            class="spark-fail"
            d={`M${x(at).toFixed(1)} ${y(value).toFixed(1)}v0.01`}
            vector-effect="non-scaling-stroke"
          />
        ) : null,
      )}
    </svg>
  );
}

/** Least and greatest value that passes; only the least without a nominal value; none without limits. */
function limitsOf(check: Check | undefined): number[] {
  const threshold = check?.threshold;
  if (check === undefined || threshold === null || threshold === undefined) return [];
  if (check.nominal === null || check.nominal === undefined) return [threshold];
  return [check.nominal - Math.abs(threshold), check.nominal + Math.abs(threshold)];
}

function pathOf(values: readonly (number | null)[], x: (at: number) => number, y: (value: number) => number): string {
  let path = "";
  let isDown = false;
  values.forEach((value, at) => {
    if (value === null) {
      isDown = false;
      return;
    }
    path += `${isDown ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    if (!isDown && (values[at + 1] ?? null) === null) path += "h0.01";
    isDown = true;
  });
  return path;
}
