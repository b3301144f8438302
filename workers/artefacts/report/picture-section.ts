import type { FrameState } from "../../../core/capture/capture.js";
import { type DefectPlaces, defectPlaces, frameTest } from "../../../core/run/defect-places.js";
import { boxFootprint, type Point2 } from "../../../core/run/oriented-box.js";
import type { Defect } from "../../../core/run/quality.js";
import { manifestOf } from "../../../core/run/run-files.js";
import type { RunState } from "../../../core/run/run-state.js";
import { previewBlock } from "../picture/preview-picture.js";
import { escaped, fixed, plain, shown } from "./page-text.js";

/** A picture of a frame, or why there is none. */
export type PagePicture = { png: Uint8Array } | { why: string };

/** A frame as the page shows it. */
export interface PageFrame {
  frame: FrameState;
  heights: PagePicture;
  /** Undefined for a frame without luminance. */
  luminance: PagePicture | undefined;
}

interface PlacedDefect extends DefectPlaces {
  /** As in the list of defects, from 1. */
  number: number;
}

/** So many boxes are drawn in one picture: more hide it. */
const MOST_BOXES = 200;

/** The defects that lie in each frame of the run; frames without one are left out. */
export function defectsByFrame(run: RunState): Map<string, PlacedDefect[]> {
  const byName = new Map(manifestOf(run).map(({ name, frameId }) => [name, frameId]));
  const byFrame = new Map<string, PlacedDefect[]>();
  const only = run.frames.length === 1 ? run.frames[0]?.id : undefined;
  for (const [at, defect] of run.defects.entries()) {
    for (const frameId of framesOf(defect, byName, only)) {
      const places = defectPlaces(
        defect,
        frameTest(frameId, run.frames.length, (name) => byName.get(name)),
      );
      if (places.box2d === undefined && places.box3d === undefined) continue;
      const list = byFrame.get(frameId) ?? [];
      list.push({ number: at + 1, ...places });
      byFrame.set(frameId, list);
    }
  }
  return byFrame;
}

/** The one or two frames that the regions of a defect may lie in. */
function framesOf(
  { region_2d: flat, region_3d: solid }: Defect,
  byName: ReadonlyMap<string, string | null>,
  only: string | undefined,
): Set<string> {
  const frames = new Set<string>();
  for (const file of [flat && (flat.file ?? null), solid && (solid.file ?? null)]) {
    if (file === undefined) continue;
    const named = file === null ? only : (byName.get(file) ?? /^frame-([0-9a-f-]{36})\./.exec(file)?.[1]);
    if (named) frames.add(named);
  }
  if (only !== undefined && (flat || solid)) frames.add(only);
  return frames;
}

export function* defectSection({ defects, status }: RunState): Generator<string, void> {
  yield "<h2>Defects</h2>\n";
  if (defects.length === 0) {
    yield `<p>${status === "completed" ? "No defects were found." : "No defects were reported."}</p>\n`;
    return;
  }
  yield `<table class="defects"><colgroup><col style="width:12mm"><col><col style="width:26mm"><col style="width:60mm">\
</colgroup><thead><tr><th scope="col" class="number">No.</th><th scope="col">Defect</th><th scope="col">Severity</th>\
<th scope="col">Place</th></tr></thead><tbody>\n`;
  for (const [at, { type, description, severity, confidence, ...regions }] of defects.entries()) {
    const sure = typeof confidence === "number" ? ` <span class="note">${plain(confidence * 100)} % sure</span>` : "";
    const note = description ? `<br><span class="note">${shown(description)}</span>` : "";
    yield `<tr><td class="number">${at + 1}</td><th scope="row">${shown(type || "Defect")}${sure}${note}</th>\
<td>${severity ? shown(severity) : ""}</td><td>${placeText(regions)}</td></tr>\n`;
  }
  yield "</tbody></table>\n";
}

function placeText({ region_2d: flat, region_3d: solid }: Pick<Defect, "region_2d" | "region_3d">): string {
  const at = solid?.location;
  if (at?.length === 3) return `${at.map((mm, axis) => `${"xyz"[axis]} ${fixed(mm, 2)}`).join(", ")} mm`;
  const box = flat?.bbox;
  if (box?.length !== 4) return "";
  return `column ${plain(box[0] as number)}–${plain(box[2] as number)}, line ${plain(box[1] as number)}–${plain(box[3] as number)}`;
}

/** @param left how many frames are not shown */
export function* pictureSection(
  run: RunState,
  pictures: readonly PageFrame[],
  placed: ReadonlyMap<string, readonly PlacedDefect[]>,
  left: number,
): Generator<string, void> {
  yield "<h2>Surfaces</h2>\n";
  if (pictures.length === 0) yield "<p>This run captured no frame.</p>\n";
  for (const { frame, heights, luminance } of pictures) {
    const defects = placed.get(frame.id) ?? [];
    const step = run.steps[frame.stepIndex - 1]?.definition.name;
    yield `<section class="frame"><p><strong>${step ? shown(step) : "Frame"}</strong> <span class="note">frame \
${escaped(frame.id)}</span></p>\n<div class="pictures">`;
    const edges = coverage(frame);
    yield figure("Height map", heights, frame, edges, defects);
    if (luminance !== undefined) yield figure("Luminance", luminance, frame, edges, defects);
    yield "</div></section>\n";
  }
  if (left > 0) yield `<p>${left} more ${left === 1 ? "frame is" : "frames are"} not shown here.</p>\n`;
}

