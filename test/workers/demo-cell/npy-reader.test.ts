import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { readNpy } from "../../../workers/demo-cell/part/npy-reader.js";

const SUITE = "../shared/data/formats/npy";
const skip = existsSync(SUITE) ? false : `${SUITE} is absent`;

/** Numbers of the suite's arrays; a complex one is two of them, as the suite says of the last. */
const READERS: Record<string, (view: DataView, at: number) => number> = {
  "|i1": (view, at) => view.getInt8(at),
  "<i2": (view, at) => view.getInt16(at, true),
  "<i8": (view, at) => Number(view.getBigInt64(at, true)),
  "<f2": halfAt,
  "<f4": (view, at) => view.getFloat32(at, true),
  "<f8": (view, at) => view.getFloat64(at, true),
  "<c8": (view, at) => view.getFloat32(at, true),
  "<c16": (view, at) => view.getFloat64(at, true),
};

/** IEEE 754 binary16; normal numbers and 0, as the suite has them. */
function halfAt(view: DataView, at: number): number {
  const bits = view.getUint16(at, true);
  const exponent = (bits >> 10) & 31;
  const size = exponent === 0 ? 0 : 2 ** (exponent - 15) * (1 + (bits & 1023) / 1024);
  return bits >> 15 === 1 ? -size : size;
}

t.test(
  "the conformance files: two-dimensional arrays are read to the last value, all else is refused",
  { skip },
  async (t) => {
    const expected = JSON.parse(readFileSync(join(SUITE, "expected_last5.json"), "utf8")) as Record<string, number[]>;
    const counts = { read: 0, refused: 0 };
    for (const name of readdirSync(SUITE).filter((file) => file.endsWith(".npy"))) {
      const bytes = readFileSync(join(SUITE, name));
      if (name === "st_wrongnpyfile.npy") {
        t.throws(() => readNpy(bytes), { message: "it does not begin with the magic of an NPY file" }, name);
        counts.refused++;
        continue;
      }
      if (!name.includes("65x65") && name !== "st_example-2d.npy") {
        t.throws(() => readNpy(bytes), { message: /^its NPY header is not that of a two-dimensional array: \{/ }, name);
        counts.refused++;
        continue;
      }
      counts.read++;
      const { descr, rows, columns, data } = readNpy(bytes);
      const read = READERS[descr];
      if (read === undefined) throw new Error(`${name} has items ${descr}`);
      const itemBytes = Number(descr.slice(2));
      const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
      const numberBytes = descr.startsWith("<c") ? itemBytes / 2 : itemBytes;
      t.equal(data.length, rows * columns * itemBytes, name);
      const values = Array.from({ length: data.length / numberBytes }, (_, nth) => read(view, nth * numberBytes));
      if (name.includes("65x65")) t.same([rows, columns], [65, 65], name);
      // The suite does not give the values of the others.
      if (expected[name] !== undefined) t.same(values.slice(-5), expected[name], name);
      t.ok(values.every(Number.isFinite), name);
    }
    t.same(counts, { read: 9, refused: 20 });
  },
);
