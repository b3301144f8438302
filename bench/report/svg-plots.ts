/**
 * Plots as inline SVG, for a page that works without internet. Colours are CSS classes of the page, so that they follow its
 * light or dark scheme; every mark carries a `<title>` with its figures.
 */
import { bucketUpperNs, type LatencyData } from "../harness/latency-histogram.js";
import type { Interval, Spread } from "../harness/statistics.js";
import { formatFigure } from "./number-format.js";

const WIDTH = 860;
const LABEL_WIDTH = 190;
const RIGHT = 20;
const ROW_HEIGHT = 46;
const AXIS_HEIGHT = 44;

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Round tick values (1, 2 or 5 times a power of ten) that span low to high, about `count` of them. */
export function niceTicks(low: number, high: number, count = 6): number[] {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power;
  const ticks: number[] = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
  return ticks;
}

function formatTick(tick: number): string {
  return Number(tick.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 });
}

/** A power of ten of microseconds. */
function formatDecade(decade: number): string {
  if (decade < 3) return `${formatTick(10 ** decade)} us`;
  return decade < 6 ? `${10 ** (decade - 3)} ms` : `${formatTick(10 ** (decade - 6))} s`;
}

export interface StripRow {
  label: string;
  /** Of its contestant: the same colour in all plots of a benchmark. */
  series: number;
  values: readonly number[];
  spread: Spread;
  interval?: Interval;
}

/**
 * One row per contestant: every round a dot, the box its quartiles, the bar its median; the whisker, where given, the interval
 * of the median. `target` is a vertical line. The axis begins at 0, so that lengths compare.
 */
export function stripPlot(
  rows: readonly StripRow[],
  axisTitle: string,
  target?: { value: number; label: string },
): string {
  const highest = Math.max(...rows.map(({ spread }) => spread.maximum), target?.value ?? 0) * 1.06;
  const height = rows.length * ROW_HEIGHT + AXIS_HEIGHT + 16;
  const bottom = rows.length * ROW_HEIGHT + 16;
  const x = (value: number): number => LABEL_WIDTH + (value / highest) * (WIDTH - LABEL_WIDTH - RIGHT);
  const at = (value: number): string => x(value).toFixed(1);
  const parts = niceTicks(0, highest).map(
    (tick) =>
      `<line class="grid" x1="${at(tick)}" x2="${at(tick)}" y1="16" y2="${bottom}"/>` +
      `<text class="tick" x="${at(tick)}" y="${bottom + 16}" text-anchor="middle">${formatTick(tick)}</text>`,
  );
  rows.forEach(({ label, series: number, values, spread, interval }, row) => {
    const middle = 16 + row * ROW_HEIGHT + ROW_HEIGHT / 2;
    const series = `s${number % 6}`;
    const boxWidth = Math.max(1, x(spread.upperQuartile) - x(spread.lowerQuartile)).toFixed(1);
    parts.push(
      `<text class="label" x="${LABEL_WIDTH - 10}" y="${middle + 4}" text-anchor="end">${escapeHtml(label)}</text>`,
      `<rect class="box ${series}" x="${at(spread.lowerQuartile)}" y="${middle - 12}" width="${boxWidth}" height="24"><title>` +
        `quartiles ${formatFigure(spread.lowerQuartile)} to ${formatFigure(spread.upperQuartile)}</title></rect>`,
      ...values.map((value, round) => {
        // Rounds from top to bottom, so that a drift shows as a slant.
        const y = middle - 9 + (values.length === 1 ? 9 : (18 * round) / (values.length - 1));
        const title = `round ${round + 1}: ${formatFigure(value)}`;
        return `<circle class="dot ${series}" cx="${at(value)}" cy="${y.toFixed(1)}" r="3"><title>${title}</title></circle>`;
      }),
      `<line class="median ${series}" x1="${at(spread.median)}" x2="${at(spread.median)}" y1="${middle - 15}" y2="${middle + 15}">` +
        `<title>median ${formatFigure(spread.median)}</title></line>`,
    );
    if (interval !== undefined) {
      parts.push(
        `<line class="whisker" x1="${at(interval.low)}" x2="${at(interval.high)}" y1="${middle + 18}" y2="${middle + 18}"><title>` +
          `${(interval.confidence * 100).toFixed(0)} % interval of the median</title></line>`,
      );
    }
  });
  if (target !== undefined) {
    const nearRight = x(target.value) > WIDTH - 160;
    parts.push(
      `<line class="target" x1="${at(target.value)}" x2="${at(target.value)}" y1="6" y2="${bottom}"/>`,
      `<text class="target-label" x="${(x(target.value) + (nearRight ? -5 : 5)).toFixed(1)}" y="13" ` +
        `text-anchor="${nearRight ? "end" : "start"}">${escapeHtml(target.label)}</text>`,
    );
  }
  parts.push(
    `<line class="axis" x1="${LABEL_WIDTH}" x2="${WIDTH - RIGHT}" y1="${bottom}" y2="${bottom}"/>`,
    `<text class="tick" x="${(LABEL_WIDTH + WIDTH - RIGHT) / 2}" y="${bottom + 36}" text-anchor="middle">${escapeHtml(axisTitle)}</text>`,
  );
  return svg(height, axisTitle, parts);
}

