import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { formatTimeUs } from "../../../../core/timestamps.js";
import { type CsvAppend, csvHeader } from "../../../../workers/artefacts/series/csv-encoder.js";
import { shortestSingleText, writeShortestSingle } from "../../../../workers/artefacts/series/shortest-singles.js";
import { append, rowsOf, START_US } from "../../../helpers/captures/csv-rows.js";

/** The cells of one channel. */
function cells(one: CsvAppend, values: ArrayLike<number>): string[] {
  return rowsOf(one, 1, values)
    .trimEnd()
    .split("\n")
    .map((row) => row.split(",")[1] as string);
}

t.test("a header, a row a sample, an empty cell for what was not measured", (t) => {
  t.equal(Buffer.from(csvHeader(3)).toString(), "timestamp,channel_1,channel_2,channel_3\n");
  t.equal(
    rowsOf(
      append("i32", { valueScale: 0.001, invalid: [-999_999], samplePeriodUs: 1.5 }),
      2,
      [1, -20, -999_999, 1500, 0, -999_999],
    ),
    "2026-11-21T20:38:25.999998Z,0.001,-0.020\n" +
      "2026-11-21T20:38:26.000000Z,,1.500\n" +
      "2026-11-21T20:38:26.000001Z,0.000,\n",
  );
  t.same(cells(append("f32", { invalid: [-99.9] }), [Number.NaN, Math.fround(-99.9), 0.1, -0, Infinity]), [
    "",
    "",
    "0.1",
    "-0",
    "",
  ]);
  t.same(cells(append("f64", { invalid: [7] }), [Number.NaN, 7, 0.1, -0, 0, 1e21, 5e-324]), [
    "",
    "",
    "0.1",
    "-0",
    "0",
    "1e+21",
    "5e-324",
  ]);
  t.same(cells(append("f32", { valueScale: 2, valueOffset: 1 }), [0.25, 0.1]), [
    "1.5",
    String(2 * Math.fround(0.1) + 1),
  ]);
  t.same(cells(append("i32", { valueScale: 0.25 }), [3, -1]), ["0.75", "-0.25"], "not a power of ten: as a f64");
  t.same(cells(append("i32", { valueOffset: 0.5 }), [3]), ["3.5"]);
  t.end();
});

t.test("times of any period from 1970 on", (t) => {
  const days = [0, 68_256_000, 951_782_400, 1_709_164_800, 8_999_000_000].map((second) => second * 1e6);
  for (const firstTimestampUs of [...days, START_US]) {
    for (const samplePeriodUs of [1e-3, 0.5, 1.5, 333.3333, 1e6, 59_999_999.5, 86_400_000_000]) {
      const rows = rowsOf(append("i32", { firstTimestampUs, samplePeriodUs }), 1, new Int32Array(100), 7).split("\n");
      const expected = Array.from({ length: 100 }, (_, row) => {
        return `${formatTimeUs(firstTimestampUs + Math.round((row + 7) * samplePeriodUs))},0`;
      });
      t.same(rows, [...expected, ""], `${firstTimestampUs} every ${samplePeriodUs} us`);
    }
  }
  t.end();
});

t.test("integers with a scale that is a power of ten are their exact decimal", (t) => {
  const random = createRandom(1);
  const values = [
    0,
    1,
    -1,
    9,
    10,
    99_999,
    -2_147_483_648,
    2_147_483_647,
    ...Array.from({ length: 2000 }, () =>
      Math.trunc(random.integer(-2_147_483_648, 2_147_483_647) / 10 ** random.integer(0, 9)),
    ),
  ];
  for (let decimals = 0; decimals <= 15; decimals++) {
    const texts = cells(append("i32", { valueScale: Number(`1e-${decimals}`) }), values);
    for (const [nth, text] of texts.entries()) {
      const [whole = "", fraction = ""] = text.split(".");
      const isExact = fraction.length === decimals && BigInt(whole + fraction) === BigInt(values[nth] as number);
      if (!isExact || /^-?0\d/.test(text)) t.fail(`${values[nth]} with ${decimals} decimals is ${text}`);
    }
  }
  t.end();
});

/** A decimal as JavaScript writes it: digits without zeros at either end, and the exponent of the last. */
function decimalOf(text: string): [digits: string, exponent: number] {
  const [mantissa = "", power = "0"] = text.split("e");
  const [whole = "", fraction = ""] = mantissa.replace("-", "").split(".");
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  return [kept, Number(power) - fraction.length + digits.length - kept.length];
}

