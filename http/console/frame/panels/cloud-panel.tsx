import { distance } from "../../../../core/run/oriented-box.js";
import { fixed, inUnit, signed, unit } from "../../data/units.js";
import { HeadRow } from "../../ui/virtual-rows.js";
import { pickedPoints } from "../cloud/cloud-overlay.js";
import type { CloudScene, CloudView } from "../cloud/cloud-scene.js";
import type { FrameModel } from "../frame-model.js";
import { CLOUD_COLOURS, type CloudState, POINT_PIXELS, STRETCH } from "../frame-state.js";

const COLOUR_NAMES = { height: "height", luminance: "luminance", removed: "what the filter removed" } as const;
const VIEWS: readonly (readonly [CloudView, string])[] = [
  ["home", "Whole"],
  ["top", "Top"],
  ["front", "Front"],
  ["side", "Side"],
];

interface CloudPanelProps {
  model: FrameModel;
  scene: { readonly value: CloudScene | undefined };
  decimals: number;
}

/** How the cloud is drawn, and what is measured in it. */
export function CloudPanel({ model, scene, decimals }: CloudPanelProps) {
  const { cloud } = model.state.value;
  const hasLuminance = model.here.value.value?.frame.geometry.luminance !== null;
  const set = (changes: Partial<CloudState>): void =>
    model.change({ cloud: { ...model.state.value.cloud, ...changes } });
  return (
    <>
      <section class="panel" aria-label="Point cloud">
        <h2>Points</h2>
        <div class="cloud-choices">
          <label>
            Cloud
            <select
              value={cloud.source}
              disabled={cloud.colour === "removed"}
              onChange={(event) => set({ source: event.currentTarget.value as CloudState["source"], picks: [] })}
            >
              <option value="filtered">filtered</option>
              <option value="raw">raw</option>
            </select>
          </label>
          <label>
            Coloured by
            <select
              value={cloud.colour}
              onChange={(event) => set({ colour: event.currentTarget.value as CloudState["colour"], picks: [] })}
            >
              {CLOUD_COLOURS.map((colour) => (
                <option key={colour} value={colour} disabled={colour === "luminance" && !hasLuminance}>
                  {COLOUR_NAMES[colour]}
                </option>
              ))}
            </select>
          </label>
        </div>
        {cloud.colour === "luminance" && !hasLuminance && <p class="note">This frame has no luminance.</p>}
        <Slider
          name="Point size"
          unitText="px"
          bounds={POINT_PIXELS}
          value={cloud.pointPixels}
          onInput={(pointPixels) => set({ pointPixels })}
        />
        <Slider
          name="Height is drawn"
          unitText="times"
          bounds={STRETCH}
          value={cloud.stretch}
          onInput={(stretch) => set({ stretch })}
        />
        <Views scene={scene} set={set} />
        <PointCount model={model} />
      </section>
      <Picked model={model} decimals={decimals} />
    </>
  );
}

interface ViewsProps extends Pick<CloudPanelProps, "scene"> {
  set(changes: Partial<CloudState>): void;
}

/** Buttons for the directions from which the cloud is seen. */
function Views({ scene, set }: ViewsProps) {
  return (
    <fieldset class="presets">
      <legend class="hidden">View</legend>
      {VIEWS.map(([view, name]) => (
        <button
          key={view}
          type="button"
          onClick={() => {
            scene.value?.look(view);
            if (scene.value) set({ camera: scene.value.camera });
          }}
        >
          {name}
        </button>
      ))}
    </fieldset>
  );
}

interface SliderProps {
  name: string;
  unitText: string;
  bounds: { readonly least: number; readonly most: number };
  value: number;
  onInput(value: number): void;
}

function Slider({ name, unitText, bounds, value, onInput }: SliderProps) {
  return (
    <label>
      <span>
        {name} <b>{value}</b> {unitText}
      </span>
      <input
        type="range"
        min={bounds.least}
        max={bounds.most}
        value={value}
        onInput={(event) => onInput(event.currentTarget.valueAsNumber)}
      />
    </label>
  );
}

function PointCount({ model }: { model: FrameModel }) {
  const clouds = model.clouds.value.value;
  if (clouds === undefined) return null;
  const { cloud, removed } = clouds;
  if (removed === undefined) return <p class="note">{cloud.count.toLocaleString("en")} points</p>;
  const count = removed.reduce((sum, one) => sum + one, 0);
  return (
    <p class="note">
      The filter removed {count.toLocaleString("en")} of {cloud.count.toLocaleString("en")} points.
    </p>
  );
}

function Picked({ model, decimals }: { model: FrameModel; decimals: number }) {
  const points = pickedPoints(model);
  const [first, second] = points;
  const number = (mm: number): string => fixed(inUnit(mm), decimals);
  return (
    <section class="panel" aria-label="Measured distance">
      <h2>Distance</h2>
      {points.length < 2 && (
        <p class="note">Click {points.length === 0 ? "two points" : "a second point"} to measure.</p>
      )}
      {points.length > 0 && (
        <table class="picked">
          <thead>
            <HeadRow columns={[unit.value, "x", "y", "z"]} />
          </thead>
          <tbody>
            {points.map((point, at) => (
              <tr key={at} data-pick={at}>
                <th scope="row">P{at + 1}</th>
                {point.map((value, axis) => (
                  <td key={axis}>{number(value)}</td>
                ))}
              </tr>
            ))}
            {first && second && (
              <tr>
                <th scope="row">Δ</th>
                {([0, 1, 2] as const).map((axis) => (
                  <td key={axis}>{signed(inUnit(second[axis] - first[axis]), decimals)}</td>
                ))}
              </tr>
            )}
          </tbody>
        </table>
      )}
      {first && second && (
        <p class="distance">
          <output>
            {number(distance(first, second))} {unit.value}
          </output>
        </p>
      )}
    </section>
  );
}
