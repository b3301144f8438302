import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { go } from "../../router.js";
import { Plot, type PlotLine, type PlotPoint, pointAt, scaleOf } from "./plot.js";

const HEIGHT_PX = 220;
/** Labels of lines that are close to each other are set apart. */
const LABEL_PX = 15;

interface ChartPoint extends PlotPoint {
  /** What it is, in words. */
  text: string;
  /** The page that it opens. */
  href: string;
}

interface ChartProps {
  label: string;
  points: readonly ChartPoint[];
  lines: readonly PlotLine[];
  numberText: (value: number) => string;
  /** What is left and right below it. */
  ends: readonly [ComponentChildren, ComponentChildren];
  /** What happens at a click. */
  hint: string;
}

/** A plot with named lines. A click on a point opens its page; with the keyboard, the arrows choose one and Enter opens it. */
export function Chart({ label, points, lines, numberText, ends, hint }: ChartProps) {
  const [chosen, setChosen] = useState<number>();
  const last = points.length - 1;
  const cursor = chosen === undefined ? undefined : Math.min(chosen, last);
  const point = points[cursor ?? last];
  const below = (event: MouseEvent): number => {
    const { left, width } = (event.currentTarget as Element).getBoundingClientRect();
    return pointAt((event.clientX - left) / width, points.length);
  };
  const open = (at: number): void => {
    const href = points[at]?.href;
    if (href !== undefined) go(href);
  };
  return (
    <>
      <div class="chart" style={{ height: `${HEIGHT_PX}px` }}>
        <div class="chart-field">
          <Plot points={points} lines={lines} cursor={cursor} />
          <input
            type="range"
            aria-label={label}
            aria-valuetext={point?.text.slice(0, 500)}
            max={last}
            value={cursor ?? last}
            onFocus={() => setChosen(cursor ?? last)}
            onInput={(event) => setChosen(event.currentTarget.valueAsNumber)}
            onKeyDown={({ key }) => key === "Enter" && open(cursor ?? last)}
            onPointerMove={(event) => setChosen(below(event))}
            onClick={(event) => open(below(event))}
            // The slider's own handle is not where the points are.
            onMouseDown={(event) => event.preventDefault()}
          />
        </div>
        <Labels points={points} lines={lines} numberText={numberText} />
      </div>
      <p class="chart-ends note">
        <span>{ends[0]}</span>
        <span>{ends[1]}</span>
      </p>
      <p class="chart-text note">{cursor === undefined ? hint : <bdi>{point?.text}</bdi>}</p>
    </>
  );
}

/** Names and values of the lines, and both ends of the scale, beside their places. */
function Labels({ points, lines, numberText }: Pick<ChartProps, "points" | "lines" | "numberText">) {
  const { least, most, shareDown } = scaleOf({ points, lines });
  const labels = [...lines];
  for (const value of [least, most]) {
    if (lines.every((line) => line.value !== value)) labels.push({ name: "", value, kind: "centre" });
  }
  labels.sort((a, b) => b.value - a.value);
  const tops = spread(labels.map(({ value }) => (0.08 + 0.84 * shareDown(value)) * HEIGHT_PX - LABEL_PX / 2));
  return (
    <ul class="chart-labels">
      {labels.map(({ name, value, kind }, at) => (
        <li key={at} class={name === "" ? "note" : `label-${kind}`} style={{ top: `${tops[at]}px` }}>
          {name} {numberText(value)}
        </li>
      ))}
    </ul>
  );
}

/** Moves labels apart. @param tops ascending */
function spread(tops: readonly number[]): number[] {
  const moved = [...tops];
  for (let at = 1; at < moved.length; at++) {
    moved[at] = Math.max(moved[at] as number, (moved[at - 1] as number) + LABEL_PX);
  }
  let most = HEIGHT_PX - LABEL_PX;
  for (let at = moved.length - 1; at >= 0; at--, most -= LABEL_PX) moved[at] = Math.min(moved[at] as number, most);
  return moved.map(Math.round);
}