/** Latency (log) over percentile, the percentile's axis stretched towards 100 % by powers of ten as HdrHistogram draws it. */
export function latencyPlot(series: readonly { label: string; series: number; data: LatencyData }[]): string {
  const plotHeight = 260;
  const top = 16;
  const bottom = top + plotHeight;
  const nines = Math.max(3, Math.min(6, Math.floor(Math.log10(Math.max(...series.map(({ data }) => data.count))))));
  const curves = series.map(({ label, series: number, data }) => {
    let seen = 0;
    const points: [number, number][] = data.buckets.map(([index, count]) => {
      seen += count;
      const decades = seen >= data.count ? nines : Math.min(nines, -Math.log10(1 - seen / data.count));
      return [decades, Math.max(0.1, Math.min(bucketUpperNs(index), data.maximumNs) / 1000)];
    });
    return { label, number, points };
  });
  const all = curves.flatMap(({ points }) => points.map(([, us]) => us));
  const lowDecade = Math.floor(Math.log10(Math.min(...all)));
  const highDecade = Math.max(lowDecade + 1, Math.ceil(Math.log10(Math.max(...all))));
  const left = 90;
  const right = 170;
  const x = (decades: number): string => (left + (decades / nines) * (WIDTH - left - right)).toFixed(1);
  const y = (us: number): string =>
    (bottom - ((Math.log10(us) - lowDecade) / (highDecade - lowDecade)) * plotHeight).toFixed(1);
  const parts: string[] = [];
  for (let decade = lowDecade; decade <= highDecade; decade++) {
    const level = y(10 ** decade);
    parts.push(
      `<line class="grid" x1="${left}" x2="${WIDTH - right}" y1="${level}" y2="${level}"/>`,
      `<text class="tick" x="${left - 8}" y="${Number(level) + 4}" text-anchor="end">${formatDecade(decade)}</text>`,
    );
  }
  const percentiles: [number, string][] = [
    [0, "0 %"],
    [Math.log10(2), "50 %"],
    [1, "90 %"],
    [2, "99 %"],
    [3, "99.9 %"],
  ];
  for (let n = 4; n <= nines; n++) percentiles.push([n, `99.${"9".repeat(n - 2)} %`]);
  for (const [decades, label] of percentiles) {
    parts.push(
      `<line class="grid" x1="${x(decades)}" x2="${x(decades)}" y1="${top}" y2="${bottom}"/>`,
      `<text class="tick" x="${x(decades)}" y="${bottom + 16}" text-anchor="middle">${label}</text>`,
    );
  }
  curves.forEach(({ label, number, points }, index) => {
    const path = points.map(([decades, us], i) => `${i === 0 ? "M" : "L"}${x(decades)} ${y(us)}`).join("");
    parts.push(
      `<path class="curve s${number % 6}" d="${path}"><title>${escapeHtml(label)}</title></path>`,
      `<line class="median s${number % 6}" x1="${WIDTH - right + 14}" x2="${WIDTH - right + 34}" y1="${top + 10 + index * 20}" y2="${top + 10 + index * 20}"/>`,
      `<text class="tick" x="${WIDTH - right + 40}" y="${top + 14 + index * 20}">${escapeHtml(label)}</text>`,
    );
  });
  parts.push(
    `<text class="tick" x="${(left + WIDTH - right) / 2}" y="${bottom + 36}" text-anchor="middle">share of operations at or below</text>`,
  );
  return svg(bottom + AXIS_HEIGHT, "latency by percentile", parts);
}

function svg(height: number, title: string, parts: readonly string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escapeHtml(title)}">${parts.join("")}</svg>`;
}
