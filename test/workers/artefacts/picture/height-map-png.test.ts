import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { itemBytes } from "../../../../core/capture/capture.js";
import { createRandom, type Random } from "../../../../core/random.js";
import { type KernelMemory, newKernelMemory } from "../../../../workers/artefacts/kernel-memory.js";
import { encodeHeightMap } from "../../../../workers/artefacts/picture/height-map-png.js";
import { encodeLuminance } from "../../../../workers/artefacts/picture/luminance-png.js";
import {
  frameOf,
  heightSource,
  type MadeFrame,
  noiseFrame,
  plainHeights,
  planeSource,
  rawHeights,
  realFrames,
  surfaceFrame,
} from "../../../helpers/captures/made-frames.js";
import { readGreyPng } from "../../../helpers/captures/png-reader.js";
import { pythonWith, runPython, sameToPil, skipWithout } from "../../../helpers/captures/python-checker.js";

const memory = await newKernelMemory();

function heightMap(memory: KernelMemory, frame: MadeFrame): Promise<Uint8Array> {
  memory.reset();
  return encodeHeightMap(memory, frame.planes.height, frame.geometry, heightSource(memory, frame));
}

function luminance(memory: KernelMemory, frame: MadeFrame): Promise<Uint8Array> {
  const plane = frame.planes.luminance;
  if (plane === undefined || frame.luminance === null) throw new Error(`${frame.name} has no luminance`);
  memory.reset();
  const lines = planeSource(memory, frame.luminance, frame.geometry.width * itemBytes(plane.dtype));
  return encodeLuminance(memory, plane, frame.geometry, lines);
}

/** What the contract says of the samples. */
function expectedSamples(frame: MadeFrame): Uint16Array {
  const zs = plainHeights(frame);
  const { dtype, invalid } = frame.planes.height;
  if (dtype === "u16" && invalid.includes(0)) {
    const raw = new Uint16Array(frame.height.buffer, frame.height.byteOffset, zs.length);
    return Uint16Array.from(raw, (value, at) => (zs[at] === Number.POSITIVE_INFINITY ? 0 : value));
  }
  const { scale_mm: scale, offset_mm: offset } = frame.planes.height;
  const exact = Array.from(rawHeights(frame), (raw) => raw * scale + offset);
  let [lowest, highest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const [at, z] of exact.entries()) {
    if (zs[at] === Number.POSITIVE_INFINITY) continue;
    lowest = Math.min(lowest, z);
    highest = Math.max(highest, z);
  }
  const steps = highest > lowest ? 65_534 / (highest - lowest) : 0;
  return Uint16Array.from(exact, (z, at) =>
    zs[at] === Number.POSITIVE_INFINITY ? 0 : 1 + Math.round((z - lowest) * steps),
  );
}

function smallFrames(): MadeFrame[] {
  const random = createRandom(5);
  const frames: MadeFrame[] = [];
  for (const dtype of ["u16", "i16", "i32", "f32"] as const) {
    for (const [width, lines] of [
      [1, 1],
      [1, 50],
      [37, 1],
      [16, 16],
      [301, 223],
    ] as const) {
      const code = dtype === "u16" ? 0 : -32_768;
      const values = Array.from({ length: width * lines }, (_, at) =>
        random.chance(0.1) ? code : 20_000 + Math.round(3000 * Math.sin(at / 90)) + random.integer(-3, 3),
      );
      const height = { scale_mm: 0.01, offset_mm: -20, invalid: [code, 7] };
      frames.push(frameOf(`${dtype} ${width} x ${lines}`, dtype, { width, lines }, values, height));
    }
  }
  const size = { width: 300, lines: 200 };
  const all = (value: number) => new Array<number>(60_000).fill(value);
  frames.push(frameOf("no point at all", "u16", size, all(0), { invalid: [0] }));
  frames.push(frameOf("no point at all, f32", "f32", size, all(Number.NaN)));
  frames.push(frameOf("one height", "f32", size, all(2.5)));
  frames.push(frameOf("0 is a height", "u16", size, all(0), { invalid: [65_535] }));
  frames.push(
    frameOf(
      "what deflate cannot make smaller",
      "u16",
      size,
      all(0).map(() => random.integer(1, 65_535)),
      { invalid: [0] },
    ),
  );
  const overflowing = all(0).map((_, at) => at);
  frames.push(
    frameOf("heights that are no f32", "u16", size, overflowing, { scale_mm: 1e34, invalid: [0, 70_000, 1.5] }),
  );
  // A strip has 200 lines. Its code is made from every eighth of them.
  const rare = all(0).map((_, at) => 30_000 + (Math.floor(at / 300) % 8 === 4 ? 0 : random.integer(-9_000, 9_000)));
  frames.push(frameOf("values that the lines looked at have not", "u16", size, rare, { invalid: [0] }));
  // The last has strips between the first and the last one.
  frames.push(noiseFrame(1, 260, 170), surfaceFrame(2, 700, 1_000));
  return frames;
}