/** Units of a picture's drawing: it is this wide. */
const DRAWN_WIDTH = 1000;
/** Pictures that are narrower or wider than this are stretched. */
const RATIOS = [0.25, 8] as const;

interface Coverage {
  /** Width over height on the sheet. */
  ratio: number;
  /** A place in pixels of the frame, in units of the drawing. */
  place(point: Point2): string;
}

/** The preview's last column and line may cover less than a block. The drawing lies over whole blocks. */
function coverage(frame: FrameState): Coverage {
  const block = previewBlock(frame);
  const width = block * Math.ceil(frame.width / block);
  const lines = block * Math.ceil(frame.lines / block);
  const physical = Math.abs((width * frame.xPitchMm) / (lines * frame.yPitchMm));
  const ratio = Math.min(RATIOS[1], Math.max(RATIOS[0], Number.isFinite(physical) ? physical : 1));
  const height = DRAWN_WIDTH / ratio;
  const number = (value: number) => String(Number(Math.min(1e6, Math.max(-1e6, value)).toFixed(1)));
  return {
    ratio,
    place: ([column, line]) => `${number((column / width) * DRAWN_WIDTH)} ${number((line / lines) * height)}`,
  };
}

function figure(
  name: string,
  picture: PagePicture,
  frame: FrameState,
  { ratio, place }: Coverage,
  defects: readonly PlacedDefect[],
): string {
  if ("why" in picture) return `<figure><figcaption>${name}: ${escaped(picture.why)}</figcaption></figure>`;
  const drawn = defects.slice(0, MOST_BOXES);
  const boxes = drawn.map((defect) => drawDefect(defect, frame, place)).join("");
  const more = defects.length - drawn.length;
  const count = defects.length === 0 ? "" : `, ${defects.length === 1 ? "1 defect" : `${defects.length} defects`}`;
  const data = Buffer.from(picture.png.buffer, picture.png.byteOffset, picture.png.byteLength).toString("base64");
  const size = `aspect-ratio:${ratio.toFixed(4)};width:min(100%,${(100 * ratio).toFixed(1)}mm)`;
  return (
    `<figure><div class="over" style="${size}"><img alt="${name} of the frame${count}" src="data:image/png;base64,${data}">` +
    `<svg viewBox="0 0 ${DRAWN_WIDTH} ${(DRAWN_WIDTH / ratio).toFixed(1)}" preserveAspectRatio="none" aria-hidden="true">${boxes}</svg></div>` +
    `<figcaption>${name}${rangeText(picture.png)}${more > 0 ? `; ${more} more defects are not drawn` : ""}</figcaption></figure>`
  );
}

function drawDefect({ number, box2d, box3d }: PlacedDefect, frame: FrameState, place: Coverage["place"]): string {
  let drawing = "";
  let corner: Point2 | undefined;
  const add = (points: readonly Point2[], kind: string): void => {
    const path = `M${points.map(place).join("L")}Z`;
    drawing += `<path class="edge" d="${path}"/><path class="box ${kind}" data-defect="${number}" d="${path}"/>`;
    corner = points.reduce((best, point) => (point[1] < best[1] ? point : best));
  };
  if (box3d !== undefined) {
    const { xOriginMm, yOriginMm, xPitchMm, yPitchMm } = frame;
    const onGrid = boxFootprint(box3d).map(
      ([x, y]): Point2 => [(x - xOriginMm) / xPitchMm + 0.5, (y - yOriginMm) / yPitchMm + 0.5],
    );
    if (onGrid.length > 0) add(onGrid, "solid");
  }
  if (box2d !== undefined) {
    const { left, top, right, bottom } = box2d;
    add(
      [
        [left, top],
        [right, top],
        [right, bottom],
        [left, bottom],
      ],
      "flat",
    );
  }
  if (corner === undefined) return drawing;
  const [x, y] = place(corner).split(" ").map(Number) as [number, number];
  // A box at the edge keeps its number in sight.
  const at = `x="${Math.max(4, Math.min(DRAWN_WIDTH - 40, x))}" y="${Math.max(34, y - 8)}"`;
  return `${drawing}<text ${at}>${number}</text>`;
}

/** The heights of the first and the last colour, which the preview's text chunks say. */
function rangeText(png: Uint8Array): string {
  const texts = pngTexts(Buffer.from(png.buffer, png.byteOffset, png.byteLength));
  const [low, high] = [texts.get("z_min_mm"), texts.get("z_max_mm")];
  if (low === undefined || high === undefined) return "";
  return `, colours from ${fixed(Number(low), 3)} to ${fixed(Number(high), 3)} mm`;
}

const SIGNATURE_BYTES = 8;
/** Length, type and CRC of a chunk. */
const CHUNK_BYTES = 12;

/** The tEXt chunks before the samples. */
function pngTexts(png: Buffer): Map<string, string> {
  const texts = new Map<string, string>();
  for (let at = SIGNATURE_BYTES; at + CHUNK_BYTES <= png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    if (type === "IDAT") break;
    const [keyword = "", text = ""] = png.toString("latin1", at + 8, at + 8 + length).split("\0");
    if (type === "tEXt") texts.set(keyword, text);
    at += CHUNK_BYTES + length;
  }
  return texts;
}
