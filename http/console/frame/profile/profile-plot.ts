import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { inUnit, unit } from "../../data/units.js";
import type { Profile } from "../measure/cut-line.js";

const CURSOR_COLOURS = ["--cursor-a", "--cursor-b"] as const;
const HEIGHT_PIXELS = 190;

export interface PlotCursors {
  /** The samples at which the cursors are. */
  readonly at: () => readonly [number, number];
  /** A cursor was moved on the plot. */
  readonly onMove: (cursor: 0 | 1, sample: number) => void;
}

/** Draws a profile: distance along the cut line against height, with two cursors that can be dragged. */
export class ProfilePlot {
  readonly #plot: uPlot;
  readonly #cursors: PlotCursors;
  readonly #listening = new AbortController();

  constructor(element: HTMLElement, profile: Profile, cursors: PlotCursors) {
    this.#cursors = cursors;
    const distances = Array.from(profile.distanceMm, inUnit);
    const heights = Array.from(profile.zMm, (z) => (Number.isNaN(z) ? null : inUnit(z)));
    const colour = (name: string) => () => getComputedStyle(element).getPropertyValue(name).trim();
    const axis = (label: string): uPlot.Axis => ({
      label: `${label} (${unit.value})`,
      labelSize: 16,
      labelFont: "12px system-ui, sans-serif",
      font: "12px system-ui, sans-serif",
      stroke: colour("--ink-soft"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { stroke: colour("--line"), width: 1, size: 4 },
    });
    this.#plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT_PIXELS,
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { size: 6 } },
        scales: { x: { time: false } },
        axes: [
          { ...axis("distance"), size: 26 },
          { ...axis("z"), size: 64 },
        ],
        series: [{}, { stroke: colour("--accent"), width: 1.5, points: { show: false } }],
        hooks: { draw: [(plot) => this.#drawCursors(plot)] },
      },
      [distances, heights],
      element,
    );
    this.#listen();
  }

  resize(width: number): void {
    if (width > 0) this.#plot.setSize({ width, height: HEIGHT_PIXELS });
  }

  redraw(): void {
    this.#plot.redraw(false);
  }

  end(): void {
    this.#listening.abort();
    this.#plot.destroy();
  }

  #drawCursors(plot: uPlot): void {
    const { ctx, bbox } = plot;
    for (const [cursor, sample] of this.#cursors.at().entries()) {
      const distance = plot.data[0][sample];
      if (distance === undefined) continue;
      const x = plot.valToPos(distance, "x", true);
      const z = plot.data[1]?.[sample];
      ctx.save();
      const colour = getComputedStyle(plot.root).getPropertyValue(CURSOR_COLOURS[cursor] as string);
      ctx.strokeStyle = colour;
      ctx.fillStyle = colour;
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (z !== null && z !== undefined) {
        ctx.beginPath();
        ctx.arc(x, plot.valToPos(z, "y", true), 4 * devicePixelRatio, 0, 2 * Math.PI);
        ctx.fill();
      }
      ctx.restore();
    }
  }

  /** A press takes the nearer cursor along. */
  #listen(): void {
    const { over } = this.#plot;
    const { signal } = this.#listening;
    let taken: 0 | 1 | undefined;
    const sampleAt = (event: PointerEvent): number =>
      this.#plot.posToIdx(event.clientX - over.getBoundingClientRect().left);
    over.addEventListener(
      "pointerdown",
      (event) => {
        over.setPointerCapture(event.pointerId);
        const sample = sampleAt(event);
        const [first, second] = this.#cursors.at();
        taken = Math.abs(first - sample) <= Math.abs(second - sample) ? 0 : 1;
        this.#cursors.onMove(taken, sample);
      },
      { signal },
    );
    over.addEventListener(
      "pointermove",
      (event) => {
        if (taken !== undefined) this.#cursors.onMove(taken, sampleAt(event));
      },
      { signal },
    );
    for (const name of ["pointerup", "pointercancel"] as const) {
      over.addEventListener(
        name,
        () => {
          taken = undefined;
        },
        { signal },
      );
    }
  }
}
