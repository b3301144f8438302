import type { Statistics } from "../../data/api.js";
import { whole } from "../../data/units.js";
import type { PlotLine } from "./plot.js";

const WIDTH = 1000;
const HEIGHT = 100;

interface HistogramProps {
  label: string;
  of: NonNullable<Statistics["checks"][number]["histogram"]>;
  lines: readonly PlotLine[];
  numberText: (value: number) => string;
}

/** Bars of how many values each bin has, with limits and nominal value. */
export function Histogram({ label, of: { edges, counts }, lines, numberText }: HistogramProps) {
  const numbers = [...edges, ...lines.map(({ value }) => value)];
  const least = Math.min(...numbers);
  const most = Math.max(...numbers);
  // Halves: the difference of the largest numbers is too large for a number.
  const half = most / 2 - least / 2 || 1;
  const x = (value: number) => 10 + ((value / 2 - least / 2) / half) * (WIDTH - 20);
  const highest = Math.max(...counts);
  return (
    <>
      <ul class="histogram-labels" aria-hidden="true">
        {lines.map(({ name, value, kind }) => (
          <li key={name} class={`label-${kind}`} style={{ left: `${x(value) / 10}%` }}>
            {name}
          </li>
        ))}
      </ul>
      <svg
        class="plot-area histogram"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {counts.map((count, at) => {
          const [from, to] = [x(edges[at] as number), x(edges[at + 1] as number)];
          const height = (count / highest) * HEIGHT;
          return (
            <rect
              key={at}
              class="plot-bar"
              x={from}
              width={Math.max(2, to - from - 1)}
              y={HEIGHT - height}
              height={height}
            />
          );
        })}
        {lines.map(({ name, value, kind }) => (
          <path
            key={name}
            class={`plot-${kind}`}
            d={`M${x(value).toFixed(1)} 0V${HEIGHT}`}
            vector-effect="non-scaling-stroke"
          />
        ))}
      </svg>
      <p class="chart-ends note">
        <span>{numberText(least)}</span>
        <span>{`highest bar: ${whole(highest)}`}</span>
        <span>{numberText(most)}</span>
      </p>
    </>
  );
}
