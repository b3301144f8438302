import type { HeightDtype } from "../answers.js";

/** Shape and type of a two-dimensional NPY array (numpy/lib/format.py, formats 1.0 and 2.0), little-endian, in C order. */
export interface NpyHeader {
  readonly dtype: HeightDtype;
  readonly lines: number;
  readonly width: number;
  /** Where the first value lies. */
  readonly dataOffsetBytes: number;
}

export type Values = Uint16Array | Int16Array | Int32Array | Float32Array;

/** Our headers take 128 bytes; a header of numpy's with a long dtype still fits. */
export const HEADER_BYTES = 512;

const DTYPES: Record<string, HeightDtype> = { "<u2": "u16", "<i2": "i16", "<i4": "i32", "<f4": "f32" };
const ITEM_BYTES: Record<HeightDtype, number> = { u16: 2, i16: 2, i32: 4, f32: 4 };
const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/** The bytes are not such an array, or not all of it. */
export class NpyError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NpyError";
  }
}

export function lineBytes({ dtype, width }: NpyHeader): number {
  return ITEM_BYTES[dtype] * width;
}

/** @param bytes the beginning of the file, or all of it. @throws NpyError */
export function readNpyHeader(bytes: Uint8Array): NpyHeader {
  if (bytes.length < 12 || MAGIC.some((byte, at) => bytes[at] !== byte)) {
    throw new NpyError("the file does not begin as an NPY array does");
  }
  const major = bytes[6];
  if (major !== 1 && major !== 2) throw new NpyError(`the file has NPY format ${major}: 1 and 2 are read`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const preambleBytes = major === 1 ? 10 : 12;
  const dataOffsetBytes = preambleBytes + (major === 1 ? view.getUint16(8, true) : view.getUint32(8, true));
  if (dataOffsetBytes > bytes.length) throw new NpyError(`the NPY header ends at byte ${dataOffsetBytes}: it was cut`);
  const text = new TextDecoder("latin1").decode(bytes.subarray(preambleBytes, dataOffsetBytes));
  const descr = /'descr': '([^']*)'/.exec(text)?.[1];
  const shape = /'shape': \((\d+), (\d+)\)/.exec(text);
  if (descr === undefined || shape === null) {
    throw new NpyError(`the NPY header is not that of lines and columns: ${text.trim().slice(0, 120)}`);
  }
  if (!text.includes("'fortran_order': False"))
    throw new NpyError("the NPY array is in Fortran order: C order is read");
  const dtype = DTYPES[descr];
  if (dtype === undefined) {
    throw new NpyError(`the NPY array has the type ${descr}: read are ${Object.keys(DTYPES).join(", ")}`);
  }
  return { dtype, lines: Number(shape[1]), width: Number(shape[2]), dataOffsetBytes };
}

/** Values of the array, from its bytes as they lie in the file. The machine is little-endian, as every browser's is. @throws NpyError */
export function readValues(dtype: HeightDtype, bytes: Uint8Array): Values {
  const itemBytes = ITEM_BYTES[dtype];
  if (bytes.length % itemBytes !== 0) throw new NpyError(`${bytes.length} bytes are no whole values of ${dtype}`);
  const { buffer, byteOffset: offset } = bytes.byteOffset % itemBytes === 0 ? bytes : new Uint8Array(bytes);
  const count = bytes.length / itemBytes;
  switch (dtype) {
    case "u16":
      return new Uint16Array(buffer, offset, count);
    case "i16":
      return new Int16Array(buffer, offset, count);
    case "i32":
      return new Int32Array(buffer, offset, count);
    case "f32":
      return new Float32Array(buffer, offset, count);
  }
}

/** Reads an array that must be complete. @throws NpyError */
export function readNpy(bytes: Uint8Array): NpyHeader & { values: Values } {
  const header = readNpyHeader(bytes);
  const data = bytes.subarray(header.dataOffsetBytes);
  const expectedBytes = header.lines * lineBytes(header);
  if (data.length !== expectedBytes) {
    throw new NpyError(`the NPY array has ${data.length} bytes of values: its header says ${expectedBytes}`);
  }
  return { ...header, values: readValues(header.dtype, data) };
}
