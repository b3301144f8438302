import type { CutLine } from "./measure/cut-line.js";
import type { HeightRange } from "./measure/height-range.js";

/** What the page of a frame shows. All of it is in the address. */
export interface FrameState {
  readonly view: FrameView;
  /** The frame to compare with. */
  readonly other: string | undefined;
  /** Bounds of the colours in mm; undefined: by percentiles. */
  readonly range: HeightRange | undefined;
  /** Column and line in the middle of the map, and pixels per mm; undefined: all of the frame. */
  readonly place: readonly [u: number, v: number, pixelsPerMm: number] | undefined;
  readonly cut: CutLine | undefined;
  /** Samples of the profile at which the two cursors are. */
  readonly cursors: readonly [number, number] | undefined;
  /** Place of the chosen defect in the run's list. */
  readonly defect: number | undefined;
  readonly cloud: CloudState;
}

export const FRAME_VIEWS = ["height", "luminance", "cloud", "side", "difference"] as const;
export type FrameView = (typeof FRAME_VIEWS)[number];
export const CLOUD_SOURCES = ["filtered", "raw"] as const;
export type CloudSource = (typeof CLOUD_SOURCES)[number];
export const CLOUD_COLOURS = ["height", "luminance", "removed"] as const;
export type CloudColour = (typeof CLOUD_COLOURS)[number];

export interface CloudState {
  readonly source: CloudSource;
  readonly colour: CloudColour;
  readonly pointPixels: number;
  /** The factor by which z is stretched. */
  readonly stretch: number;
  /** Position and target of the camera, x, y, z each, from the middle of the cloud, in mm; undefined: as it opens. */
  readonly camera: readonly number[] | undefined;
  /** Places in the PLY of the one or two points that are picked. */
  readonly picks: readonly number[];
}

export const POINT_PIXELS = { least: 1, most: 8, usual: 2 } as const;
export const STRETCH = { least: 1, most: 50, usual: 1 } as const;

/** Reads the query of the address. A setting that is absent or makes no sense gets its default. */
export function readFrameState(query: URLSearchParams): FrameState {
  const range = numbersOf(query, "range", 2);
  const [low, high] = (range ?? []) as [number, number];
  const cut = numbersOf(query, "cut", 4) as [number, number, number, number] | undefined;
  const cursors = numbersOf(query, "cursors", 2);
  const place = numbersOf(query, "at", 3);
  const defect = numbersOf(query, "defect", 1)?.[0];
  return {
    view: oneOf(FRAME_VIEWS, query.get("view")),
    other: query.get("with") ?? undefined,
    range: range && low <= high ? { low, high } : undefined,
    place: place && (place[2] as number) > 0 ? (place as [number, number, number]) : undefined,
    cut: cut && { from: { column: cut[0], line: cut[1] }, to: { column: cut[2], line: cut[3] } },
    cursors: cursors?.every(isPlace) ? (cursors as [number, number]) : undefined,
    defect: defect !== undefined && isPlace(defect) ? defect : undefined,
    cloud: readCloudState(query),
  };
}

function readCloudState(query: URLSearchParams): CloudState {
  const picks = numbersOf(query, "picks", 2) ?? numbersOf(query, "picks", 1) ?? [];
  const within = (name: string, { least, most, usual }: { least: number; most: number; usual: number }): number => {
    const value = numbersOf(query, name, 1)?.[0] ?? usual;
    return Math.min(most, Math.max(least, value));
  };
  return {
    source: oneOf(CLOUD_SOURCES, query.get("points")),
    colour: oneOf(CLOUD_COLOURS, query.get("colour")),
    pointPixels: within("size", POINT_PIXELS),
    stretch: within("stretch", STRETCH),
    camera: numbersOf(query, "camera", 6),
    picks: picks.every(isPlace) ? picks : [],
  };
}

/** The query of the address, without settings that have their default. */
export function frameQuery(state: FrameState): URLSearchParams {
  const { view, other, range, place, cut, cursors, defect, cloud } = state;
  const usual = readFrameState(new URLSearchParams());
  const query = new URLSearchParams();
  const put = (name: string, value: string | undefined, usualValue?: string): void => {
    if (value !== undefined && value !== usualValue) query.set(name, value);
  };
  put("view", view, usual.view);
  put("with", other);
  put("range", range && shortNumbers([range.low, range.high]));
  put("at", place && shortNumbers(place));
  put("cut", cut && shortNumbers([cut.from.column, cut.from.line, cut.to.column, cut.to.line]));
  put("cursors", cursors?.join(","));
  put("defect", defect === undefined ? undefined : String(defect));
  put("points", cloud.source, usual.cloud.source);
  put("colour", cloud.colour, usual.cloud.colour);
  put("size", String(cloud.pointPixels), String(usual.cloud.pointPixels));
  put("stretch", String(cloud.stretch), String(usual.cloud.stretch));
  put("camera", cloud.camera && shortNumbers(cloud.camera));
  put("picks", cloud.picks.length === 0 ? undefined : cloud.picks.join(","));
  return query;
}

/** An address shall be readable: seven digits are finer than any pixel. Numbers of samples and points must be whole: they are not shortened. */
function shortNumbers(values: readonly number[]): string {
  return values.map((value) => String(Number(value.toPrecision(7)))).join(",");
}

function numbersOf(query: URLSearchParams, name: string, count: number): number[] | undefined {
  const parts = query.get(name)?.split(",") ?? [];
  const values = parts.map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  return values.length === count && values.every(Number.isFinite) ? values : undefined;
}

function oneOf<T extends string>(allowed: readonly [T, ...T[]], value: string | null): T {
  return allowed.find((one) => one === value) ?? allowed[0];
}

const isPlace = (value: number): boolean => Number.isInteger(value) && value >= 0;
