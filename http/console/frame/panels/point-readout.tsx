import { fixed, inUnit, signed, unit } from "../../data/units.js";
import type { FrameModel } from "../frame-model.js";
import { columnAt, lineAt, xMm, yMm } from "../heights/frame-grid.js";
import { type HeightField, heightAt } from "../heights/height-field.js";

/** Millimetres, column and line of the point that is pointed at, with its height. */
export function PointReadout({ model, decimals }: { model: FrameModel; decimals: number }) {
  const point = model.pointed.value;
  const field = model.field.value;
  // No signal tells which lines are in memory. So the component is drawn anew when lines come.
  model.arrivals.value;
  if (field === undefined) return null;
  const { grid } = field;
  const length = (mm: number): string => fixed(inUnit(mm), decimals);
  const { view } = model.state.value;
  return (
    <dl class="readout" aria-live="polite">
      <Value name={view === "difference" ? "Δz" : "z"}>
        {point && heightText(field, point.column, point.line, decimals)}
      </Value>
      {view === "side" && <OtherHeight model={model} decimals={decimals} />}
      <Value name="x">{point && length(xMm(grid, point.column))}</Value>
      {/* The unit of all lengths is shown once, after y: y is last, and always a number. */}
      <Value name="y">{point && `${length(yMm(grid, point.line))} ${unit.value}`}</Value>
      {view === "luminance" && <Value name="luminance">{point && luminanceAt(model, point.column, point.line)}</Value>}
      <Value name="column">{point && whole(point.column)}</Value>
      <Value name="line">{point && whole(point.line)}</Value>
    </dl>
  );
}

/** The other map's points need not lie on this frame's. */
const whole = (place: number): string => String(Number(place.toFixed(1)));

function Value({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div data-value={name}>
      <dt>{name}</dt>
      <dd>{children ?? "–"}</dd>
    </div>
  );
}

function heightText(field: HeightField, column: number, line: number, decimals: number) {
  const { grid } = field;
  const isWithin = column > -0.5 && line > -0.5 && column < grid.width - 0.5 && line < grid.lines - 0.5;
  if (!isWithin) return <>outside</>;
  const { zMm, isExact } = heightAt(field, Math.round(column), Math.round(line));
  if (Number.isNaN(zMm)) return <>no measurement</>;
  // In an overview, it may be the height of a neighbour.
  return (
    <span data-exact={isExact}>
      {isExact ? "" : "≈ "}
      {fixed(inUnit(zMm), decimals)}
    </span>
  );
}

function OtherHeight({ model, decimals }: { model: FrameModel; decimals: number }) {
  const point = model.pointed.value;
  model.arrivals.value;
  const [here, other] = [model.here.value.value?.field, model.other.value.value?.field];
  if (point === undefined || here === undefined || other === undefined) return <Value name="z there">–</Value>;
  const column = columnAt(other.grid, xMm(here.grid, point.column));
  const line = lineAt(other.grid, yMm(here.grid, point.line));
  const [from, to] = [
    heightAt(here, Math.round(point.column), Math.round(point.line)),
    heightAt(other, Math.round(column), Math.round(line)),
  ];
  const difference = to.zMm - from.zMm;
  return (
    <>
      <Value name="z there">{heightText(other, column, line, decimals)}</Value>
      <Value name="Δz">{Number.isNaN(difference) ? "–" : signed(inUnit(difference), decimals)}</Value>
    </>
  );
}

function luminanceAt(model: FrameModel, column: number, line: number): string | undefined {
  const luminance = model.luminance.value.value;
  return luminance && String(luminance.valueAt(column, line));
}
