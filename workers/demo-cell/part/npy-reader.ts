/** Reads two-dimensional NPY arrays (numpy/lib/format.py, formats 1.0 and 2.0), little-endian and in C order. */
export interface NpyArray {
  /** As numpy writes it: `<u2`, `<f4`, `|u1`. */
  descr: string;
  rows: number;
  columns: number;
  /** The bytes of the values, row-major and unchanged. */
  data: Uint8Array;
}

const HEADER = /^\{'descr': '([^']+)', 'fortran_order': (True|False), 'shape': \((\d+), (\d+)\), \}\s*$/;

/** @throws {Error} It says what is wrong with the bytes. */
export function readNpy(bytes: Uint8Array): NpyArray {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12 || Buffer.from(bytes.subarray(0, 6)).toString("latin1") !== "\x93NUMPY") {
    throw new Error("it does not begin with the magic of an NPY file");
  }
  const major = bytes[6];
  if (major !== 1 && major !== 2) throw new Error(`its NPY format is ${major}: 1 and 2 are read`);
  const preambleBytes = major === 1 ? 10 : 12;
  const dataOffset = preambleBytes + (major === 1 ? view.getUint16(8, true) : view.getUint32(8, true));
  const header = Buffer.from(bytes.subarray(preambleBytes, dataOffset)).toString("latin1");
  const match = HEADER.exec(header);
  if (match === null) throw new Error(`its NPY header is not that of a two-dimensional array: ${header.slice(0, 120)}`);
  const [, descr = "", fortranOrder, rows, columns] = match;
  if (fortranOrder === "True") throw new Error("its array is in Fortran order: C order is read");
  const itemBytes = Number(descr.slice(2));
  const sizeBytes = Number(rows) * Number(columns) * itemBytes;
  const data = bytes.subarray(dataOffset);
  if (data.length !== sizeBytes) throw new Error(`its data is ${data.length} bytes: the header says ${sizeBytes}`);
  return { descr, rows: Number(rows), columns: Number(columns), data };
}
