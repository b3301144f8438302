import { fixed, inUnit, unit, whole } from "../../data/units.js";
import { Text, Time } from "../../ui/values.js";
import type { OpenFrame } from "../heights/frame-source.js";

/** What the frame is: when and by what it was taken, and how large it is. */
export function FactsPanel({ open }: { open: OpenFrame }) {
  const { frame, field } = open;
  const { grid, overview } = field;
  const { height, luminance } = frame.geometry;
  const size = (mm: number, decimals: number): string => fixed(inUnit(mm), decimals);
  const pitch = (mm: number): string => String(Number(inUnit(mm).toPrecision(6)));
  return (
    <section class="panel" aria-label="Frame">
      <h2>Frame</h2>
      <dl class="facts">
        <dt>Taken</dt>
        <dd>
          <Time at={frame.capture_timestamp} />
        </dd>
        <dt>Sensor</dt>
        <dd>
          <Text of={frame.sensor_id} />
        </dd>
        <dt>Step</dt>
        <dd>{frame.step_index}</dd>
        <dt>Points</dt>
        <dd>
          {whole(grid.width)} × {whole(grid.lines)}
        </dd>
        <dt>Size</dt>
        <dd>
          {size(grid.width * grid.xPitchMm, 2)} × {size(grid.lines * grid.yPitchMm, 2)} {unit.value}
        </dd>
        <dt>Pitch</dt>
        <dd>
          {pitch(grid.xPitchMm)} × {pitch(grid.yPitchMm)} {unit.value}
        </dd>
        <dt>Heights</dt>
        <dd>
          {height.dtype},{" "}
          {height.dtype === "f32" ? floatUnit(height.scale_mm) : `${pitch(height.scale_mm)} ${unit.value} a step`}
        </dd>
        <dt>Luminance</dt>
        <dd>{luminance === null ? "none" : `${luminance.bits} bits`}</dd>
        <dt>Overview</dt>
        <dd>{overview.stride === 1 ? "all points" : `1 in ${overview.stride ** 2} points; all where you look`}</dd>
      </dl>
    </section>
  );
}

/** Floats have no step, so that nobody takes the scale for the resolution. */
function floatUnit(scaleMm: number): string {
  return scaleMm === 1 ? "mm" : `in units of ${scaleMm} mm`;
}
