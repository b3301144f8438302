import type { Point2 } from "../../../../core/run/oriented-box.js";
import type { FrameModel } from "../frame-model.js";
import { columnAt, lineAt, xMm, yMm } from "../heights/frame-grid.js";
import { type CutLine, cursorsOn, type GridPoint } from "../measure/cut-line.js";
import { defectAt, type FrameDefect } from "../measure/frame-defects.js";
import { goToDefect } from "./go-to-defect.js";
import type { MapGestures } from "./map-gestures.js";
import { gridOfLayer, type MapLayer } from "./map-layer.js";
import { clamped, fit, panned, type Size, toMap, type Viewport, zoomed } from "./viewport.js";

export interface MapProps {
  model: FrameModel;
  layer: MapLayer;
  /** For people who do not see the map. */
  label: string;
  defects: readonly FrameDefect[];
  /** Whether a drag draws a cut line. */
  isCutting: boolean;
  onCutDone(): void;
  /** A map of another frame beside it: it follows in millimetres, and draws nothing of this frame's. */
  isOther?: boolean;
}

/** What gestures and keys do. */
export class MapControl implements MapGestures {
  readonly #props: () => MapProps;
  readonly #size: { readonly value: Size };
  /** Where a cut line by keys begins. */
  #cutFrom: GridPoint | undefined;

  constructor(props: () => MapProps, size: { readonly value: Size }) {
    this.#props = props;
    this.#size = size;
  }

  /** All that is to be painted now. */
  picture() {
    const { model, layer, defects, isOther } = this.#props();
    const { cut, defect, cursors } = model.state.value;
    const profile = isOther === true || cut === undefined ? undefined : model.profile.value.value;
    const pointed = model.pointed.value;
    return {
      layer,
      viewport: this.viewport(),
      defects,
      chosen: defect,
      cut: isOther === true ? undefined : cut,
      cursors: (profile === undefined ? [] : cursorsOn(profile, cursors)).map((sample) => ({
        column: profile?.columns[sample] as number,
        line: profile?.lines[sample] as number,
      })),
      probe: pointed && this.#onLayer(pointed),
    };
  }

