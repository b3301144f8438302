import { effect, type ReadonlySignal, type Signal, untracked, useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { boxCorners, type OrientedBox } from "../../../../core/run/oriented-box.js";
import type { FrameModel } from "../frame-model.js";
import { goToDefect } from "../map/go-to-defect.js";
import { MARKS } from "../measure/colour-map.js";
import { boxOverPixels, type FrameDefect } from "../measure/frame-defects.js";
import { cloudColours } from "./cloud-colours.js";
import { cloudKey } from "./cloud-keys.js";
import { drawCloudOverlay, labelAt } from "./cloud-overlay.js";
import type { CloudScene } from "./cloud-scene.js";
import { drawnPoints } from "./ply-cloud.js";

/** More points make the turning slow on the graphics of an office computer. */
const MAX_DRAWN = 2_000_000;
const CLICK_PIXELS = 4;
/** Pause before the 3D code is loaded again after a failure. */
const RETRY_MS = 2_000;
const NOT_LOADED =
  "The 3D part could not be loaded: the service does not answer, or was updated. The page tries again. After an update, load the page again.";

interface CloudProps {
  model: FrameModel;
  /** Holds the scene while there is one. */
  scene: Signal<CloudScene | undefined>;
  defects: readonly FrameDefect[];
}

/** The point cloud, to turn and to pick points from. */
export function CloudView({ model, scene, defects }: CloudProps) {
  const box = useRef<HTMLDivElement>(null);
  const problem = useSignal<string | undefined>(undefined);
  const drawn = useComputed(() => {
    const { value } = model.clouds.value;
    return value && { ...value, places: drawnPoints(value.cloud.count, MAX_DRAWN, value.removed) };
  });
  useEffect(() => startScene(box.current as HTMLDivElement, model, scene, problem), [model, scene, problem]);
  useScene(model, scene, drawn, defects);
  const pick = (x: number, y: number): void => {
    const place = drawn.value?.places[scene.value?.pick([x, y]) ?? -1];
    if (place !== undefined) pickPlace(model, place);
  };
  const click = (x: number, y: number): void => {
    const index = scene.value && labelAt(scene.value.labels(), [x, y]);
    const defect = defects.find((one) => one.index === index);
    if (defect === undefined) pick(x, y);
    else goToDefect(model, defect, true);
  };
  const down = useRef<[number, number]>([0, 0]);
  return (
    <div
      ref={box}
      class="map cloud"
      role="application"
      aria-label="Point cloud"
      aria-describedby="cloud-keys"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: its keys are written beside it.
      tabIndex={0}
      data-points={scene.value && drawn.value?.places.length}
      onKeyDown={(event) => {
        const { clientWidth, clientHeight } = event.currentTarget;
        // In lower case, because Caps Lock changes the letters.
        const isPick = event.key.toLowerCase() === "p" && !event.ctrlKey && !event.metaKey && !event.altKey;
        if (isPick) pick(clientWidth / 2, clientHeight / 2);
        else if (scene.value === undefined || !cloudKey(event, scene.value)) return;
        saveCamera(model, scene.value);
        event.preventDefault();
      }}
      onPointerDown={(event) => {
        down.current = [event.offsetX, event.offsetY];
      }}
      onPointerUp={(event) => {
        const [x, y] = down.current;
        if (event.button !== 0 || Math.hypot(event.offsetX - x, event.offsetY - y) > CLICK_PIXELS) return;
        click(event.offsetX, event.offsetY);
      }}
    >
      <canvas />
      <canvas class="cloud-overlay" />
      <CloudState model={model} problem={problem.value} />
    </div>
  );
}

/** Keeps the scene as the settings say. */
function useScene(
  model: FrameModel,
  scene: Signal<CloudScene | undefined>,
  drawn: ReadonlySignal<Drawn | undefined>,
  defects: readonly FrameDefect[],
): void {
  // Each has a computed value of its own: a turn of the camera changes the settings too, but none of these.
  const colour = useComputed(() => model.state.value.cloud.colour);
  const camera = useComputed(() => model.state.value.cloud.camera);
  const chosen = useComputed(() => model.state.value.defect);
  useEffect(
    () =>
      effect(() => {
        if (scene.value && drawn.value) scene.value.setPoints(positionsOf(drawn.value));
      }),
    [scene, drawn],
  );
  useEffect(
    () =>
      effect(() => {
        if (!scene.value || !drawn.value) return;
        const { cloud, removed, places } = drawn.value;
        scene.value.setColours(
          cloudColours(cloud, places, { colour: colour.value, range: model.range.value, removed }),
        );
      }),
    [model, scene, drawn, colour],
  );
  useEffect(
    () =>
      effect(() => {
        const { pointPixels, stretch } = model.state.value.cloud;
        // It draws again, and so it shows picked points too.
        scene.value?.setLooks(pointPixels, stretch);
      }),
    [model, scene],
  );
  useEffect(
    () =>
      effect(() => {
        if (!scene.value || !drawn.value) return;
        if (camera.value === undefined) scene.value.look("home");
        else scene.value.camera = camera.value;
      }),
    [scene, drawn, camera],
  );
  const gone = useRef(camera.peek() === undefined ? undefined : model.goings.peek());
  useEffect(
    () =>
      effect(() => {
        if (!scene.value || !drawn.value) return;
        const target = showBoxes(scene.value, model, defects, chosen.value);
        const going = model.goings.value;
        if (target !== undefined && gone.current !== going) {
          scene.value.goTo(target.centre, Math.hypot(...target.extents));
          untracked(() => saveCamera(model, scene.value));
        }
        gone.current = going;
      }),
    [model, scene, drawn, defects, chosen],
  );
}

function CloudState({ model, problem }: { model: FrameModel; problem: string | undefined }) {
  const { value, problem: unread } = model.clouds.value;
  const text = problem ?? unread;
  if (text !== undefined) {
    return (
      <p class="map-message" role="alert">
        {text}
      </p>
    );
  }
  if (value === undefined) return <p class="map-message">Reading the points …</p>;
  if (value.cloud.count > 0) return null;
  return (
    <p class="map-message" role="alert">
      The cloud has no points.
    </p>
  );
}

type Drawn = NonNullable<FrameModel["clouds"]["value"]["value"]> & { places: Uint32Array };

/** Loads three, and starts the scene. @returns ends it */
function startScene(
  element: HTMLDivElement,
  model: FrameModel,
  scene: { value: CloudScene | undefined },
  problem: { value: string | undefined },
): () => void {
  const [canvas, overlay] = element.querySelectorAll("canvas");
  let isOver = false;
  const observer = new ResizeObserver(() => {
    scene.value?.resize(element.clientWidth, element.clientHeight);
  });
  let timer = 0;
  const start = async (): Promise<void> => {
    const three = await import("./cloud-scene.js").catch(() => undefined);
    if (isOver) return;
    if (three === undefined) {
      problem.value = NOT_LOADED;
      timer = window.setTimeout(() => void start(), RETRY_MS);
      return;
    }
    problem.value = undefined;
    try {
      const built: CloudScene = new three.CloudScene(
        canvas as HTMLCanvasElement,
        () => drawCloudOverlay(overlay as HTMLCanvasElement, built, model),
        () => saveCamera(model, built),
      );
      // The camera's first place depends on the shape of the view.
      built.resize(element.clientWidth, element.clientHeight);
      scene.value = built;
      observer.observe(element);
    } catch (error) {
      problem.value = `This browser cannot draw in 3D: ${(error as Error).message}`;
    }
  };
  void start();
  return () => {
    isOver = true;
    clearTimeout(timer);
    observer.disconnect();
    scene.value?.end();
    scene.value = undefined;
  };
}

function saveCamera(model: FrameModel, scene: CloudScene | undefined): void {
  if (scene === undefined) return;
  const { cloud } = model.state.value;
  model.change({ cloud: { ...cloud, camera: scene.camera } });
}

function positionsOf({ cloud, places }: Drawn): Float32Array {
  const positions = new Float32Array(3 * places.length);
  for (let at = 0; at < places.length; at++) {
    const from = 3 * (places[at] as number);
    for (let axis = 0; axis < 3; axis++) positions[3 * at + axis] = cloud.positions[from + axis] as number;
  }
  return positions;
}

function boxOf({ box2d, box3d }: FrameDefect, model: FrameModel): OrientedBox | undefined {
  const field = model.here.value.value?.field;
  if (box3d !== undefined || box2d === undefined || field === undefined) return box3d;
  return boxOverPixels(box2d, field.grid, field.overview);
}

/** @returns the box of the chosen defect */
function showBoxes(
  scene: CloudScene,
  model: FrameModel,
  defects: readonly FrameDefect[],
  chosen: number | undefined,
): OrientedBox | undefined {
  const boxes = defects.flatMap((defect) => {
    const box = boxOf(defect, model);
    if (box === undefined) return [];
    const corners = boxCorners(box);
    const isChosen = defect.index === chosen;
    const colour = isChosen ? MARKS.chosen : MARKS.line;
    return [{ index: defect.index, centre: box.centre, corners, colour, box, isChosen }];
  });
  scene.setBoxes(boxes);
  return boxes.find(({ isChosen }) => isChosen)?.box;
}

/** A third point begins a new measurement. */
function pickPlace(model: FrameModel, place: number): void {
  const { cloud } = model.state.value;
  const picks = cloud.picks.length === 1 ? [...cloud.picks, place] : [place];
  model.change({ cloud: { ...cloud, picks } });
}
