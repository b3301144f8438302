import { BOX_EDGES, distance, type Point2, type Point3 } from "../../../../core/run/oriented-box.js";
import { fixed, inUnit, unit } from "../../data/units.js";
import type { FrameModel } from "../frame-model.js";
import { MARKS } from "../measure/colour-map.js";
import type { CloudScene, SceneBox } from "./cloud-scene.js";

const AXES = ["x", "y", "z"] as const;
const AXIS_PIXELS = 34;
const FONT = "600 12px system-ui, sans-serif";

/** x, y and z in mm of the picked points, as in the PLY. */
export function pickedPoints(model: FrameModel): Point3[] {
  const { positions, count } = model.clouds.value.value?.cloud ?? { positions: new Float32Array(0), count: 0 };
  return model.state.value.cloud.picks
    .filter((place) => place < count)
    .map((place) => [...positions.subarray(3 * place, 3 * place + 3)] as unknown as Point3);
}

/** Axes in the corner, boxes, picked points, and the distance between two of them. Boxes and points lie in the surface: it must not hide them. */
export function drawCloudOverlay(canvas: HTMLCanvasElement, scene: CloudScene, model: FrameModel): void {
  const { clientWidth: width, clientHeight: height } = canvas;
  const density = devicePixelRatio || 1;
  if (canvas.width !== width * density || canvas.height !== height * density) {
    canvas.width = width * density;
    canvas.height = height * density;
  }
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  context.lineCap = "round";
  drawAxes(context, scene, [AXIS_PIXELS + 22, height - AXIS_PIXELS - 22]);
  for (const box of scene.boxes) drawBox(context, scene, box);
  for (const label of scene.labels()) drawLabel(context, label);
  const points = pickedPoints(model);
  const places = points.map((point) => scene.screenPlace(point));
  const [first, second] = places;
  if (first && second) stroke(context, [[first, second]], MARKS.line);
  for (const [at, place] of places.entries()) {
    if (place === undefined) continue;
    const [x, y] = place;
    context.beginPath();
    context.arc(x, y, 5, 0, 2 * Math.PI);
    context.fillStyle = MARKS.chosen;
    context.strokeStyle = MARKS.edge;
    context.lineWidth = 2;
    context.stroke();
    context.fill();
    write(context, `P${at + 1}`, [x + 9, y - 9], MARKS.chosen);
  }
  if (first && second) {
    const [from, to] = points as [Point3, Point3];
    const text = `${fixed(inUnit(distance(from, to)), model.decimals.value)} ${unit.value}`;
    write(context, text, [(first[0] + second[0]) / 2 + 8, (first[1] + second[1]) / 2], MARKS.line);
  }
}

type Label = ReturnType<CloudScene["labels"]>[number];

/** Half of the side of the square on which a number is drawn. */
const LABEL_PIXELS = 9;

/** The number that lies under a place of the screen. */
export function labelAt(labels: readonly Label[], [x, y]: Point2): number | undefined {
  const isHit = ({ at }: Label): boolean => Math.max(Math.abs(at[0] - x), Math.abs(at[1] - y)) <= LABEL_PIXELS;
  return labels.findLast(isHit)?.index;
}

function drawBox(context: CanvasRenderingContext2D, scene: CloudScene, { corners, colour, isChosen }: SceneBox): void {
  const places = corners.map((corner) => scene.screenPlace(corner));
  const edges = BOX_EDGES.flatMap(([from, to]): Line[] => {
    const [start, end] = [places[from], places[to]];
    return start && end ? [[start, end]] : [];
  });
  stroke(context, edges, colour, isChosen);
}

function drawLabel(context: CanvasRenderingContext2D, { index, at: [x, y], colour }: Label): void {
  context.fillStyle = colour;
  context.strokeStyle = MARKS.edge;
  context.lineWidth = 2;
  const corner = [x - LABEL_PIXELS, y - LABEL_PIXELS, 2 * LABEL_PIXELS, 2 * LABEL_PIXELS] as const;
  context.fillRect(...corner);
  context.strokeRect(...corner);
  context.fillStyle = "#000";
  context.textAlign = "center";
  context.fillText(String(index + 1), x, y + 1);
  context.textAlign = "start";
}

function drawAxes(context: CanvasRenderingContext2D, scene: CloudScene, [x, y]: Point2): void {
  for (const [at, [dx, dy]] of scene.axes().entries()) {
    const [name, colour] = [AXES[at] as string, MARKS.axes[at] as string];
    const end: Point2 = [x + dx * AXIS_PIXELS, y + dy * AXIS_PIXELS];
    stroke(context, [[[x, y], end]], colour);
    write(context, name, [x + dx * (AXIS_PIXELS + 12) - 3, y + dy * (AXIS_PIXELS + 12)], colour);
  }
}

type Line = readonly [from: Point2, to: Point2];

/** A chosen box has a wide edge, because surfaces may have its colour. */
function stroke(context: CanvasRenderingContext2D, lines: readonly Line[], colour: string, isChosen = false): void {
  context.beginPath();
  for (const [from, to] of lines) {
    context.moveTo(...from);
    context.lineTo(...to);
  }
  for (const [style, width] of [
    [MARKS.edge, isChosen ? 8 : 4],
    [colour, isChosen ? 2.5 : 1.75],
  ] as const) {
    context.strokeStyle = style;
    context.lineWidth = width;
    context.stroke();
  }
}

function write(context: CanvasRenderingContext2D, text: string, at: Point2, colour: string): void {
  context.strokeStyle = MARKS.edge;
  context.lineWidth = 3;
  context.strokeText(text, ...at);
  context.fillStyle = colour;
  context.fillText(text, ...at);
}