  /** On the layer's own grid. The address has it on the grid of this frame. */
  viewport(): Viewport {
    const { model, layer } = this.#props();
    const { place } = model.state.value;
    const grid = gridOfLayer(layer);
    if (place === undefined) return fit(grid, this.#size.value);
    const [u, v, pixelsPerMm] = place;
    const { column, line } = this.#onLayer({ column: u - 0.5, line: v - 0.5 });
    // A link may have any numbers. Of two maps, each is kept on its own frame.
    return clamped({ centre: [column + 0.5, line + 0.5], pixelsPerMm }, grid, this.#size.value);
  }

  set(viewport: Viewport): void {
    const [u, v] = viewport.centre;
    const { column, line } = this.#onFrame({ column: u - 0.5, line: v - 0.5 });
    this.#props().model.change({ place: [column + 0.5, line + 0.5, viewport.pixelsPerMm] });
  }

  onHover(at: Point2 | undefined): void {
    const { model } = this.#props();
    model.pointed.value = at && this.#pointAt(at);
  }

  onPan(byX: number, byY: number): void {
    this.set(panned(this.viewport(), this.#grid, this.#size.value, byX, byY));
  }

  onZoom(factor: number, at: Point2): void {
    this.set(zoomed(this.viewport(), this.#grid, this.#size.value, factor, at));
  }

  onClick(at: Point2): void {
    const { model, defects } = this.#props();
    const hit = defectAt(defects, this.#grid, this.#mapAt(at));
    if (hit === undefined) model.change({ defect: undefined });
    else goToDefect(model, hit, true);
  }

  drawsFrom(): boolean {
    return this.#props().isCutting;
  }

  onDraw(from: Point2, to: Point2, isDone: boolean): void {
    this.#setCut({ from: this.#placeAt(from), to: this.#placeAt(to) }, isDone);
    if (isDone) this.#props().onCutDone();
  }

  /** Moves the point that is read out. */
  move(columns: number, lines: number): void {
    const { model } = this.#props();
    const grid = this.#grid;
    const pointed = model.pointed.value && this.#onLayer(model.pointed.value);
    const [u, v] = this.viewport().centre;
    const from = pointed ?? { column: Math.floor(u), line: Math.floor(v) };
    const column = Math.min(grid.width - 1, Math.max(0, from.column + columns));
    const line = Math.min(grid.lines - 1, Math.max(0, from.line + lines));
    model.pointed.value = this.#onFrame({ column, line });
    this.#keepInView({ column, line });
  }

  /** Points that are a screen's pixel apart, at least one: how far an arrow key goes. */
  get step(): number {
    const { pixelsPerMm } = this.viewport();
    return Math.max(1, Math.round(4 / (pixelsPerMm * this.#grid.xPitchMm)));
  }

  zoomAtPoint(factor: number): void {
    const { width, height } = this.#size.value;
    this.onZoom(factor, [width / 2, height / 2]);
  }

  showAll(): void {
    this.#props().model.change({ place: undefined });
  }

  /** The first time it begins a cut line at the point that is read out, the second time it ends there. */
  cutHere(): void {
    const { pointed } = this.#props().model;
    const at = pointed.value;
    if (at === undefined) return;
    if (this.#cutFrom === undefined) this.#cutFrom = at;
    else {
      this.#setCut({ from: this.#cutFrom, to: at }, true);
      this.#cutFrom = undefined;
    }
  }

  cancelCut(): void {
    this.#cutFrom = undefined;
    this.#props().onCutDone();
  }

  #setCut(cut: CutLine, isDone: boolean): void {
    this.#props().model.change({ cut, cursors: undefined }, isDone);
  }

  get #grid() {
    return gridOfLayer(this.#props().layer);
  }

  #mapAt(at: Point2): Point2 {
    return toMap(this.viewport(), this.#grid, this.#size.value, at);
  }

  /** The measured point under a place of the screen; undefined outside of the frame. */
  #pointAt(at: Point2): GridPoint | undefined {
    const [column, line] = this.#mapAt(at).map(Math.floor) as [number, number];
    const { width, lines } = this.#grid;
    const isWithin = column >= 0 && line >= 0 && column < width && line < lines;
    return isWithin ? this.#onFrame({ column, line }) : undefined;
  }

  /** The place on the grid, with its fraction, kept on the frame. */
  #placeAt(at: Point2): GridPoint {
    const { width, lines } = this.#grid;
    const [u, v] = this.#mapAt(at);
    return this.#onFrame({
      column: Math.min(width - 1, Math.max(0, u - 0.5)),
      line: Math.min(lines - 1, Math.max(0, v - 0.5)),
    });
  }

  #keepInView({ column, line }: GridPoint): void {
    const { width, height } = this.#size.value;
    const [left, top] = this.#mapAt([0, 0]);
    const [right, bottom] = this.#mapAt([width, height]);
    if (column + 0.5 >= left && column + 0.5 <= right && line + 0.5 >= top && line + 0.5 <= bottom) return;
    this.set({ ...this.viewport(), centre: [column + 0.5, line + 0.5] });
  }

  /** A point of this frame, on the grid of the layer: the same x and y. */
  #onLayer(point: GridPoint): GridPoint {
    return this.#moved(point, false);
  }

  #onFrame(point: GridPoint): GridPoint {
    return this.#moved(point, true);
  }

  #moved(point: GridPoint, isBack: boolean): GridPoint {
    const { model, isOther } = this.#props();
    const frameGrid = model.here.value.value?.field.grid;
    if (isOther !== true || frameGrid === undefined) return point;
    const [from, to] = isBack ? [this.#grid, frameGrid] : [frameGrid, this.#grid];
    return {
      column: columnAt(to, xMm(from, point.column)),
      line: lineAt(to, yMm(from, point.line)),
    };
  }
}
