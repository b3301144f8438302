/**
 * Height maps of real sensors from a folder, replayed as captures. The folder holds an `index.json`, an array with one entry for each
 * capture, and the NPY files that it names. Their values are sent unchanged.
 */
import type { HeightDtype, Planes } from "../../core/capture/capture.js";
import { isPlainObject, type JsonObject } from "../../core/json/json.js";
import { type NpyArray, readNpy } from "./part/npy-reader.js";
import type { Capture } from "./steps/capture.js";

/** The folder is not such a collection, or a file is not what its entry says. */
export class CollectionError extends Error {
  readonly code = "not_a_capture_collection";
  readonly params: JsonObject;

  constructor(message: string, params: JsonObject) {
    super(message);
    this.name = "CollectionError";
    this.params = params;
  }
}

export interface RecordedCapture {
  name: string;
  note: string;
  sensor: string;
  /** What the index says about the heights. Checks compare the heights with it. */
  zMedianMm: number | undefined;
  validFraction: number | undefined;
  load(): Promise<Capture>;
}

export type ReadFile = (path: string) => Promise<Uint8Array>;

const HEIGHT_DTYPE: Record<string, HeightDtype> = { "<u2": "u16", "<i2": "i16", "<i4": "i32", "<f4": "f32" };

/** Reads the index and every file once. So a broken collection is known before the first run. */
export async function openCollection(directory: string, readFile: ReadFile): Promise<RecordedCapture[]> {
  const path = `${directory}/index.json`;
  const expected = "a folder with index.json (an array of captures) and the .npy files that it names";
  let index: unknown;
  try {
    index = JSON.parse(Buffer.from(await readFile(path)).toString("utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CollectionError(`${directory} is not a collection of captures: expected ${expected}; ${reason}`, {
      path,
      allowed: expected,
    });
  }
  if (!Array.isArray(index) || index.length === 0) {
    throw new CollectionError(`${path} must be an array with at least one capture`, { path, allowed: expected });
  }
  const captures = index.map((entry, at) => describe(entry, `${path}[${at}]`, directory, readFile));
  for (const capture of captures) await capture.load();
  return captures;
}

/** @param place names the entry in errors @throws CollectionError */
function describe(entry: unknown, place: string, directory: string, readFile: ReadFile): RecordedCapture {
  if (!isPlainObject(entry)) throw new CollectionError(`${place} must be an object`, { path: place });
  const optional = <T>(name: string, is: (value: unknown) => value is T): T | undefined => {
    const value = entry[name];
    return is(value) ? value : undefined;
  };
  const field = <T>(name: string, is: (value: unknown) => value is T, allowed: string): T => {
    const value = optional(name, is);
    if (value !== undefined) return value;
    const came = JSON.stringify(entry[name]) ?? "nothing";
    const path = `${place}.${name}`;
    throw new CollectionError(`${path} is ${came}: it must be ${allowed}`, { path, value: came, allowed });
  };
  const name = field("name", isText, "a name");
  const rows = field("rows", isCount, "a count of lines");
  const columns = field("cols", isCount, "a count of points");
  const heightFile = field("height_file", isText, "the name of an .npy file");
  const luminanceFile = optional("luminance_file", isText);
  const xPitchMm = field("x_pitch_mm", isPositive, "millimetres above 0");
  const yPitchMm = field("y_pitch_mm", isPositive, "millimetres above 0");
  const scale = field("z_scale_mm_per_count", isNumber, "millimetres a count");
  const offset = field("z_offset_mm", isNumber, "millimetres");
  const invalid = field("invalid", isNumbers, "an array of raw codes");

  const load = async (): Promise<Capture> => {
    const height = await readArray(directory, heightFile, { rows, columns }, readFile);
    const dtype = heightDtype(height, heightFile);
    const planes: Planes = { height: { dtype, scale_mm: scale, offset_mm: offset, invalid } };
    let luminance: NpyArray | undefined;
    if (luminanceFile !== undefined) {
      luminance = await readArray(directory, luminanceFile, { rows, columns }, readFile);
      planes.luminance = luminancePlane(luminance, luminanceFile);
    }
    return {
      width: columns,
      lines: rows,
      planes,
      xPitchMm,
      yPitchMm,
      xOriginMm: optional("x_origin_mm", isNumber) ?? 0,
      yOriginMm: 0,
      height: height.data,
      luminance: luminance?.data,
      metadata: { capture: name },
    };
  };
  return {
    name,
    note: optional("note", isText) ?? "",
    sensor: optional("sensor", isText) ?? "unknown sensor",
    zMedianMm: optional("z_median_mm", isNumber),
    validFraction: optional("valid_fraction", isNumber),
    load,
  };
}

/** Reads an array whose shape is given by the index. @throws CollectionError */
async function readArray(
  directory: string,
  file: string,
  { rows, columns }: { rows: number; columns: number },
  readFile: ReadFile,
): Promise<NpyArray> {
  // The index names files relative to the folder above. Only the last part of a name counts: the files are beside the
  // index.
  const path = `${directory}/${file.split("/").at(-1)}`;
  let array: NpyArray;
  try {
    array = readNpy(await readFile(path));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CollectionError(`${path} cannot be replayed: ${reason}`, { path });
  }
  if (array.rows !== rows || array.columns !== columns) {
    const [shape, allowed] = [`(${array.rows}, ${array.columns})`, `(${rows}, ${columns})`];
    const message = `${path} has the shape ${shape}: the index says ${allowed}`;
    throw new CollectionError(message, { path, value: shape, allowed });
  }
  return array;
}

/** @throws CollectionError */
function heightDtype({ descr }: NpyArray, path: string): HeightDtype {
  const dtype = HEIGHT_DTYPE[descr];
  if (dtype !== undefined) return dtype;
  const allowed = Object.keys(HEIGHT_DTYPE);
  const message = `${path} holds values of type ${descr}: it must be one of ${allowed.join(", ")}`;
  throw new CollectionError(message, { path, value: descr, allowed });
}

/** The fewest bits that hold the values of a 16-bit luminance. The index does not give them. */
function luminancePlane(array: NpyArray, path: string): NonNullable<Planes["luminance"]> {
  if (array.descr === "|u1") return { dtype: "u8", bits: 8 };
  if (array.descr !== "<u2") {
    const message = `${path} holds values of type ${array.descr}: it must be one of |u1, <u2`;
    throw new CollectionError(message, { path, value: array.descr, allowed: ["|u1", "<u2"] });
  }
  let greatest = 0;
  for (let i = 1; i < array.data.length; i += 2) {
    greatest = Math.max(greatest, (array.data[i - 1] as number) | ((array.data[i] as number) << 8));
  }
  return { dtype: "u16", bits: [10, 12].find((bits) => greatest < 2 ** bits) ?? 16 };
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const isPositive = (value: unknown): value is number => isNumber(value) && value > 0;
const isCount = (value: unknown): value is number => isPositive(value) && Number.isInteger(value);
const isNumbers = (value: unknown): value is number[] => Array.isArray(value) && value.every(isNumber);
