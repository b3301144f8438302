import { readFileSync } from "node:fs";
import t from "tap";
import { npyHeader } from "../../../../core/capture/npy-header.js";
import { heightInMm } from "../../../../http/console/frame/heights/height-in-mm.js";
import { readNpy, readNpyHeader } from "../../../../http/console/frame/heights/npy.js";
import { pythonWith, runPython, skipWithout } from "../../../helpers/captures/python-checker.js";
import { hasSharedData } from "../../../helpers/shared-data.js";

const HEIGHTMAPS = "../shared/data/heightmaps";
const numpy = pythonWith("numpy");

t.test("a file of the service is read: its header, and the values of every type", async (t) => {
  const cases = [
    ["u16", Uint16Array.of(0, 1, 2, 40_000, 65_535, 7)],
    ["i16", Int16Array.of(-32_768, -1, 0, 1, 32_767, 7)],
    ["i32", Int32Array.of(-(2 ** 31), -1, 0, 1, 2 ** 31 - 1, 7)],
    ["f32", Float32Array.of(-1.5, 0, 2.25, 1e30, 7, Number.NaN)],
  ] as const;
  for (const [dtype, values] of cases) {
    const header = npyHeader(dtype, 2, 3);
    // One byte before it: values that do not lie on a boundary of their size are read too.
    const file = Buffer.concat([Buffer.from([0]), header, Buffer.from(values.buffer)]).subarray(1);
    const read = readNpy(file);
    t.match(read, { dtype, lines: 2, width: 3, dataOffsetBytes: 128 });
    t.same([...read.values], [...values], dtype);
  }
});

t.test("what is no such array is refused, and the reason is said", async (t) => {
  const good = Buffer.concat([npyHeader("u16", 2, 3), Buffer.alloc(12)]);
  const changed = (from: string, to: string) => Buffer.from(good.toString("latin1").replace(from, to), "latin1");
  t.throws(() => readNpy(good.subarray(0, good.length - 2)), /has 10 bytes of values: its header says 12/);
  t.throws(() => readNpyHeader(good.subarray(0, 60)), /header ends at byte 128: it was cut/);
  t.throws(() => readNpyHeader(changed("NUMPY", "NUMPX")), /does not begin as an NPY array does/);
  t.throws(() => readNpyHeader(changed("<u2", "<c8")), /has the type <c8/);
  t.throws(() => readNpyHeader(changed("(2, 3)", "(6,)  ")), /is not that of lines and columns/);
  t.throws(() => readNpyHeader(changed("False", "True ")), /Fortran order/);
});

t.test("raw heights become millimetres; codes and what is not finite are no measurement", async (t) => {
  const u16 = heightInMm({ dtype: "u16", scale_mm: 0.01, offset_mm: -5, invalid: [0, 65_535] });
  t.same([0, 1, 500, 65_534, 65_535].map(u16), [Number.NaN, -4.99, 0, 65_534 * 0.01 - 5, Number.NaN]);
  const i16 = heightInMm({ dtype: "i16", scale_mm: 0.5, offset_mm: 1, invalid: [-32_768] });
  t.same([-32_768, -1, 0, 32_767].map(i16), [Number.NaN, 0.5, 1, 16_384.5]);
  const f32 = heightInMm({ dtype: "f32", scale_mm: 1, offset_mm: 0, invalid: [-99.9] });
  t.same([Math.fround(-99.9), Number.NaN, Infinity, 2].map(f32), [Number.NaN, Number.NaN, Number.NaN, 2]);
});

interface IndexEntry {
  name: string;
  height_file: string;
  z_scale_mm_per_count: number;
  z_offset_mm: number;
  invalid: number[];
}

const MILLIMETRES = `
import json, sys, numpy as np
folder = sys.argv[1]
for entry in json.load(open(folder + "/index.json")):
    raw = np.load(folder + "/" + entry["height_file"].split("/")[-1])
    missing = np.isin(raw, np.array(entry["invalid"], raw.dtype))
    z = np.where(missing, np.nan, raw.astype("f8") * entry["z_scale_mm_per_count"] + entry["z_offset_mm"])
    print(json.dumps([entry["name"], *z.shape, int(np.isnan(z).sum()), float(np.nansum(z * np.arange(z.size).reshape(z.shape)))]))
`;

t.test(
  "captures of real sensors have the same millimetres as in numpy",
  {
    skip: skipWithout(numpy, "numpy"),
  },
  async (t) => {
    if (!hasSharedData(t, HEIGHTMAPS)) return;
    const index = JSON.parse(readFileSync(`${HEIGHTMAPS}/index.json`, "utf8")) as IndexEntry[];
    const ours = index.map((entry) => {
      const { dtype, lines, width, values } = readNpy(
        readFileSync(`${HEIGHTMAPS}/${entry.height_file.split("/").at(-1)}`),
      );
      const { z_scale_mm_per_count: scale_mm, z_offset_mm: offset_mm, invalid } = entry;
      const toMm = heightInMm({ dtype, scale_mm, offset_mm, invalid });
      let [missing, sum] = [0, 0];
      for (const [at, raw] of values.entries()) {
        const z = toMm(raw);
        if (Number.isNaN(z)) missing++;
        else sum += z * at;
      }
      return [entry.name, lines, width, missing, sum] as const;
    });
    const theirs = runPython(numpy as string, MILLIMETRES, HEIGHTMAPS)
      .trim()
      .split("\n");
    t.equal(theirs.length, ours.length);
    for (const [at, text] of theirs.entries()) {
      const [name, lines, width, missing, sum] = JSON.parse(text) as [string, number, number, number, number];
      const [, , , , ourSum] = ours[at] as (typeof ours)[number];
      t.same(ours[at]?.slice(0, 4), [name, lines, width, missing]);
      t.ok(Math.abs(ourSum - sum) <= 1e-9 * Math.abs(sum), `${name}: ${ourSum}, numpy ${sum}`);
    }
  },
);
