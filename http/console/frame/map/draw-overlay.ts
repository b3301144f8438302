import type { Point2 } from "../../../../core/run/oriented-box.js";
import type { FrameGrid } from "../heights/frame-grid.js";
import { MARKS } from "../measure/colour-map.js";
import type { CutLine, GridPoint } from "../measure/cut-line.js";
import { type FrameDefect, footprintInPixels } from "../measure/frame-defects.js";
import { type Size, toScreen, type Viewport } from "./viewport.js";

/** What lies over a map. */
export interface Overlay {
  readonly defects: readonly FrameDefect[];
  readonly chosen: number | undefined;
  readonly cut: CutLine | undefined;
  /** Where the cursors are on the cut line. */
  readonly cursors: readonly GridPoint[];
  /** The point whose values are shown, when it is not under the mouse. */
  readonly probe: GridPoint | undefined;
  readonly scale: { readonly pixels: number; readonly text: string } | undefined;
}

/** Width of the dark edge on each side of a line. */
const EDGE_PIXELS = 1.25;
const LABEL_FONT = "600 12px system-ui, sans-serif";

export function drawOverlay(
  context: CanvasRenderingContext2D,
  grid: FrameGrid,
  viewport: Viewport,
  size: Size,
  overlay: Overlay,
): void {
  const screen = (point: Point2): Point2 => toScreen(viewport, grid, size, point);
  const onGrid = ({ column, line }: GridPoint): Point2 => screen([column + 0.5, line + 0.5]);
  context.clearRect(0, 0, size.width, size.height);
  context.lineJoin = "round";
  for (const defect of overlay.defects) drawDefect(context, defect, defect.index === overlay.chosen, grid, screen);
  if (overlay.cut !== undefined) {
    const ends = [onGrid(overlay.cut.from), onGrid(overlay.cut.to)] as const;
    stroked(context, ends, MARKS.line, 1.5);
    for (const end of ends) dot(context, end, MARKS.line, 3.5);
  }
  for (const [at, cursor] of overlay.cursors.entries())
    dot(context, onGrid(cursor), MARKS.cursors[at] ?? MARKS.line, 5);
  if (overlay.probe !== undefined) crosshair(context, onGrid(overlay.probe));
  if (overlay.scale !== undefined) drawScale(context, overlay.scale, size);
}

function drawDefect(
  context: CanvasRenderingContext2D,
  { box2d, box3d, index }: FrameDefect,
  isChosen: boolean,
  grid: FrameGrid,
  screen: (point: Point2) => Point2,
): void {
  const colour = isChosen ? MARKS.chosen : MARKS.line;
  // The chosen one has a wider edge, because surfaces may have its colour.
  const [width, edge] = isChosen ? [2.5, 3] : [1.5, EDGE_PIXELS];
  let corner: Point2 | undefined;
  if (box3d !== undefined) {
    const footprint = footprintInPixels(box3d, grid).map(screen);
    stroked(context, [...footprint, footprint[0] as Point2], colour, width, edge, [4, 3]);
    corner = footprint.reduce((best, point) => (point[1] < best[1] ? point : best));
  }
  if (box2d !== undefined) {
    const { left, top, right, bottom } = box2d;
    const corners: Point2[] = [
      [left, top],
      [right, top],
      [right, bottom],
      [left, bottom],
      [left, top],
    ];
    stroked(context, corners.map(screen), colour, width, edge);
    corner = screen([left, top]);
  }
  if (corner !== undefined) label(context, String(index + 1), corner, colour);
}

function stroked(
  context: CanvasRenderingContext2D,
  points: readonly Point2[],
  colour: string,
  width: number,
  edge = EDGE_PIXELS,
  dash: number[] = [],
): void {
  context.beginPath();
  for (const [at, [x, y]] of points.entries()) at === 0 ? context.moveTo(x, y) : context.lineTo(x, y);
  context.setLineDash([]);
  context.strokeStyle = MARKS.edge;
  context.lineWidth = width + 2 * edge;
  context.stroke();
  context.setLineDash(dash);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.stroke();
  context.setLineDash([]);
}

function dot(context: CanvasRenderingContext2D, [x, y]: Point2, colour: string, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = colour;
  context.strokeStyle = MARKS.edge;
  context.lineWidth = 2;
  context.stroke();
  context.fill();
}

function crosshair(context: CanvasRenderingContext2D, [x, y]: Point2): void {
  for (const [dx, dy] of [
    [1, 0],
    [0, 1],
    [-1, 0],
    [0, -1],
  ] as const) {
    const from: Point2 = [x + 4 * dx, y + 4 * dy];
    stroked(context, [from, [x + 14 * dx, y + 14 * dy]], MARKS.line, 1.5);
  }
}

function label(context: CanvasRenderingContext2D, text: string, [x, top]: Point2, colour: string): void {
  // A box at the edge keeps its number in sight.
  const y = Math.max(17, top);
  context.font = LABEL_FONT;
  const width = context.measureText(text).width + 8;
  context.fillStyle = colour;
  context.strokeStyle = MARKS.edge;
  context.lineWidth = 2;
  context.strokeRect(x - 1, y - 17, width, 16);
  context.fillRect(x - 1, y - 17, width, 16);
  context.fillStyle = "#000";
  context.textBaseline = "middle";
  context.fillText(text, x + 3, y - 8.5);
}

function drawScale(
  context: CanvasRenderingContext2D,
  { pixels, text }: { pixels: number; text: string },
  { height }: Size,
): void {
  const y = height - 14;
  stroked(
    context,
    [
      [14, y - 4],
      [14, y],
      [14 + pixels, y],
      [14 + pixels, y - 4],
    ],
    MARKS.line,
    1.5,
  );
  context.font = LABEL_FONT;
  context.textBaseline = "alphabetic";
  context.lineWidth = 3;
  context.strokeStyle = MARKS.edge;
  context.strokeText(text, 20, y - 6);
  context.fillStyle = MARKS.line;
  context.fillText(text, 20, y - 6);
}
