import type { SeriesState } from "../../../core/capture/capture.js";
import type { RunState } from "../../../core/run/run-state.js";
import type { SeriesOutline } from "../series/series-outline.js";
import { durationShown, escaped, plain, shown } from "./page-text.js";

/** A series as the page shows it. */
export interface PageSeries {
  series: SeriesState;
  plot: SeriesOutline | { why: string };
}

/** A plot is about as wide as this many dots of a printer that shows one line beside the other. */
export const PLOT_BUCKETS = 400;
const HEIGHT = 100;
const COLOURS = ["#0b5cad", "#b3261e", "#146c2e", "#7a4f00", "#6a1b9a", "#00696b", "#a0005a", "#444"];

/** @param left how many series are not shown */
export function* seriesSection(run: RunState, shownSeries: readonly PageSeries[], left: number) {
  if (run.series.length === 0) return;
  yield "<h2>Series</h2>\n";
  for (const { series, plot } of shownSeries) {
    const step = run.steps[series.stepIndex - 1]?.definition.name;
    const name = `<strong>${step ? shown(step) : `Step ${series.stepIndex}`}</strong>`;
    yield `<figure class="series"><figcaption>${name} ${"why" in plot ? escaped(plot.why) : captionOf(series)}</figcaption>`;
    if (!("why" in plot)) yield drawing(plot);
    yield "</figure>\n";
  }
  if (left > 0) yield `<p>${left} more series are not shown here.</p>\n`;
}

function captionOf({ channels, appends }: SeriesState): string {
  const rows = appends.reduce((sum, append) => sum + append.rows, 0);
  const keys = Array.from({ length: Math.min(channels, COLOURS.length) }, (_, at) => {
    return `<span class="channel"><span class="key" style="background:${colourOf(at)}"></span>channel ${at + 1}</span>`;
  });
  const more = channels > COLOURS.length ? ` and ${channels - COLOURS.length} more` : "";
  return `<span class="note">${rows} samples, in the unit of the sensor</span>${keys.join(" ")}${more}`;
}

function colourOf(channel: number): string {
  return COLOURS[channel % COLOURS.length] as string;
}

function drawing({ minima, maxima, lengthUs, hasSamples }: SeriesOutline): string {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const [channel, least] of minima.entries()) {
    for (const [bucket, value] of least.entries()) {
      if (Number.isNaN(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, maxima[channel]?.[bucket] as number);
    }
  }
  if (low > high) return "<p>No channel measured a value.</p>";
  const scale = high > low ? HEIGHT / (high - low) : 0;
  // A constant lies in the middle.
  const y = (value: number): string =>
    String(Number((scale === 0 ? HEIGHT / 2 : HEIGHT - (value - low) * scale).toFixed(2)));
  const paths = minima.map((least, channel) => {
    const d = pathOf(least, maxima[channel] as Float64Array, hasSamples, y);
    return d === "" ? "" : `<path stroke="${colourOf(channel)}" d="${d}"/>`;
  });
  const words = `${minima.length} channels from ${plain(low)} to ${plain(high)}`;
  return (
    `<div class="axis"><span>${plain(high)}</span></div>` +
    `<svg class="plot" viewBox="0 -2 ${PLOT_BUCKETS} ${HEIGHT + 4}" preserveAspectRatio="none" role="img" aria-label="${words}">` +
    `${paths.join("")}</svg><div class="axis"><span>${plain(low)}</span><span>${durationShown(lengthUs)}</span></div>`
  );
}

/** The least and the greatest value of each bucket. The line is broken where samples were taken and none measured. */
function pathOf(
  least: Float64Array,
  greatest: Float64Array,
  hasSamples: Uint8Array,
  y: (value: number) => string,
): string {
  let path = "";
  let isBroken = true;
  for (let bucket = 0; bucket < least.length; bucket++) {
    if (hasSamples[bucket] === 0) continue;
    const [low, high] = [least[bucket] as number, greatest[bucket] as number];
    if (Number.isNaN(low)) {
      isBroken = true;
      continue;
    }
    // A single value has a length of its own, so that it is seen.
    path += `${isBroken ? "M" : "L"}${bucket} ${y(low)}${high > low ? `L${bucket} ${y(high)}` : isBroken ? "h1" : ""}`;
    isBroken = false;
  }
  return path;
}
