import { useEffect, useRef, useState } from "preact/hooks";
import { useEditedInput } from "../../data/edited-input.js";
import { fixed, inUnit, unit } from "../../data/units.js";
import { isDark } from "../../scheme.js";
import type { FrameModel } from "../frame-model.js";
import { NO_MEASUREMENT } from "../map/draw-heights.js";
import { diverging, type Palette, viridis } from "../measure/colour-map.js";
import { type HeightRange, histogram, percentileRange, roundTicks, symmetricRange } from "../measure/height-range.js";

const BAR_PIXELS = 256;
const BINS = 64;
const HISTOGRAM_PIXELS = 36;
/** Percent that are left out at each end. */
const PRESETS = [
  [1, "1–99 %"],
  [0.1, "0.1–99.9 %"],
  [0, "all"],
] as const;

export function paletteOf(model: FrameModel): Palette {
  return model.state.value.view === "difference" ? diverging : viridis;
}

/** What the colours mean, and between which heights they lie. */
export function LegendPanel({ model, decimals }: { model: FrameModel; decimals: number }) {
  const range = model.range.value;
  const palette = paletteOf(model);
  const bar = useRef<HTMLCanvasElement>(null);
  const sorted = model.sorted.value;
  const isDarkNow = isDark.value;
  const [isRefused, setIsRefused] = useState(false);
  useEffect(() => {
    if (range !== undefined) drawBar(bar.current as HTMLCanvasElement, palette, sorted, range);
  }, [palette, sorted, range, isDarkNow]);
  if (range === undefined) return null;
  const isDifference = model.state.value.view === "difference";
  const set = (next: HeightRange | undefined): void => {
    setIsRefused(false);
    model.change({ range: next });
  };
  const setBound = (next: HeightRange): void => (next.low < next.high ? set(next) : setIsRefused(true));
  return (
    <section class="panel" aria-label="Colours">
      <h2>
        {isDifference ? "Difference" : "Height"} <span class="note">({unit.value})</span>
      </h2>
      <canvas
        ref={bar}
        class="legend-bar"
        role="img"
        aria-label={legendText(range, decimals)}
        width={BAR_PIXELS}
        height={HISTOGRAM_PIXELS + 14}
      />
      <div class="legend-ticks" aria-hidden="true">
        <Ticks range={range} />
      </div>
      <div class="range">
        <Bound name="From" value={range.low} decimals={decimals} onChange={(low) => setBound({ ...range, low })} />
        <Bound name="To" value={range.high} decimals={decimals} onChange={(high) => setBound({ ...range, high })} />
      </div>
      {isRefused && <p role="alert">From must be below To: the range stays.</p>}
      <fieldset class="presets">
        <legend class="hidden">Range by percentiles</legend>
        {PRESETS.map(([percent, name]) => (
          <button
            key={name}
            type="button"
            onClick={() =>
              set(percent === 1 ? undefined : (isDifference ? symmetricRange : percentileRange)(sorted, percent))
            }
          >
            {name}
          </button>
        ))}
      </fieldset>
      <p class="note no-measurement">
        <Hatch /> no measurement
      </p>
    </section>
  );
}

function legendText({ low, high }: HeightRange, decimals: number): string {
  return `Colours from ${fixed(inUnit(low), decimals)} to ${fixed(inUnit(high), decimals)} ${unit.value}, with a histogram`;
}

function Ticks({ range }: { range: HeightRange }) {
  const [low, high] = [inUnit(range.low), inUnit(range.high)];
  const ticks = roundTicks({ low, high }, 4);
  const step = ticks.length > 1 ? (ticks[1] as number) - (ticks[0] as number) : 1;
  const decimals = Math.max(0, -Math.floor(Math.log10(Math.abs(step) || 1) + 1e-9));
  return (
    <>
      {ticks.map((tick) => (
        <span key={tick} style={{ left: `${high > low ? ((tick - low) / (high - low)) * 100 : 0}%` }}>
          {fixed(tick, decimals)}
        </span>
      ))}
    </>
  );
}

interface BoundProps {
  name: string;
  value: number;
  decimals: number;
  onChange(mm: number): void;
}

function Bound({ name, value, decimals, onChange }: BoundProps) {
  const edited = useEditedInput(inUnit(value).toFixed(decimals), ({ valueAsNumber }) => {
    if (Number.isFinite(valueAsNumber)) onChange(valueAsNumber / inUnit(1));
  });
  return (
    <label>
      {name}
      <input type="number" step="any" {...edited} />
    </label>
  );
}

function drawBar(canvas: HTMLCanvasElement, palette: Palette, sorted: Float32Array, range: HeightRange): void {
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  const counts = histogram(sorted, range, BINS);
  const most = Math.max(1, ...counts);
  context.fillStyle = getComputedStyle(canvas).color;
  for (const [bin, count] of counts.entries()) {
    // The square root keeps small parts of the surface visible beside large ones.
    const bar = Math.sqrt(count / most) * (HISTOGRAM_PIXELS - 2);
    context.fillRect((bin * width) / BINS, HISTOGRAM_PIXELS - bar, width / BINS - 0.5, bar);
  }
  const strip = context.createImageData(width, height - HISTOGRAM_PIXELS);
  const pixels = new Uint32Array(strip.data.buffer);
  for (let at = 0; at < pixels.length; at++) {
    pixels[at] = palette[Math.floor(((at % width) / width) * palette.length)] as number;
  }
  context.putImageData(strip, 0, HISTOGRAM_PIXELS);
}

/** Looks like points without measurement on the map. */
function Hatch() {
  const [dark, light] = NO_MEASUREMENT.map(
    (colour) => `rgb(${colour & 255}, ${(colour >> 8) & 255}, ${(colour >> 16) & 255})`,
  );
  return (
    <i
      aria-hidden="true"
      style={{ background: `repeating-linear-gradient(135deg, ${dark} 0 3px, ${light} 3px 6px)` }}
    />
  );
}
