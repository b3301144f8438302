import t from "tap";
import { npyHeader } from "../../../core/capture/npy-header.js";
import { readNpy } from "../../../workers/demo-cell/part/npy-reader.js";
import { openCollection } from "../../../workers/demo-cell/replay.js";
import { heightsMm } from "../../../workers/demo-cell/steps/capture.js";

const npy = (descr: string, rows: number, columns: number, data: Uint8Array): Uint8Array => {
  const header = Buffer.from(npyHeader("u16", rows, columns))
    .toString("latin1")
    .replace("<u2", descr);
  return Buffer.concat([Buffer.from(header, "latin1"), data]);
};
const entry = {
  name: "a",
  height_file: "heightmaps/a_height.npy",
  luminance_file: "heightmaps/a_lum.npy",
  rows: 2,
  cols: 3,
  x_pitch_mm: 0.5,
  y_pitch_mm: 0.25,
  z_scale_mm_per_count: 0.5,
  z_offset_mm: 1,
  invalid: [0],
  x_origin_mm: -7,
};
const heights = Uint16Array.of(0, 1, 2, 3, 4, 65_535);
const files: Record<string, Uint8Array> = {
  "d/index.json": Buffer.from(JSON.stringify([entry])),
  "d/a_height.npy": npy("<u2", 2, 3, new Uint8Array(heights.buffer)),
  "d/a_lum.npy": npy("<u2", 2, 3, new Uint8Array(Uint16Array.of(0, 610, 5, 6, 7, 8).buffer)),
};
const open = (changed: Record<string, Uint8Array | undefined> = {}) =>
  openCollection("d", async (path) => {
    const bytes = { ...files, ...changed }[path];
    if (bytes === undefined) throw new Error(`no such file: ${path}`);
    return bytes;
  });

t.test("an entry becomes a capture with its values untouched", async (t) => {
  const [recorded] = await open();
  const capture = await recorded?.load();
  if (capture === undefined) throw new Error("no capture");
  t.same([capture.width, capture.lines, capture.xPitchMm, capture.yPitchMm, capture.xOriginMm], [3, 2, 0.5, 0.25, -7]);
  t.same(capture.planes, {
    height: { dtype: "u16", scale_mm: 0.5, offset_mm: 1, invalid: [0] },
    luminance: { dtype: "u16", bits: 10 },
  });
  t.ok(Buffer.from(capture.height).equals(new Uint8Array(heights.buffer)));
  t.same([...heightsMm(capture)].slice(0, 3), [Number.NaN, 1.5, 2]);
});

t.test("each thing that is wrong with a collection is told by name", async (t) => {
  const index = (change: object) => ({ "d/index.json": Buffer.from(JSON.stringify([{ ...entry, ...change }])) });
  const cases: [string, Record<string, Uint8Array | undefined>, RegExp][] = [
    ["no index", { "d/index.json": undefined }, /index\.json \(an array of captures\)/],
    ["not JSON", { "d/index.json": Buffer.from("{") }, /d is not a collection/],
    ["not an array", { "d/index.json": Buffer.from("{}") }, /must be an array/],
    ["empty", { "d/index.json": Buffer.from("[]") }, /at least one/],
    ["no pitch", index({ x_pitch_mm: undefined }), /\[0\]\.x_pitch_mm is nothing: it must be millimetres above 0/],
    ["bad invalid", index({ invalid: ["NaN"] }), /invalid is \["NaN"\]/],
    ["no file", { "d/a_height.npy": undefined }, /a_height\.npy cannot be replayed: no such file/],
    ["wrong shape", index({ rows: 3 }), /shape \(2, 3\): the index says \(3, 3\)/],
    ["wrong dtype", { "d/a_height.npy": npy("<f8", 2, 3, new Uint8Array(48)) }, /holds values of type <f8/],
    ["wrong luminance", { "d/a_lum.npy": npy("<f4", 2, 3, new Uint8Array(24)) }, /a_lum\.npy holds values of type <f4/],
  ];
  for (const [name, changed, message] of cases) {
    await t.rejects(open(changed), { code: "not_a_capture_collection", message }, name);
  }
});

t.test("an NPY file that is cut, mangled or of another layout is told", async (t) => {
  const good = files["d/a_height.npy"] as Uint8Array;
  t.match(readNpy(good), { descr: "<u2", rows: 2, columns: 3 });
  const text = Buffer.from(good).toString("latin1");
  const spoilt = (from: string, to: string) => Buffer.from(text.replace(from, to), "latin1");
  t.throws(() => readNpy(good.subarray(0, 8)), /magic/);
  t.throws(() => readNpy(spoilt("\x93", "?")), /magic/);
  t.throws(() => readNpy(spoilt("NUMPY\x01", "NUMPY\x07")), /format is 7/);
  t.throws(() => readNpy(good.subarray(0, -1)), /data is 11 bytes: the header says 12/);
  t.throws(() => readNpy(spoilt("False", "True ")), /header/);
  t.throws(() => readNpy(spoilt("'fortran_order': False,", "'fortran_order': True, ")), /header|Fortran/);
  t.throws(() => readNpy(spoilt("(2, 3), ", "(2,),   ")), /two-dimensional/);
});