t.test("with a power of ten that is larger, or has more decimals, integers are their exact decimal too", (t) => {
  const random = createRandom(5);
  const values = [1, -7, 10, 2_147_483_647, -2_147_483_648];
  for (let nth = 0; nth < 100; nth++) values.push(random.integer(1, 2_147_483_647));
  for (let exponent = -323; exponent <= 308; exponent++) {
    if (exponent <= 0 && exponent > -16) continue;
    const texts = cells(append("i32", { valueScale: Number(`1e${exponent}`), invalid: [7] }), [...values, 0, 7]);
    t.same(texts.slice(-2), ["0", ""]);
    for (const [nth, value] of values.entries()) {
      const text = texts[nth] as string;
      const [digits, last] = decimalOf(text);
      const [expected, zeros] = decimalOf(String(value));
      if (digits === expected && last === zeros + exponent && text.startsWith("-") === value < 0) continue;
      t.fail(`${value} x 10^${exponent} is ${text}`);
    }
  }
  t.end();
});

t.test("so are they with an offset, where sixteen digits hold the sum; else the f64 that comes out", (t) => {
  t.same(cells(append("i32", { valueScale: 0.001, valueOffset: 0.1 }), [7, -100, -101, 0]), [
    "0.107",
    "0.000",
    "-0.001",
    "0.100",
  ]);
  t.same(cells(append("i32", { valueScale: 1, valueOffset: -16 }), [3, 16]), ["-13", "0"]);
  t.same(cells(append("i32", { valueScale: 0.1, valueOffset: 1 / 3 }), [1]), [String(0.1 + 1 / 3)], "no such sum");
  t.same(cells(append("i32", { valueOffset: 1e21 }), [1]), [String(1e21 + 1)]);
  const random = createRandom(6);
  for (let nth = 0; nth < 2000; nth++) {
    const decimals = random.integer(0, 6);
    const ofOffset = random.integer(0, 6);
    const offset = random.integer(-999, 999);
    const raw = random.integer(-1_000_000, 1_000_000);
    const scaling = { valueScale: Number(`1e-${decimals}`), valueOffset: Number(`${offset}e-${ofOffset}`) };
    const [text = ""] = cells(append("i32", scaling), [raw]);
    const [whole = "", fraction = ""] = text.split(".");
    const expected = BigInt(raw) * 10n ** BigInt(12 - decimals) + BigInt(offset) * 10n ** BigInt(12 - ofOffset);
    const read = BigInt(whole + fraction) * 10n ** BigInt(12 - fraction.length);
    if (read !== expected || fraction.length < decimals || /^-?0\d/.test(text)) {
      t.fail(`${raw} x 10^-${decimals} + ${scaling.valueOffset} is ${text}`);
    }
  }
  t.end();
});

/** Independent of the encoder: value x 10^-`unit` of any decimal text, in whole numbers. */
function wholeOf(text: string, unit: number): bigint {
  const [mantissa = "", power = "0"] = text.split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const zeros = Number(power) - fraction.length - unit;
  const digits = BigInt(whole + fraction);
  if (zeros >= 0) return digits * 10n ** BigInt(zeros);
  const divisor = 10n ** BigInt(-zeros);
  if (digits % divisor !== 0n) throw new Error(`${text} has decimals behind 10^${unit}`);
  return digits / divisor;
}

t.test(
  "whatever the power of ten and the offset: the exact decimal where sixteen digits hold it, else the f64",
  (t) => {
    const seed = Number(process.env.SEED ?? 20_261_123);
    t.comment(`seed ${seed}`);
    const random = createRandom(seed);
    const counts = { exact: 0, doubles: 0, exponents: 0 };
    for (let nth = 0; nth < 20_000; nth++) {
      const exponent = random.chance(0.8) ? random.integer(-18, 9) : random.integer(-323, 308);
      const digits = random.integer(1, 10 ** random.integer(1, 17) - 1);
      const offsetExponent = exponent + random.integer(-9, 9);
      const valueScale = Number(`1e${exponent}`);
      const valueOffset = random.chance(0.1)
        ? 0
        : Number(`${random.chance(0.5) ? "-" : ""}${digits}e${offsetExponent}`);
      if (!Number.isFinite(valueOffset)) continue;
      const raw = random.pick([0, 57, -2_147_483_648, 2_147_483_647, random.integer(-100_000, 100_000)]);
      const [text = ""] = cells(append("i32", { valueScale, valueOffset }), [raw]);
      // The shortest decimal that reads back to the f64: the encoder cannot know which other one was meant.
      const [shownDigits, shownLast] = valueOffset === 0 ? ["0", exponent] : decimalOf(String(valueOffset));
      const unit = Math.min(exponent, shownLast);
      const size = BigInt(shownDigits) * 10n ** BigInt(shownLast - unit);
      const offset = valueOffset < 0 ? -size : size;
      const factor = 10n ** BigInt(exponent - unit);
      const isHeld = size <= 2n ** 53n - 1n && 2n ** 31n * factor + size <= 2n ** 53n - 1n;
      if (!isHeld) {
        counts.doubles++;
        const value = raw * valueScale + valueOffset;
        if (text !== (Number.isFinite(value) ? String(value) : ""))
          t.fail(`${raw} x ${valueScale} + ${valueOffset} is ${text}`);
        continue;
      }
      counts.exact++;
      const expected = BigInt(raw) * factor + offset;
      const [mantissa = "", power] = text.split("e");
      const decimals = mantissa.split(".")[1]?.length ?? 0;
      if (power !== undefined) counts.exponents++;
      const isConventional =
        unit > 0 || unit < -15 ? !/\.\d*0(e|$)/.test(text) : decimals === -unit && power === undefined;
      if (wholeOf(text, unit) !== expected || !isConventional || /^-?0\d/.test(text)) {
        t.fail(`${raw} x ${valueScale} + ${valueOffset} is ${text}`);
      }
      // With a unit over 1 or under 1e-15 the text is as JavaScript writes it. To compare, a f64 must hold all digits.
      if (
        (unit > 0 || unit < -15) &&
        text.replace(/\D/g, "").length <= 12 &&
        Number.isFinite(Number(text)) &&
        Math.abs(Number(text)) > 1e-300
      ) {
        if (String(Number(text)) !== text)
          t.fail(`${raw} x ${valueScale} + ${valueOffset} is ${text}, not as JavaScript writes it`);
      }
    }
    t.comment(JSON.stringify(counts));
    t.ok(Math.min(counts.exact, counts.doubles, counts.exponents) > 1_000, "all kinds");
    t.same(cells(append("i32", { valueScale: 0.001, valueOffset: 1e-7 }), [57]), ["0.0570001"]);
    t.same(cells(append("i32", { valueScale: 1e300 }), [9, -30, 2_147_483_647]), [
      "9e+300",
      "-3e+301",
      "2.147483647e+309",
    ]);
    t.end();
  },
);

