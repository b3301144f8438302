/** Points of a PLY, in mm, in scan order. */
export interface Cloud {
  readonly count: number;
  /** x, y, z of each point. */
  readonly positions: Float32Array;
  /** 0 to 255; undefined if the frame has no luminance. */
  readonly intensity: Uint8Array | undefined;
}

const END_OF_HEADER = "end_header\n";
/** The header names the frame, the units and the filter: a few hundred bytes. */
const MAX_HEADER_BYTES = 4096;

/** Reads the binary little-endian PLY that the service makes. @throws {Error} that says what is wrong */
export function readCloud(bytes: Uint8Array): Cloud {
  const text = new TextDecoder("latin1").decode(bytes.subarray(0, MAX_HEADER_BYTES));
  const end = text.indexOf(END_OF_HEADER);
  if (!text.startsWith("ply\n") || end < 0) throw new Error("the file is not a PLY");
  const lines = text.slice(0, end).split("\n");
  if (lines[1] !== "format binary_little_endian 1.0") throw new Error(`the PLY has the ${lines[1]}`);
  const count = Number(lines.find((line) => line.startsWith("element vertex "))?.split(" ")[2]);
  const properties = lines.filter((line) => line.startsWith("property ")).join(", ");
  const hasIntensity = properties.endsWith(", property uchar intensity");
  const expected = `property float x, property float y, property float z${hasIntensity ? ", property uchar intensity" : ""}`;
  if (properties !== expected)
    throw new Error(`the PLY has other properties than x, y, z and intensity: ${properties}`);
  const vertexBytes = hasIntensity ? 13 : 12;
  const offset = end + END_OF_HEADER.length;
  if (bytes.length - offset !== count * vertexBytes) {
    throw new Error(`the PLY has ${bytes.length - offset} bytes of vertices, not ${count * vertexBytes}`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset);
  const positions = new Float32Array(count * 3);
  const intensity = hasIntensity ? new Uint8Array(count) : undefined;
  for (let point = 0, at = 0; point < count; point++, at += vertexBytes) {
    positions[3 * point] = view.getFloat32(at, true);
    positions[3 * point + 1] = view.getFloat32(at + 4, true);
    positions[3 * point + 2] = view.getFloat32(at + 8, true);
    if (intensity !== undefined) intensity[point] = view.getUint8(at + 12);
  }
  return { count, positions, intensity };
}

/** 1 for each point of the raw cloud that the filtered one lacks. Both are in scan order, so the filtered one is a part of the raw one. */
export function removedPoints(raw: Cloud, filtered: Cloud): Uint8Array {
  const [all, kept] = [raw.positions, filtered.positions];
  const removed = new Uint8Array(raw.count);
  let next = 0;
  for (let at = 0; at < all.length; at += 3) {
    const isKept = all[at] === kept[next] && all[at + 1] === kept[next + 1] && all[at + 2] === kept[next + 2];
    if (isKept) next += 3;
    else removed[at / 3] = 1;
  }
  if (next !== kept.length) throw new Error("the filtered cloud is not a part of the raw one");
  return removed;
}

/** The points to draw, at most about `most`: every k-th, and all that are marked. Ascending. */
export function drawnPoints(count: number, most: number, marked?: Uint8Array): Uint32Array {
  const step = Math.max(1, Math.ceil(count / most));
  if (step === 1) return Uint32Array.from({ length: count }, (_, point) => point);
  const drawn: number[] = [];
  for (let point = 0; point < count; point++) if (point % step === 0 || marked?.[point] === 1) drawn.push(point);
  return Uint32Array.from(drawn);
}
