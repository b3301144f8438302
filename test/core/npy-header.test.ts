import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { HeightDtype } from "../../core/capture.js";
import { npyHeader } from "../../core/npy-header.js";

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

const shared = join("..", "shared", "data", "heightmaps");
t.test(
  "equal to the headers of real files",
  { skip: existsSync(shared) ? false : `${shared} is absent` },
  async (t) => {
    const DTYPES: Record<string, HeightDtype> = { "<u2": "u16", "<i2": "i16", "<i4": "i32", "<f4": "f32" };
    let compared = 0;
    for (const name of readdirSync(shared).filter((file) => file.endsWith(".npy"))) {
      const bytes = readFileSync(join(shared, name));
      const text = bytes.subarray(10, 10 + bytes.readUInt16LE(8)).toString("latin1");
      const match = /'descr': '([^']+)'.*'shape': \((\d+), (\d+)\)/.exec(text);
      const dtype = DTYPES[match?.[1] ?? ""];
      if (match === null || dtype === undefined) continue;
      const header = Buffer.from(npyHeader(dtype, Number(match[2]), Number(match[3])));
      t.same(bytes.subarray(0, header.length), header, name);
      compared++;
    }
    t.ok(compared >= 8, `${compared} files`);
  },
);
