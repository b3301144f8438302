import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { apiFetch, type Defect, type Frame, type Run } from "../data/api.js";
import { useReloadOnChange } from "../data/reload-on-change.js";
import { useResource } from "../data/resource.js";
import { pageHref } from "../router.js";
import { CellLink } from "../ui/cell-link.js";
import { Mark, runOutcome } from "../ui/outcome.js";
import { Text } from "../ui/values.js";
import { CLOUD_KEYS } from "./cloud/cloud-keys.js";
import type { CloudScene } from "./cloud/cloud-scene.js";
import { CloudView } from "./cloud/cloud-view.js";
import { ComparePanel } from "./compare/compare-panel.js";
import { FrameModel } from "./frame-model.js";
import { FRAME_VIEWS, type FrameView } from "./frame-state.js";
import type { OpenFrame } from "./heights/frame-source.js";
import { goToDefect } from "./map/go-to-defect.js";
import { MAP_KEYS } from "./map/map-keys.js";
import type { MapLayer } from "./map/map-layer.js";
import { MapView } from "./map/map-view.js";
import { type FrameDefect, frameDefects } from "./measure/frame-defects.js";
import { CloudPanel } from "./panels/cloud-panel.js";
import { DefectsPanel } from "./panels/defects-panel.js";
import { FactsPanel } from "./panels/facts-panel.js";
import { LegendPanel, paletteOf } from "./panels/legend-panel.js";
import { PointReadout } from "./panels/point-readout.js";
import { ProfilePanel } from "./profile/profile-panel.js";
import "./frame-page.css";

const VIEW_NAMES: Readonly<Record<FrameView, string>> = {
  height: "Height",
  luminance: "Luminance",
  cloud: "3D",
  side: "Side by side",
  difference: "Difference",
};

/** One frame: its heights, its luminance, its points in space. */
export function FramePage({ frameId }: { frameId: string }) {
  const model = useMemo(() => new FrameModel(frameId), [frameId]);
  useEffect(() => model.start(), [model]);
  const { value: open, problem } = model.here.value;
  if (open === undefined) {
    return (
      <div class="frame">
        <h1>Frame</h1>
        {problem === undefined ? <p aria-busy="true">Reading the frame …</p> : <p role="alert">{problem}</p>}
        {problem !== undefined && <Onward frameId={frameId} />}
        <p class="note mono">{frameId}</p>
      </div>
    );
  }
  return <OpenedFrame model={model} open={open} />;
}

/** The links from a frame that cannot be shown: to its run, or to all runs if there is no such frame; at a hub, to its cell. */
function Onward({ frameId }: { frameId: string }) {
  const frame = useResource<Frame>(`/sensor/frames/${encodeURIComponent(frameId)}`);
  const runId = frame.data.value?.run_id;
  const heights = useResource(frame.data.value?.cell ? `heights ${frameId}` : null, async (signal) => {
    const path = `/sensor/frames/${encodeURIComponent(frameId)}/file.npy`;
    await apiFetch(path, { signal, headers: { Range: "bytes=0-0" } });
  });
  return (
    <p>
      <a href={pageHref("runs", runId)}>{runId === undefined ? "All runs" : "Its run"}</a>{" "}
      <CellLink error={heights.error.value} />
    </p>
  );
}

function OpenedFrame({ model, open }: { model: FrameModel; open: OpenFrame }) {
  const { frame } = open;
  const run = useResource<Run>(`/runs/${frame.run_id}`);
  const found = useResource<{ defects?: Defect[] }>(`/runs/${frame.run_id}/defects`);
  const isThis = ({ id }: { id: string }) => id === frame.run_id;
  useReloadOnChange(run, isThis);
  useReloadOnChange(found, isThis);
  const isCutting = useSignal(false);
  const scene = useSignal<CloudScene | undefined>(undefined);
  const runValue = run.data.value;
  const defectsValue = found.data.value?.defects;
  const defects = useMemo(() => {
    const frameIds = (runValue?.results?.frame_ids as string[] | undefined) ?? [];
    return frameDefects(defectsValue ?? [], frame.id, runValue?.files ?? [], frameIds);
  }, [runValue, defectsValue, frame.id]);
  const hasGone = useRef(false);
  useEffect(() => {
    if (hasGone.current || defectsValue === undefined || runValue === undefined) return;
    hasGone.current = true;
    // A link from the run names the defect only.
    const { defect, place, cloud } = model.state.peek();
    const linked = defects.find(({ index }) => index === defect);
    if (linked !== undefined && place === undefined && cloud.camera === undefined) goToDefect(model, linked);
  }, [model, defects, defectsValue, runValue]);
  const { view } = model.state.value;
  const decimals = model.decimals.value;
  // Room is made before a line is drawn: the map must not change its size under the pointer.
  const hasProfile = view !== "cloud" && (isCutting.value || model.state.value.cut !== undefined);
  return (
    <div class="frame">
      <FrameHead model={model} open={open} run={runValue} />
      <div class="frame-body">
        <div class={`frame-stage${hasProfile ? " with-profile" : ""}`}>
          <Toolbar model={model} isCutting={isCutting} />
          {view === "cloud" ? (
            <CloudView model={model} scene={scene} defects={defects} />
          ) : (
            <Maps model={model} open={open} defects={defects} isCutting={isCutting} />
          )}
          {hasProfile && <ProfilePanel model={model} decimals={decimals} />}
          <details class="note keys">
            <summary>Keys</summary>
            <p id={view === "cloud" ? "cloud-keys" : "map-keys"}>{view === "cloud" ? CLOUD_KEYS : MAP_KEYS}</p>
          </details>
        </div>
        <aside class="frame-side" aria-label="Settings and results of the frame">
          {(view === "side" || view === "difference") && <ComparePanel model={model} run={runValue} />}
          <DefectsPanel model={model} defects={defects} />
          {view === "cloud" && <CloudPanel model={model} scene={scene} decimals={decimals} />}
          {view !== "luminance" && <LegendPanel model={model} decimals={decimals} />}
          <FactsPanel open={open} />
        </aside>
      </div>
    </div>
  );
}

