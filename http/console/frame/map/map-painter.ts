import { fixed, inUnit, unit } from "../../data/units.js";
import type { FrameModel } from "../frame-model.js";
import type { HeightField } from "../heights/height-field.js";
import { drawHeights } from "./draw-heights.js";
import { drawOverlay, type Overlay } from "./draw-overlay.js";
import { gridOfLayer, type HeightLayer, type LuminanceLayer, type MapLayer } from "./map-layer.js";
import { pixelsPerPoint, type Size, toScreen, type Viewport } from "./viewport.js";
import { wantedLines } from "./wanted-lines.js";

type Picture = { layer: MapLayer; viewport: Viewport } & Omit<Overlay, "scale">;

/** Pixels of the canvas for one of the page. A denser screen gains nothing that pays for the time. */
const MAX_DENSITY = 2;
/** Lines are asked for when the map has rested so long. */
const REST_MS = 60;
/** Lines that could not be read are asked for again after so long. */
const RETRY_MS = 5_000;
const SCALE_PIXELS = 140;

/** Paints a map on the two canvases of an element: the picture, and what lies over it. It also asks for the lines that are looked at. */
export class MapPainter {
  readonly #canvases: [HTMLCanvasElement, HTMLCanvasElement];
  #next: { picture: Picture; size: Size; model: FrameModel } | undefined;
  #frameRequest = 0;
  #restTimer = 0;
  #loading = new AbortController();
  #asked: { field: HeightField; lines: string } | undefined;

  constructor(element: HTMLElement) {
    const [picture, overlay] = element.querySelectorAll("canvas");
    this.#canvases = [picture as HTMLCanvasElement, overlay as HTMLCanvasElement];
  }

  /** Paints at the screen's next refresh; only the last picture until then counts. */
  paint(picture: Picture, size: Size, model: FrameModel): void {
    this.#next = { picture, size, model };
    this.#frameRequest ||= requestAnimationFrame(() => {
      this.#frameRequest = 0;
      this.#paintNow();
    });
  }

  end(): void {
    cancelAnimationFrame(this.#frameRequest);
    clearTimeout(this.#restTimer);
    this.#loading.abort();
  }

  #paintNow(): void {
    if (this.#next === undefined) return;
    const { picture, size, model } = this.#next;
    const density = Math.min(MAX_DENSITY, window.devicePixelRatio || 1);
    const [base, over] = this.#canvases.map((canvas) => sized(canvas, size, density)) as [
      CanvasRenderingContext2D,
      CanvasRenderingContext2D,
    ];
    const fine = { width: base.canvas.width, height: base.canvas.height };
    const viewport = { ...picture.viewport, pixelsPerMm: picture.viewport.pixelsPerMm * density };
    if (picture.layer.kind === "heights") {
      const image = base.createImageData(fine.width, fine.height);
      drawHeights(new Uint32Array(image.data.buffer), fine, viewport, picture.layer);
      base.putImageData(image, 0, 0);
      this.#askForLines(fine, viewport, picture.layer, model);
    } else {
      drawLuminance(base, fine, viewport, picture.layer);
    }
    over.setTransform(density, 0, 0, density, 0, 0);
    const overlay = { ...picture, scale: scaleBar(picture.viewport.pixelsPerMm) };
    drawOverlay(over, gridOfLayer(picture.layer), picture.viewport, size, overlay);
    const count = Number(base.canvas.dataset.painted ?? 0);
    // For the browser's own timeline.
    if (count === 0) performance.mark("frame-painted");
    base.canvas.dataset.painted = String(count + 1);
  }

  #askForLines(size: Size, viewport: Viewport, layer: HeightLayer, model: FrameModel): void {
    const wanted = wantedLines(size, viewport, layer.field);
    const lines = wanted === undefined ? "" : `${wanted.first}-${wanted.end}`;
    if (this.#asked?.lines === lines && this.#asked.field === layer.field) return;
    this.#asked = { field: layer.field, lines };
    this.#loading.abort();
    clearTimeout(this.#restTimer);
    if (wanted === undefined) return;
    this.#loading = new AbortController();
    const { signal } = this.#loading;
    this.#load(REST_MS, () => model.loadLines(layer.field, wanted.first, wanted.end, signal));
  }

  #load(pauseMs: number, load: () => Promise<boolean>): void {
    this.#restTimer = window.setTimeout(async () => {
      if (!(await load())) this.#load(RETRY_MS, load);
    }, pauseMs);
  }
}

function sized(canvas: HTMLCanvasElement, { width, height }: Size, density: number): CanvasRenderingContext2D {
  const [fineWidth, fineHeight] = [Math.round(width * density), Math.round(height * density)];
  if (canvas.width !== fineWidth || canvas.height !== fineHeight) {
    canvas.width = fineWidth;
    canvas.height = fineHeight;
  }
  return canvas.getContext("2d") as CanvasRenderingContext2D;
}

function drawLuminance(
  context: CanvasRenderingContext2D,
  size: Size,
  viewport: Viewport,
  { grid, luminance }: LuminanceLayer,
): void {
  const [left, top] = toScreen(viewport, grid, size, [0, 0]);
  const [perColumn, perLine] = pixelsPerPoint(viewport, grid);
  context.clearRect(0, 0, size.width, size.height);
  // Enlarged points stay points. Where several fall on a pixel, their mean is shown.
  context.imageSmoothingEnabled = perColumn < 1 || perLine < 1;
  context.imageSmoothingQuality = "high";
  context.drawImage(luminance.bitmap, left, top, perColumn * grid.width, perLine * grid.lines);
}

/** A round length in the unit of the page that fits into the bar. */
function scaleBar(pixelsPerMm: number): Overlay["scale"] {
  const longest = inUnit(SCALE_PIXELS / pixelsPerMm);
  const power = 10 ** Math.floor(Math.log10(longest));
  const length = ([5, 2, 1].find((factor) => factor * power <= longest) ?? 1) * power;
  const decimals = Math.max(0, -Math.floor(Math.log10(length)));
  return { pixels: (length / inUnit(1)) * pixelsPerMm, text: `${fixed(length, decimals)} ${unit.value}` };
}