/** Luminance by the contract: more bits than 8 are shifted down, and a value with too many is as bright as can be. */
function expectedLuminance({ planes, luminance }: MadeFrame): Uint16Array {
  const raw = Uint8Array.from(luminance ?? []);
  if (planes.luminance?.dtype === "u8") return Uint16Array.from(raw);
  const bits = planes.luminance?.bits ?? 8;
  return new Uint16Array(raw.buffer).map((value) => Math.min(255, Math.floor(value / 2 ** (bits - 8))));
}

/** Luminance of 16 bits, of which so many carry signal. */
function deepFrames(): MadeFrame[] {
  const random = createRandom(6);
  return [8, 10, 12, 16].map((bits) => {
    const frame = surfaceFrame(bits, 333, 100);
    // Also values with more bits than are said to carry signal.
    const light = Uint16Array.from({ length: 33_300 }, () => random.integer(0, 2 ** random.integer(0, 16) - 1));
    frame.luminance = new Uint8Array(light.buffer);
    frame.planes.luminance = { dtype: "u16", bits };
    return frame;
  });
}

t.test("height maps hold the samples that they should", async (t) => {
  for (const frame of smallFrames()) {
    const expected = expectedSamples(frame);
    const picture = readGreyPng(await heightMap(memory, frame));
    t.same(
      [picture.width, picture.height, picture.bitDepth],
      [frame.geometry.width, frame.geometry.lines, 16],
      frame.name,
    );
    t.ok(Buffer.from(picture.samples.buffer).equals(Buffer.from(expected.buffer)), `${frame.name}: samples`);
  }
});

t.test("millimetres can be had back from the texts", async (t) => {
  const kept = surfaceFrame(2, 40, 30);
  t.same(readGreyPng(await heightMap(memory, kept)).texts, {
    z_scale_mm: "0.002",
    z_offset_mm: "0",
    x_pitch_mm: "0.1",
    y_pitch_mm: "0.1",
  });
  const scaled = frameOf("scaled", "f32", { width: 3, lines: 1 }, [1.5, 2.25, Number.NaN]);
  t.match(readGreyPng(await heightMap(memory, scaled)), { texts: { z_min_mm: "1.5", z_max_mm: "2.25" } });
  const empty = readGreyPng(await heightMap(memory, frameOf("empty", "f32", { width: 1, lines: 1 }, [Number.NaN])));
  t.same(Object.keys(empty.texts), ["x_pitch_mm", "y_pitch_mm"], "no bounds without a point");
});

/** Planes far from zero, whose steps an f32 does not tell apart there. */
function farFrames(random: Random): MadeFrame[] {
  return (["u16", "i16", "i32", "f32"] as const).flatMap((dtype) =>
    [1e6, -3.7e7, 0.25].flatMap((offset_mm) =>
      [1e-5, -2e-4, 0.0031].map((scale_mm) => {
        // i32 beyond what an f32 holds; f32 whose own steps are finer than that.
        const base = { u16: 9_000, i16: -20_000, i32: 2_000_000_007, f32: random.integer(0, 30) }[dtype];
        const size = { width: random.integer(1, 90), lines: random.integer(1, 60) };
        const values = Array.from({ length: size.width * size.lines }, () => {
          if (random.chance(0.05)) return base;
          return base + (dtype === "f32" ? random.next() : random.integer(1, 40_000));
        });
        const name = `${dtype} x ${scale_mm} + ${offset_mm}, ${size.width} x ${size.lines}`;
        return frameOf(name, dtype, size, values, { scale_mm, offset_mm, invalid: [base, 12.5] });
      }),
    ),
  );
}

t.test("heights far from zero keep their steps: half a step of the picture at most is lost", async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 20_261_126);
  t.comment(`seed ${seed}`);
  for (const frame of farFrames(createRandom(seed))) {
    const { scale_mm, offset_mm, invalid } = frame.planes.height;
    const expected = expectedSamples(frame);
    const { samples, texts } = readGreyPng(await heightMap(memory, frame));
    t.ok(Buffer.from(samples.buffer).equals(Buffer.from(expected.buffer)), frame.name);
    const [lowest, highest] = [Number(texts.z_min_mm), Number(texts.z_max_mm)];
    const step = (highest - lowest) / 65_534;
    // The precision that a f64 has at such a height.
    const slack = 4 * Number.EPSILON * Math.max(Math.abs(lowest), Math.abs(highest));
    let worst = 0;
    for (const [at, raw] of [...rawHeights(frame)].entries()) {
      const sample = samples[at] as number;
      if ((sample === 0) !== (raw === invalid[0])) t.fail(`${frame.name}: ${raw} is ${sample}`);
      if (sample > 0) worst = Math.max(worst, Math.abs(lowest + (sample - 1) * step - (raw * scale_mm + offset_mm)));
    }
    if (worst > step / 2 + slack) t.fail(`${frame.name}: ${worst / step} steps (TEST_SEED=${seed})`);
  }
});

t.test("luminance is shifted down to 8 bits", async (t) => {
  for (const frame of [surfaceFrame(4, 333, 100), ...deepFrames()]) {
    const expected = expectedLuminance(frame);
    const { samples } = readGreyPng(await luminance(memory, frame));
    t.ok(Buffer.from(samples.buffer).equals(Buffer.from(expected.buffer)), `${frame.planes.luminance?.bits}`);
  }
});

