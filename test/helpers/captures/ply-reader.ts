export interface PlyCloud {
  comments: string[];
  /** Names of a vertex's properties. */
  properties: string[];
  /** One row a vertex. */
  vertices: number[][];
}

const SIZES: Record<string, number> = { float: 4, uchar: 1 };

/** Reads the vertices of a binary PLY, whose only element they are, and checks its size. @throws {Error} */
export function readPly(bytes: Uint8Array): PlyCloud {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = file.indexOf("end_header\n");
  if (!file.subarray(0, 4).equals(Buffer.from("ply\n")) || end < 0) throw new Error("not a PLY");
  const lines = file.toString("latin1", 0, end).trimEnd().split(/\r?\n/);
  const format = lines[1];
  const comments = lines.filter((line) => line.startsWith("comment ")).map((line) => line.slice(8));
  const first = lines.findIndex((line) => line.startsWith("element vertex "));
  const count = Number(lines[first]?.split(" ")[2]);
  const properties: [type: string, name: string][] = [];
  for (const line of lines.slice(first + 1)) {
    const [word, type = "", name = ""] = line.split(" ");
    if (word !== "property") break;
    properties.push([type, name]);
  }
  const body = file.subarray(end + 11);
  const names = properties.map(([, name]) => name);
  if (format !== "format binary_little_endian 1.0") throw new Error(`${format}`);
  const size = properties.reduce((sum, [type]) => sum + (SIZES[type] as number), 0);
  if (body.length !== size * count) {
    throw new Error(`${body.length} bytes for ${count} vertices of ${size}`);
  }
  const vertices: number[][] = [];
  for (let vertex = 0, at = 0; vertex < count; vertex++) {
    const row: number[] = [];
    for (const [type] of properties) {
      row.push(type === "uchar" ? body.readUInt8(at) : body.readFloatLE(at));
      at += SIZES[type] as number;
    }
    vertices.push(row);
  }
  return { comments, properties: names, vertices };
}