t.test("no decimal of fewer digits reads back to the f32 either", (t) => {
  const random = createRandom(6);
  const bits = new Int32Array(1);
  const single = new Float32Array(bits.buffer);
  for (let nth = 0; nth < 20_000; nth++) {
    // All powers of two first: there the next f32 above is twice as far away as the next one below.
    bits[0] = nth < 255 ? nth << 23 : random.integer(1, 0x7f7f_ffff);
    const value = single[0] as number;
    const text = shortestSingleText(value);
    if (Math.fround(Number(text)) !== value || shortestSingleText(-value) !== `-${text}`) t.fail(text);
    const [digits] = decimalOf(text);
    if (digits.length < 2) continue;
    const [mantissa = "", power = ""] = value.toExponential(digits.length - 2).split("e");
    for (const step of [-1, 0, 1]) {
      const shorter = `${Number(mantissa.replace(".", "")) + step}e${Number(power) - digits.length + 2}`;
      if (Math.fround(Number(shorter)) === value) t.fail(`${text}, but ${shorter} reads back too`);
    }
  }
  t.end();
});

t.test("f32 has the fewest digits that read back, and the nearest of these", (t) => {
  const seed = Number(process.env.SEED ?? 20_261_121);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  const single = new Float32Array(1);
  const bits = new Int32Array(single.buffer);
  const out = new Uint8Array(64);
  const view = new DataView(out.buffer);
  const check = (value: number): void => {
    const text = Buffer.from(out.buffer, 0, writeShortestSingle(view, 0, value)).toString();
    if (text !== shortestSingleText(value)) t.fail(`${value} is ${text}, not ${shortestSingleText(value)}`);
    if (Math.fround(Number(text)) !== value) t.fail(`${value}: ${text} does not read back`);
  };
  for (let exponent = 0; exponent < 255; exponent++) {
    for (const mantissa of [0, 1, 2, 0x40_0000, 0x7f_fffe, 0x7f_ffff]) {
      bits[0] = (exponent << 23) | mantissa;
      check(single[0] as number);
    }
  }
  for (let nth = 0; nth < 60_000; nth++) {
    bits[0] = random.integer(-0x8000_0000, 0x7fff_ffff);
    if (Number.isFinite(single[0])) check(single[0] as number);
    single[0] = random.integer(-10_000_000, 10_000_000) / 10 ** random.integer(0, 7);
    check(single[0] as number);
    single[0] = random.normal() * 10 ** random.integer(-5, 6);
    check(single[0] as number);
  }
  for (let whole = 8_388_600; whole < 8_388_620; whole += 0.5) check(Math.fround(whole));
  t.end();
});

t.test("rows of any rowBlock joined are the whole", (t) => {
  const random = createRandom(3);
  for (const dtype of ["f32", "f64", "i32"] as const) {
    const values = Array.from({ length: 400 * 3 }, () => Math.round(random.normal() * 1e5));
    const one = append(dtype, { samplePeriodUs: 7.3, valueScale: dtype === "i32" ? 1e-4 : null });
    const whole = rowsOf(one, 3, values);
    const parts = [
      [0, 1],
      [1, 137],
      [137, 400],
    ].map(([first = 0, end = 0]) => rowsOf(one, 3, values.slice(3 * first, 3 * end), first));
    t.equal(parts.join(""), whole, dtype);
  }
  t.end();
});
