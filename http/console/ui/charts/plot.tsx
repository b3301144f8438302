const WIDTH = 1000;
const HEIGHT = 100;
const EDGE = 8;

export interface PlotPoint {
  /** Null leaves a gap. */
  value: number | null;
  /** Ends of the band around it. */
  low?: number;
  high?: number;
  isFailed?: boolean;
  isOutside?: boolean;
}

export interface PlotLine {
  /** Short, as it stands beside the plot. */
  name: string;
  value: number;
  kind: "limit" | "control" | "centre";
}

interface PlotProps {
  points: readonly PlotPoint[];
  lines: readonly PlotLine[];
  /** Where the line of the cursor is. */
  cursor?: number | undefined;
}

/** Place of a point across, as a share. */
function shareAcross(at: number, count: number): number {
  return count === 1 ? 0.5 : (EDGE + (at * (WIDTH - 2 * EDGE)) / (count - 1)) / WIDTH;
}

/** Number of the point that is nearest to a place across. */
export function pointAt(share: number, count: number): number {
  const at = Math.round(((share * WIDTH - EDGE) / (WIDTH - 2 * EDGE)) * (count - 1));
  return Math.max(0, Math.min(count - 1, at));
}

/** The least and the greatest number, and the place of each between them as a share, from the top. */
export function scaleOf({ points, lines }: Pick<PlotProps, "points" | "lines">) {
  const numbers = points.flatMap(({ value, low, high }) => [value, low, high].filter((one) => one != null));
  for (const { value } of lines) numbers.push(value);
  const least = Math.min(...numbers);
  const most = Math.max(...numbers);
  // Halves: the difference of the largest numbers is too large for a number.
  const half = most / 2 - least / 2;
  const shareDown = (value: number): number => (half === 0 ? 0.5 : (most / 2 - value / 2) / half);
  return { least, most, shareDown };
}

/** Values one after another, with the band in which they pass, and lines across. What is around it says in words what it shows. */
export function Plot({ points, lines, cursor }: PlotProps) {
  const { shareDown } = scaleOf({ points, lines });
  const y = (value: number) => EDGE + shareDown(value) * (HEIGHT - 2 * EDGE);
  const x = (at: number) => shareAcross(at, points.length) * WIDTH;
  const place = (at: number, value: number) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
  const marks = (isMarked: (point: PlotPoint) => boolean | undefined) =>
    points
      .flatMap((point, at) => (isMarked(point) && point.value !== null ? `M${place(at, point.value)}h0.01` : []))
      .join("");
  const outside = marks(({ isOutside }) => isOutside);
  const failed = marks(({ isFailed }) => isFailed);
  const [low, high] = lines.filter(({ kind }) => kind === "limit").map(({ value }) => y(value));
  const path = (kind: string, d: string) =>
    d !== "" && <path class={`plot-${kind}`} d={d} vector-effect="non-scaling-stroke" />;
  const top = points.map(({ value, high: most }, at) => place(at, most ?? value ?? 0));
  const bottom = points.map(({ value, low: least }, at) => place(at, least ?? value ?? 0)).reverse();
  return (
    <svg class="plot-area" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {low !== undefined && (
        <rect class="plot-zone" x={0} width={WIDTH} y={high ?? 0} height={Math.max(1, low - (high ?? 0))} />
      )}
      {points.some((point) => point.low !== undefined) && path("band", `M${[...top, ...bottom].join("L")}Z`)}
      {lines.map(({ kind, value }, at) => (
        <path
          key={at}
          class={`plot-${kind}`}
          d={`M0 ${y(value).toFixed(1)}H${WIDTH}`}
          vector-effect="non-scaling-stroke"
        />
      ))}
      {cursor !== undefined && path("cursor", `M${x(cursor).toFixed(1)} 0V${HEIGHT}`)}
      {path("line", linesThrough(points, place))}
      {path("outside", outside)}
      {path("gap", outside)}
      {path("fail", failed)}
    </svg>
  );
}

function linesThrough(points: readonly PlotPoint[], place: (at: number, value: number) => string): string {
  let path = "";
  let isDown = false;
  points.forEach(({ value }, at) => {
    if (value !== null) path += `${isDown ? "L" : "M"}${place(at, value)}`;
    // A point that stands alone is a dot.
    if (value !== null && !isDown && (points[at + 1]?.value ?? null) === null) path += "h0.01";
    isDown = value !== null;
  });
  return path;
}
