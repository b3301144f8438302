import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { HEIGHT_DTYPES, type HeightDtype, itemBytes } from "../../../core/capture/capture.js";
import { npyHeader } from "../../../core/capture/npy-header.js";
import { createRandom } from "../../../core/random.js";
import { pythonWith, runPython, skipWithout } from "../../helpers/captures/python-checker.js";

t.test("golden bytes: what numpy.save writes for a (3, 2) array of <u2", async (t) => {
  const dict = "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 2), }";
  t.equal(
    Buffer.from(npyHeader("u16", 3, 2)).toString("hex"),
    `934e554d50590100${"7600"}${Buffer.from(dict).toString("hex")}${"20".repeat(118 - dict.length - 1)}0a`,
  );
});

t.test("data begins on a multiple of 64, for every shape a frame can have", async (t) => {
  for (const dtype of ["u16", "i16", "i32", "f32"] as const) {
    for (const lines of [0, 1, 9, 10, 99_999, 262_144]) {
      for (const width of [1, 3_200, 16_384]) {
        const header = Buffer.from(npyHeader(dtype, lines, width));
        t.equal(header.length % 64, 0);
        t.equal(header.readUInt16LE(8), header.length - 10);
        t.match(header.subarray(10).toString("latin1"), new RegExp(`\\(${lines}, ${width}\\), \\} *\\n$`));
      }
    }
  }
});

const numpy = pythonWith("numpy");
const SAVE = `
import sys, json, numpy
for name, dtype, lines, width in json.loads(sys.argv[1]):
    numpy.save(name + ".npy", numpy.fromfile(name, dtype=dtype).reshape(lines, width))
`;

t.test(
  "header and values are what numpy.save writes, of every dtype",
  { skip: skipWithout(numpy, "numpy") },
  async (t) => {
    const seed = Number(process.env.SEED ?? 20_261_124);
    t.comment(`seed ${seed}`);
    const random = createRandom(seed);
    const folder = t.testdir();
    const NAMES: Record<HeightDtype, string> = { u16: "<u2", i16: "<i2", i32: "<i4", f32: "<f4" };
    const made: { args: [string, string, number, number]; file: Buffer }[] = [];
    for (const dtype of HEIGHT_DTYPES) {
      for (const [lines, width] of [
        [0, 5],
        [1, 1],
        [7, 300],
        [random.integer(10, 99), random.integer(1, 500)],
      ] as const) {
        // Any bits, NaN among them.
        const values = random.bytes(lines * width * itemBytes(dtype));
        const path = join(folder, `${made.length}`);
        writeFileSync(path, values);
        made.push({
          args: [path, NAMES[dtype], lines, width],
          file: Buffer.concat([npyHeader(dtype, lines, width), values]),
        });
      }
    }
    runPython(numpy as string, SAVE, JSON.stringify(made.map(({ args }) => args)));
    for (const { args, file } of made) t.ok(readFileSync(`${args[0]}.npy`).equals(file), args.slice(1).join(" "));
  },
);