t.test("pictures of any width, with runs of any length", async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 8);
  const random = createRandom(seed);
  t.comment(`seed ${seed}`);
  for (let nth = 0; nth < 150; nth++) {
    const size = { width: random.integer(1, 60), lines: random.pick([1, 3, 50, 700]) };
    const spread = random.pick([0, 1, 40, 30_000]);
    const stay = random.pick([0, 0.5, 0.97]);
    let value = 30_000;
    let slope = 0;
    const values = Array.from({ length: size.width * size.lines }, () => {
      if (random.chance(0.02)) slope = random.integer(0, 3);
      if (!random.chance(stay)) value = 30_000 + random.integer(-spread, spread);
      value = Math.min(65_535, value + slope);
      return random.chance(0.02) ? 0 : value;
    });
    const frame = frameOf(`${nth}: ${JSON.stringify({ ...size, spread, stay })}`, "u16", size, values, {
      invalid: [0],
    });
    frame.luminance = Uint8Array.from(values, (one) => one & 255);
    frame.planes.luminance = { dtype: "u8", bits: 8 };
    const heights = readGreyPng(await heightMap(memory, frame)).samples;
    const lights = readGreyPng(await luminance(memory, frame)).samples;
    const areEqual = values.every((one, at) => heights[at] === one && lights[at] === (one & 255));
    if (!areEqual) t.fail(frame.name);
  }
});

const pil = pythonWith("PIL", "numpy");
const pngcheck = spawnSync("pngcheck", ["-h"]).error === undefined ? "pngcheck" : undefined;

/** What the contract says of samples and texts, in numpy, of raw planes beside their pictures. */
const FAR = `
import json, sys, numpy as np
from PIL import Image
for name in sys.argv[1:]:
    plane = json.load(open(name + ".json"))
    picture = Image.open(name)
    samples = np.array(picture).astype("i8")
    raw = np.fromfile(name + ".raw", dtype=plane["dtype"]).reshape(samples.shape)
    z = raw.astype("f8") * plane["scale_mm"] + plane["offset_mm"]
    valid = ~np.isin(raw.astype("f8"), plane["invalid"])
    bounds = [float(picture.text[key]) for key in ("z_min_mm", "z_max_mm")] if valid.any() else [0, 0]
    expected = np.where(valid, np.floor((z - bounds[0]) * (65534 / max(bounds[1] - bounds[0], 1e-300)) + 1.5), 0)
    exact = not valid.any() or bounds == [z[valid].min(), z[valid].max()]
    print(name, bool(exact and np.array_equal(samples, expected)))
`;

t.test("numpy finds the same samples and bounds far from zero", { skip: skipWithout(pil, "PIL") }, async (t) => {
  const folder = t.testdir();
  const files: string[] = [];
  for (const frame of farFrames(createRandom(77))) {
    const file = join(folder, `${files.length}.png`);
    files.push(file);
    writeFileSync(file, await heightMap(memory, frame));
    writeFileSync(`${file}.raw`, frame.height);
    const dtype = { u16: "<u2", i16: "<i2", i32: "<i4", f32: "<f4" }[frame.planes.height.dtype];
    writeFileSync(`${file}.json`, JSON.stringify({ ...frame.planes.height, dtype }));
  }
  const answers = runPython(pil as string, FAR, ...files)
    .trim()
    .split("\n");
  t.equal(answers.length, files.length);
  t.same(
    answers.filter((answer) => !answer.endsWith("True")),
    [],
  );
});

t.test("other decoders read the same samples", async (t) => {
  const folder = t.testdir();
  const files: string[] = [];
  let deepLuminances = 0;
  for (const frame of [...(await realFrames(t)), ...smallFrames(), ...deepFrames()]) {
    const light = frame.planes.luminance;
    if (light?.dtype === "u16") deepLuminances++;
    const pictures: [Uint8Array, Uint16Array][] = [[await heightMap(memory, frame), expectedSamples(frame)]];
    if (light !== undefined) pictures.push([await luminance(memory, frame), expectedLuminance(frame)]);
    for (const [png, samples] of pictures) {
      const file = join(folder, `${files.length}.png`);
      files.push(file);
      writeFileSync(file, png);
      writeFileSync(`${file}.raw`, new Uint8Array(samples.buffer));
    }
  }
  t.ok(deepLuminances >= 4, `${deepLuminances} frames with luminance of 16 bits`);
  t.test("PIL", { skip: skipWithout(pil, "PIL") }, (t) => {
    sameToPil(t, pil as string, files);
    t.comment(`${files.length} pictures read bit-exact by PIL, those of ${deepLuminances} u16 luminances among them`);
    t.end();
  });
  t.test("pngcheck", { skip: skipWithout(pngcheck, "pngcheck") }, (t) => {
    const { status, stdout } = spawnSync("pngcheck", ["-q", ...files], { encoding: "utf8" });
    t.equal(status, 0, stdout);
    t.comment(`${files.length} pictures pass pngcheck`);
    t.end();
  });
});
