import t from "tap";
import { itemBytes, type SeriesDtype } from "../../../../core/capture/capture.js";
import { createRandom } from "../../../../core/random.js";
import { parseTimeUs, TIME_LIMIT_US } from "../../../../core/timestamps.js";
import { typeScriptKernels, wasmKernels } from "../../../../workers/artefacts/kernel-memory.js";
import { type CsvAppend, csvRoomBytes, encodeCsvRows } from "../../../../workers/artefacts/series/csv-encoder.js";
import { CsvRows } from "../../../../workers/artefacts/series/csv-kernels.js";
import { sized } from "../../../helpers/test-size.js";

const START_US = parseTimeUs("2026-11-21T23:59:58.999998Z") as number;
const memories = [await wasmKernels(), typeScriptKernels()] as const;
const [wasm] = memories;

function append(dtype: SeriesDtype, fields: Partial<CsvAppend> = {}): CsvAppend {
  const base = { firstTimestampUs: START_US, samplePeriodUs: 50, valueScale: null, valueOffset: null, invalid: [] };
  return { dtype, ...base, ...fields };
}

function bytesOf(values: Int32Array | Float32Array | Float64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function reference(one: CsvAppend, channels: number, firstRow: number, values: Uint8Array): Buffer {
  const out = new Uint8Array(csvRoomBytes(channels, values.length / (channels * itemBytes(one.dtype))));
  return Buffer.from(out.buffer, 0, encodeCsvRows(one, channels, firstRow, values, out));
}

/** The first row where the kernels differ from the encoder; undefined where none does. */
function difference(one: CsvAppend, channels: number, values: Uint8Array, firstRow = 0): string | undefined {
  const wanted = reference(one, channels, firstRow, values);
  for (const memory of memories) {
    memory.reset();
    const text = new CsvRows(memory, channels, values.length / (channels * itemBytes(one.dtype)));
    text.write(one, firstRow, values);
    const found = Buffer.from(text.bytes);
    if (found.equals(wanted)) continue;
    const [rows, wantedRows] = [found, wanted].map((bytes) => bytes.toString("latin1").split("\n"));
    const nth = wantedRows?.findIndex((row, at) => row !== rows?.[at]) ?? 0;
    return `${JSON.stringify(one)}, row ${nth}: ${rows?.[nth]} for ${wantedRows?.[nth]}`;
  }
  return undefined;
}

t.test("integers with every number of decimals, and with codes", (t) => {
  const edges = [0, 1, -1, 9, 10, -10, 99, 100, -2_147_483_648, 2_147_483_647, 99_999_999, 100_000_000, -999_999_999];
  const random = createRandom(1);
  const many = Array.from({ length: 3000 }, () =>
    Math.trunc(random.integer(-2_147_483_648, 2_147_483_647) / 10 ** random.integer(0, 9)),
  );
  const values = bytesOf(Int32Array.from([...edges, ...many, ...edges]));
  for (let decimals = 0; decimals <= 15; decimals++) {
    for (const invalid of [[], [0], [-2_147_483_648, 7.5, 1e12, 10, 99]]) {
      t.equal(difference(append("i32", { valueScale: Number(`1e-${decimals}`), invalid }), 1, values), undefined);
    }
  }
  const all = Int32Array.from({ length: 100_000 }, (_, nth) => (nth % 2 === 0 ? nth : -nth) * 21_473);
  t.equal(difference(append("i32", { valueScale: 1e-4 }), 8, bytesOf(all)), undefined);
  t.end();
});

t.test("f32 of all exponents, of random bits, and as they are measured", (t) => {
  const seed = Number(process.env.SEED ?? 20_261_122);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  const patterns: number[] = [];
  for (let exponent = 0; exponent < 256; exponent++) {
    for (const mantissa of [0, 1, 2, 3, 0x3f_ffff, 0x40_0000, 0x7f_fffe, 0x7f_ffff]) {
      for (const sign of [0, 0x8000_0000]) patterns.push((sign | (exponent << 23) | mantissa) >>> 0);
    }
  }
  const all = (values: Float32Array, fields: Partial<CsvAppend> = {}): void => {
    t.equal(difference(append("f32", fields), 8, bytesOf(values)), undefined);
  };
  const edges = new Float32Array(Uint32Array.from(patterns).buffer);
  all(edges);
  all(edges, { invalid: [0, 1, 3.4e38, 0.1] });
  const count = sized(2 ** 16, 2 ** 20);
  all(new Float32Array(Uint32Array.from({ length: count }, () => random.integer(0, 0xffff_ffff)).buffer));
  // Within the exponents that the kernel has digits of by itself.
  const inner = Uint32Array.from(
    { length: sized(2 ** 18, 2 ** 22) },
    () => (random.integer(106, 153) << 23) | random.integer(0, 0x7f_ffff),
  );
  all(new Float32Array(inner.buffer));
  for (let decimals = 0; decimals < 9; decimals++) {
    all(Float32Array.from({ length: 40_000 }, () => random.integer(-9_999_999, 9_999_999) / 10 ** decimals));
  }
  all(Float32Array.from({ length: 40_000 }, () => random.normal() * 10 ** random.integer(-6, 8)));
  // Half way between two decimals of one digit less.
  all(Float32Array.from({ length: 40_000 }, (_, nth) => 2 ** 21 + nth / 4));
  all(Float32Array.from({ length: 40_000 }, (_, nth) => 2 ** 24 - 20_000 + nth));
  all(Float32Array.from({ length: 40_000 }, (_, nth) => 2 ** 25 - 40_000 + 2 * nth));
  t.end();
});

t.test("times of any period from 1970 on, and rows of any rowBlock", (t) => {
  const random = createRandom(2);
  const values = bytesOf(Int32Array.from({ length: 300 }, (_, nth) => nth));
  const days = [0, 68_256_000, 951_782_400, 1_709_164_800, 4_107_542_400, 8_999_000_000].map((second) => second * 1e6);
  for (const firstTimestampUs of [...days, START_US]) {
    for (const samplePeriodUs of [1e-3, 0.5, 1, 1.5, 333.3333, 1e6, 59_999_999.5, 3.6e9, 86_400_000_000]) {
      const one = append("i32", { firstTimestampUs, samplePeriodUs });
      t.equal(difference(one, 3, values, random.integer(0, 5)), undefined);
    }
  }
  const last = append("i32", { firstTimestampUs: TIME_LIMIT_US - 150, samplePeriodUs: 1 });
  t.equal(difference(last, 3, values), undefined, "up to the last time that there is");
  t.equal(difference(last, 1, values), undefined, "and beyond");
  t.end();
});

t.test("every type, scale and offset, in appends that follow one another", (t) => {
  const appends: [CsvAppend, Uint8Array][] = [
    [append("i32", { valueScale: 0.001, invalid: [3] }), bytesOf(Int32Array.of(1, -2, 3, 4))],
    [append("i32", { valueScale: 0.25 }), bytesOf(Int32Array.of(1, -2, 3, 4))],
    [append("i32", { valueOffset: 0.5 }), bytesOf(Int32Array.of(1, -2, 3, 4))],
    [append("f32", { invalid: [-99.9] }), bytesOf(Float32Array.of(0.1, -99.9, Number.NaN, -0))],
    [append("f32", { valueScale: 2 }), bytesOf(Float32Array.of(0.1, 5, Number.NaN, -0))],
    [append("f32", { valueScale: 1, valueOffset: 0 }), bytesOf(Float32Array.of(1e-7, 5e30, Infinity, 16))],
    [append("f64"), bytesOf(Float64Array.of(0.1, 1e21, Number.NaN, -0))],
    [append("i32", { invalid: [1, 2, 3, 4, 5] }), bytesOf(Int32Array.of(1, -2, 3, 40))],
  ];
  for (const memory of memories) {
    memory.reset();
    const text = new CsvRows(memory, 2, 2 * appends.length);
    for (const [one, values] of appends) text.write(one, 5, values);
    const wanted = Buffer.concat(appends.map(([one, values]) => reference(one, 2, 5, values)));
    t.equal(Buffer.from(text.bytes).toString(), wanted.toString());
    t.equal(text.lengthBytes, wanted.length);
  }
  t.end();
});

t.test("a rowBlock of single rows takes no more memory for each", (t) => {
  wasm.reset();
  const text = new CsvRows(wasm, 1, 4096);
  const before = wasm.usedBytes;
  for (let row = 0; row < 4096; row++) {
    text.write(append("i32", { invalid: [9] }), row, bytesOf(Int32Array.of(row)));
  }
  t.ok(wasm.usedBytes - before < 100, `${wasm.usedBytes - before} bytes`);
  t.end();
});
