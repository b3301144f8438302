import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { fixed, inUnit, signed, unit } from "../../data/units.js";
import { isDark } from "../../scheme.js";
import type { FrameModel } from "../frame-model.js";
import { type FrameGrid, xMm, yMm } from "../heights/frame-grid.js";
import { cursorsOn, type Profile, profileCsv, stepBetween } from "../measure/cut-line.js";
import { ProfilePlot } from "./profile-plot.js";

const CURSOR_NAMES = ["A", "B"] as const;

/** The profile along the cut line, with what the two cursors measure on it. */
export function ProfilePanel({ model, decimals }: { model: FrameModel; decimals: number }) {
  const { value: profile, problem } = model.profile.value;
  const grid = model.field.value?.grid;
  if (grid === undefined) return null;
  const isDrawn = model.state.value.cut !== undefined;
  return (
    <section class="profile" aria-label="Profile along the cut line">
      {problem !== undefined && <p role="alert">{problem}</p>}
      {profile === undefined && problem === undefined && (
        <p class="note">{isDrawn ? "Reading the profile …" : "Draw a line on the map: its profile appears here."}</p>
      )}
      {profile !== undefined && <ProfileOf model={model} profile={profile} grid={grid} decimals={decimals} />}
    </section>
  );
}

function cursorsOf(model: FrameModel, profile: Profile): readonly [number, number] {
  return cursorsOn(profile, model.state.value.cursors);
}

interface ProfileProps {
  model: FrameModel;
  profile: Profile;
  grid: FrameGrid;
  decimals: number;
}

function ProfileOf({ model, profile, grid, decimals }: ProfileProps) {
  const box = useRef<HTMLDivElement>(null);
  const cursors = cursorsOf(model, profile);
  const move = (cursor: 0 | 1, sample: number): void => {
    const now = cursorsOf(model, profile);
    model.change({ cursors: cursor === 0 ? [sample, now[1]] : [now[0], sample] });
  };
  const unitNow = unit.value;
  useEffect(() => {
    const element = box.current as HTMLDivElement;
    const plot = new ProfilePlot(element, profile, { at: () => cursorsOf(model, profile), onMove: move });
    const observer = new ResizeObserver(() => plot.resize(element.clientWidth));
    observer.observe(element);
    const stop = effect(() => {
      model.state.value.cursors;
      isDark.value;
      plot.redraw();
    });
    return () => {
      stop();
      observer.disconnect();
      plot.end();
    };
  }, [profile, unitNow]);
  return (
    <>
      {profile.zMm.every(Number.isNaN) && <p role="note">No point on this line was measured.</p>}
      <div ref={box} class="profile-plot" aria-hidden="true" />
      <div class="profile-tools">
        {CURSOR_NAMES.map((name, at) => (
          <label key={name} class={`cursor cursor-${name.toLowerCase()}`}>
            <span>
              Cursor {name}{" "}
              <CursorValues profile={profile} grid={grid} sample={cursors[at] as number} decimals={decimals} />
            </span>
            <input
              type="range"
              min={0}
              max={profile.zMm.length - 1}
              value={cursors[at]}
              aria-valuetext={valueText(profile, cursors[at] as number, decimals)}
              onInput={(event) => move(at as 0 | 1, Number(event.currentTarget.value))}
            />
          </label>
        ))}
        <Measured profile={profile} grid={grid} cursors={cursors} decimals={decimals} />
        <div class="profile-actions">
          <button type="button" onClick={() => saveCsv(profile, grid, model.frameId)}>
            Save CSV
          </button>
          <button type="button" onClick={() => model.change({ cut: undefined, cursors: undefined }, true)}>
            Remove
          </button>
        </div>
      </div>
    </>
  );
}

function length(mm: number, decimals: number): string {
  return Number.isNaN(mm) ? "no measurement" : `${fixed(inUnit(mm), decimals)} ${unit.value}`;
}

function valueText(profile: Profile, sample: number, decimals: number): string {
  const distance = length(profile.distanceMm[sample] as number, decimals);
  return `at ${distance}, height ${length(profile.zMm[sample] as number, decimals)}`;
}

function CursorValues({ profile, grid, sample, decimals }: { sample: number } & Omit<ProfileProps, "model">) {
  const x = xMm(grid, profile.columns[sample] as number);
  const y = yMm(grid, profile.lines[sample] as number);
  return (
    <b>
      x {fixed(inUnit(x), decimals)} y {fixed(inUnit(y), decimals)} z {length(profile.zMm[sample] as number, decimals)}
    </b>
  );
}

function Measured(props: { cursors: readonly [number, number] } & Omit<ProfileProps, "model">) {
  const { profile, grid, cursors, decimals } = props;
  const step = stepBetween(profile, grid, ...cursors);
  const isMeasured = !Number.isNaN(step.heightMm);
  return (
    <dl class="measured">
      <dt>Distance A–B</dt>
      <dd data-value="distance">{length(step.distanceMm, decimals)}</dd>
      <dt>Step B − A</dt>
      <dd data-value="step">
        {isMeasured ? `${signed(inUnit(step.heightMm), decimals)} ${unit.value}` : "no measurement"}
      </dd>
      <dt>Angle</dt>
      <dd>{isMeasured ? `${fixed(step.angleDegrees, 2)}°` : "–"}</dd>
    </dl>
  );
}

function saveCsv(profile: Profile, grid: FrameGrid, frameId: string): void {
  const url = URL.createObjectURL(new Blob([profileCsv(profile, grid)], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `profile-${frameId}.csv`;
  link.click();
  URL.revokeObjectURL(url);
}
