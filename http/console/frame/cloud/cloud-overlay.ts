import { fixed, inUnit, unit } from "../../data/units.js";
import type { FrameModel } from "../frame-model.js";
import { distance, type Point2, type Point3 } from "../measure/oriented-box.js";
import type { CloudScene } from "./cloud-scene.js";

const AXES = [
  ["x", "#ff8787"],
  ["y", "#8ce99a"],
  ["z", "#74c0fc"],
] as const;
const AXIS_PIXELS = 34;
const FONT = "600 12px system-ui, sans-serif";
const EDGE = "rgb(0 0 0 / 80%)";

/** x, y and z in mm of the picked points, as in the PLY. */
export function pickedPoints(model: FrameModel): Point3[] {
  const { positions, count } = model.clouds.value.value?.cloud ?? { positions: new Float32Array(0), count: 0 };
  return model.state.value.cloud.picks
    .filter((place) => place < count)
    .map((place) => [...positions.subarray(3 * place, 3 * place + 3)] as unknown as Point3);
}

/** Axes in the corner, picked points, and the distance between two of them. */
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
  drawAxes(context, scene, [AXIS_PIXELS + 22, height - AXIS_PIXELS - 22]);
  for (const label of scene.labels()) drawLabel(context, label);
  const points = pickedPoints(model);
  const places = points.flatMap((point) => scene.screenPlace(point) ?? []) as unknown as number[];
  const onScreen: Point2[] = points.flatMap((_, at) => {
    const [x, y] = [places[2 * at], places[2 * at + 1]];
    return x === undefined || y === undefined ? [] : [[x, y] as const];
  });
  const [first, second] = onScreen;
  if (first && second) {
    stroke(context, first, second, "#ffffff");
    const [from, to] = points as [Point3, Point3];
    const text = `${fixed(inUnit(distance(from, to)), model.decimals.value)} ${unit.value}`;
    write(context, text, [(first[0] + second[0]) / 2 + 8, (first[1] + second[1]) / 2], "#ffffff");
  }
  for (const [at, [x, y]] of onScreen.entries()) {
    context.beginPath();
    context.arc(x, y, 5, 0, 2 * Math.PI);
    context.fillStyle = "#ffd60a";
    context.strokeStyle = EDGE;
    context.lineWidth = 2;
    context.stroke();
    context.fill();
    write(context, `P${at + 1}`, [x + 9, y - 9], "#ffd60a");
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

function drawLabel(context: CanvasRenderingContext2D, { index, at: [x, y], colour }: Label): void {
  context.fillStyle = colour;
  context.strokeStyle = EDGE;
  context.lineWidth = 1;
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
    const [name, colour] = AXES[at] as (typeof AXES)[number];
    const end: Point2 = [x + dx * AXIS_PIXELS, y + dy * AXIS_PIXELS];
    stroke(context, [x, y], end, colour);
    write(context, name, [x + dx * (AXIS_PIXELS + 12) - 3, y + dy * (AXIS_PIXELS + 12)], colour);
  }
}

function stroke(context: CanvasRenderingContext2D, from: Point2, to: Point2, colour: string): void {
  for (const [style, width] of [
    [EDGE, 4],
    [colour, 1.75],
  ] as const) {
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.strokeStyle = style;
    context.lineWidth = width;
    context.stroke();
  }
}

function write(context: CanvasRenderingContext2D, text: string, at: Point2, colour: string): void {
  context.strokeStyle = EDGE;
  context.lineWidth = 3;
  context.strokeText(text, ...at);
  context.fillStyle = colour;
  context.fillText(text, ...at);
}