function FrameHead({ model, open, run }: { model: FrameModel; open: OpenFrame; run: Run | undefined }) {
  const { frame } = open;
  const { view } = model.state.value;
  const serial = run?.serial_number;
  const step = run?.steps?.completed.find(({ index }) => index === frame.step_index);
  const hasLuminance = frame.geometry.luminance !== null;
  return (
    <header class="frame-head">
      <div>
        <p class="note">
          <a href={pageHref("runs", frame.run_id)}>
            Run <Text of={serial} none={frame.run_id} /> {serial && `inspection ${run?.revision}`}
          </a>{" "}
          {run !== undefined && <Mark of={runOutcome(run)} />}
        </p>
        <h1>
          <Text of={step?.name} none={`Frame of step ${frame.step_index}`} />
        </h1>
      </div>
      <nav class="views" aria-label="Views of the frame">
        {FRAME_VIEWS.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={view === name}
            disabled={name === "luminance" && !hasLuminance}
            title={name === "luminance" && !hasLuminance ? "This frame has no luminance" : undefined}
            onClick={() => changeView(model, name)}
          >
            {VIEW_NAMES[name]}
          </button>
        ))}
      </nav>
    </header>
  );
}

/** A range of heights means nothing for differences, and the other way round. */
function changeView(model: FrameModel, view: FrameView): void {
  const { view: before, range, cursors, cut } = model.state.value;
  const isOther = (view === "difference") !== (before === "difference");
  model.change({ view, range: isOther ? undefined : range, cut, cursors }, true);
}

function Toolbar({ model, isCutting }: { model: FrameModel; isCutting: Signal<boolean> }) {
  if (model.state.value.view === "cloud") return null;
  return (
    <div class="toolbar" role="toolbar" aria-label="Map">
      <button type="button" aria-pressed={isCutting.value} onClick={() => (isCutting.value = !isCutting.value)}>
        Cut line
      </button>
      <button type="button" onClick={() => model.change({ place: undefined })}>
        Show all
      </button>
      <PointReadout model={model} decimals={model.decimals.value} />
    </div>
  );
}

interface MapsProps {
  model: FrameModel;
  open: OpenFrame;
  defects: readonly FrameDefect[];
  isCutting: Signal<boolean>;
}

function Maps({ model, open, defects, isCutting }: MapsProps) {
  const { view, other } = model.state.value;
  const range = model.range.value;
  const field = model.field.value;
  const shared = {
    model,
    isCutting: isCutting.value,
    onCutDone: () => {
      isCutting.value = false;
    },
  };
  const heights = (of: typeof field): MapLayer | undefined =>
    of && { kind: "heights", field: of, palette: paletteOf(model), range };
  if (view === "luminance") return <LuminanceMap {...shared} open={open} defects={defects} />;
  if (view === "side") {
    const there = heights(model.other.value.value?.field);
    return (
      <div class="maps">
        <OneMap {...shared} layer={heights(open.field)} label="Heights of this frame" defects={defects} />
        <OneMap {...shared} layer={there} label="Heights of the other frame" defects={NONE} isOther>
          {other === undefined ? "Choose a run to compare with." : (model.otherProblem.value ?? "Reading …")}
        </OneMap>
      </div>
    );
  }
  return (
    <OneMap
      {...shared}
      layer={heights(field)}
      label={view === "difference" ? "Difference" : "Height map"}
      defects={defects}
    >
      {other === undefined
        ? "Choose a run to compare with."
        : (model.comparison.value.note ?? model.otherProblem.value ?? "Reading …")}
    </OneMap>
  );
}

const NONE: readonly FrameDefect[] = [];

interface OneMapProps extends Omit<MapsProps, "open" | "isCutting"> {
  isCutting: boolean;
  onCutDone(): void;
  layer: MapLayer | undefined;
  label: string;
  isOther?: boolean;
  /** What is shown while there is no layer. */
  children?: ComponentChildren;
}

function OneMap({ layer, children, ...rest }: OneMapProps) {
  const { model } = rest;
  if (layer === undefined)
    return (
      <div class="map">
        <p class="map-message">{children}</p>
      </div>
    );
  const isEmpty = layer.kind === "heights" && layer.range === undefined;
  return (
    <div class="map-frame">
      <MapView layer={layer} {...rest} />
      {isEmpty && (
        <p class="map-message" role="alert">
          {model.state.value.view === "difference"
            ? "The two frames have no measured point in common."
            : "No point of this frame was measured: every one is marked as invalid."}
        </p>
      )}
      {model.lineProblem.value !== undefined && (
        <p class="map-message" role="alert">
          {model.lineProblem.value} The map shows the overview.
        </p>
      )}
    </div>
  );
}

function LuminanceMap({ open, ...rest }: Omit<OneMapProps, "layer" | "label" | "children"> & { open: OpenFrame }) {
  const { model } = rest;
  const { value, problem } = model.luminance.value;
  const layer: MapLayer | undefined = useMemo(
    () => value && { kind: "luminance", grid: open.field.grid, luminance: value },
    [value, open],
  );
  const text =
    open.frame.geometry.luminance === null ? "This frame has no luminance." : (problem ?? "Reading the luminance …");
  return (
    <OneMap {...rest} layer={layer} label="Luminance">
      {text}
    </OneMap>
  );
}
