/** Lines over an axis, by uPlot. */
import { effect } from "@preact/signals";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { isDark } from "../../scheme.js";

/** They differ in lightness too, for people who do not see the colours. */
const LIGHT = ["#0b5c94", "#b4530a", "#12693c", "#7a3e9d", "#8a6d00", "#ad1a22", "#00747a", "#4c5b66"];
const DARK = ["#74bdf2", "#ffb26b", "#6fd49c", "#cfa4ef", "#e6cc5c", "#ff9a96", "#5fd4da", "#a3b2bc"];

/**
 * Draws into `box`, follows its width and the colour scheme, and returns what ends it.
 * @param columns x in seconds, then one list for each label; null is a gap
 */
export function drawLines(
  box: HTMLElement,
  columns: readonly [number[], ...(number | null)[][]],
  labels: readonly string[],
  height: number,
): () => void {
  let plot: uPlot | undefined;
  const stop = effect(() => {
    plot?.destroy();
    plot = new uPlot(optionsOf(box, labels, height, isDark.value), columns as unknown as uPlot.AlignedData, box);
  });
  const resized = new ResizeObserver(() => plot?.setSize({ width: box.clientWidth, height }));
  resized.observe(box);
  return () => {
    resized.disconnect();
    stop();
    plot?.destroy();
  };
}

function optionsOf(box: HTMLElement, labels: readonly string[], height: number, isDark: boolean): uPlot.Options {
  const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name);
  const axis = (size: number, value?: uPlot.Axis.Values): uPlot.Axis => ({
    stroke: colour("--ink-soft"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
    size,
    ...(value !== undefined && { values: value }),
  });
  return {
    width: box.clientWidth,
    height,
    scales: { x: { time: false } },
    cursor: { drag: { x: true, y: false } },
    axes: [axis(30, (_, values) => values.map((value) => `${value} s`)), axis(60)],
    series: [
      // Series are timed in microseconds.
      { label: "Time", value: (_, value) => (value === null ? "–" : `${value.toFixed(6)} s`) },
      ...labels.map((label, at) => ({
        label,
        stroke: (isDark ? DARK : LIGHT)[at % DARK.length] as string,
        width: 1.25,
        points: { show: false },
        value: (_: uPlot, value: number | null) => (value === null ? "–" : String(value)),
      })),
    ],
  };
}
