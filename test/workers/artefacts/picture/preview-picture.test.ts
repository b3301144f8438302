import { hash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { VIRIDIS } from "../../../../core/capture/viridis.js";
import { createRandom } from "../../../../core/random.js";
import { type KernelMemory, newKernelMemory } from "../../../../workers/artefacts/kernel-memory.js";
import { encodePreview } from "../../../../workers/artefacts/picture/preview-picture.js";
import {
  frameOf,
  heightSource,
  type MadeFrame,
  noiseFrame,
  plainHeights,
  realFrames,
  surfaceFrame,
} from "../../../helpers/captures/made-frames.js";
import { type PalettePicture, readPalettePng } from "../../../helpers/captures/png-reader.js";
import { pythonWith, runPython, skipWithout } from "../../../helpers/captures/python-checker.js";

const memory = await newKernelMemory();

function preview(memory: KernelMemory, frame: MadeFrame): Promise<Uint8Array> {
  memory.reset();
  return encodePreview(memory, frame.planes.height, frame.geometry, heightSource(memory, frame));
}

/** Linear, as numpy.percentile. */
function percentile(sorted: Float32Array, share: number): number {
  const rank = share * (sorted.length - 1);
  const below = sorted[Math.floor(rank)] as number;
  return below + ((sorted[Math.ceil(rank)] as number) - below) * (rank % 1);
}

/** What the contract says of a preview, in the plainest code there is. */
function expected(frame: MadeFrame): { width: number; samples: Uint8Array; range: [number, number] | undefined } {
  const { width, lines } = frame.geometry;
  const offset = frame.planes.height.offset_mm;
  const zs = plainHeights({ ...frame, planes: { ...frame.planes, height: { ...frame.planes.height, offset_mm: 0 } } });
  const sorted = zs.filter(Number.isFinite).sort();
  const range: [number, number] = [percentile(sorted, 0.01), percentile(sorted, 0.99)];
  const [lowest, highest] = range;
  const block = Math.ceil(Math.max(width, lines) / 640);
  const [columns, rows] = [Math.ceil(width / block), Math.ceil(lines / block)];
  const samples = new Uint8Array(columns * rows);
  for (let to = 0; to < samples.length; to++) {
    const [row, column] = [Math.floor(to / columns) * block, (to % columns) * block];
    const points: number[] = [];
    for (let line = row; line < Math.min(lines, row + block); line++) {
      points.push(...zs.subarray(line * width + column, line * width + Math.min(width, column + block)));
    }
    const measured = points.filter(Number.isFinite);
    if (measured.length === 0) continue;
    const z = measured.reduce((sum, one) => sum + one, 0) / measured.length;
    const colour = 1 + Math.round(((z - lowest) / (highest - lowest)) * 254);
    samples[to] = lowest === highest && z === lowest ? 128 : z <= lowest ? 1 : z >= highest ? 255 : colour;
  }
  return { width: columns, samples, range: sorted.length === 0 ? undefined : [lowest + offset, highest + offset] };
}

function frames(): MadeFrame[] {
  const random = createRandom(3);
  const made: MadeFrame[] = [];
  for (const dtype of ["u16", "i16", "i32", "f32"] as const) {
    for (const [width, lines] of [
      [1, 1],
      [1, 9_001],
      [2_000, 1],
      [640, 3],
      [641, 200],
    ] as const) {
      const code = dtype === "u16" ? 0 : -32_768;
      const values = Array.from({ length: width * lines }, (_, at) =>
        random.chance(0.3) ? code : 900 + Math.round(800 * Math.sin(at / 400)) + random.integer(-90, 90),
      );
      // Below zero, about zero and above it.
      const height = { scale_mm: 0.01, offset_mm: -9, invalid: [code] };
      made.push(frameOf(`${dtype} ${width} x ${lines}`, dtype, { width, lines }, values, height));
    }
  }
  const size = { width: 300, lines: 200 };
  const all = (value: number) => new Array<number>(60_000).fill(value);
  made.push(frameOf("one height", "f32", size, all(-2.5)));
  made.push(frameOf("one height, but for a few points", "f32", size, all(4).with(3, 5).with(4, 3).with(5, Number.NaN)));
  made.push(frameOf("two heights", "f32", { width: 2, lines: 1 }, [3, -1]));
  made.push(surfaceFrame(2, 700, 330), noiseFrame(1, 700, 90));
  return made;
}

const sampleCount = (picture: PalettePicture, sample: number): number =>
  picture.samples.reduce((sum, one) => sum + (one === sample ? 1 : 0), 0);

t.test("a preview shows the mean heights of blocks between two percentiles, in viridis", async (t) => {
  for (const frame of frames()) {
    const { width, samples, range } = expected(frame);
    const picture = readPalettePng(await preview(memory, frame));
    t.same([picture.width, picture.height, picture.bitDepth], [width, samples.length / width, 8], frame.name);
    t.ok(picture.palette.equals(VIRIDIS) && picture.alphas.equals(Buffer.of(0)), "only sample 0 is transparent");
    const { z_min_mm, z_max_mm } = picture.texts;
    t.same([z_min_mm, z_max_mm], range?.map(String) ?? [undefined, undefined]);
    // A mean may lie on the border of two colours, and round to either.
    const off = samples.filter((one, at) => one !== picture.samples[at]);
    const isNear = samples.every((one, at) => Math.abs(one - (picture.samples[at] as number)) <= (one === 0 ? 0 : 1));
    t.ok(isNear && off.length <= samples.length / 1_000, `${frame.name}: ${off.length} other colours`);
  }
});

t.test("a frame without a point is transparent; one with one height has the middle colour", async (t) => {
  const size = { width: 1_300, lines: 20 };
  const blind = frameOf("blind", "u16", size, new Uint16Array(26_000), { invalid: [0] });
  const flat = frameOf("flat", "f32", size, new Float32Array(26_000).fill(7.25));
  const transparent = readPalettePng(await preview(memory, blind));
  t.same([transparent.width, transparent.height], [434, 7]);
  t.equal(sampleCount(transparent, 0), 434 * 7);
  t.same(transparent.texts, { x_pitch_mm: String(0.1 * 3), y_pitch_mm: String(0.1 * 3) }, "no percentile");
  const even = readPalettePng(await preview(memory, flat));
  t.equal(sampleCount(even, 128), 434 * 7);
  t.match(even.texts, { z_min_mm: "7.25", z_max_mm: "7.25" });
});

/** Signature and IHDR; the palette, as matplotlib has it; from tRNS to the end. */
const GOLDEN = {
  head: "89504e470d0a1a0a0000000d4948445200000003000000020803000000aaaa9628",
  palette: "18545f7c72a02f02a54f2e3f6ff9dcf357e0190ab9117a1f8fae44c6eaf179e0",
  tail: "0000000174524e530040e6d86600000018494441547801000800f7ff0100013e0180413e010000ffff03900141a7c7beb20000000049454e44ae426082",
};

t.test("golden bytes of a small preview", async (t) => {
  const values = [0, 1_000, 2_000, 3_000, 4_000, 5_000];
  const frame = frameOf("small", "u16", { width: 3, lines: 2 }, values, { scale_mm: 0.001, invalid: [0] });
  const bytes = Buffer.from(await preview(memory, frame));
  const { samples, texts } = readPalettePng(bytes);
  t.same([...samples], [0, 1, 63, 128, 193, 255]);
  t.same(texts, { z_min_mm: "1.04", z_max_mm: "4.96", x_pitch_mm: "0.1", y_pitch_mm: "0.1" });
  t.equal(hash("sha256", VIRIDIS), GOLDEN.palette);
  t.equal(bytes.subarray(0, 33).toString("hex"), GOLDEN.head);
  t.equal(bytes.subarray(bytes.indexOf("tRNS") - 4).toString("hex"), GOLDEN.tail);
});

t.test("a surface far from zero has as many colours as one near it", async (t) => {
  const values = Uint16Array.from({ length: 25_500 }, (_, at) => at % 255);
  const height = { scale_mm: 0.0001, offset_mm: 1_000_000, invalid: [] };
  const frame = frameOf("far", "u16", { width: 255, lines: 100 }, values, height);
  const { samples, texts } = readPalettePng(await preview(memory, frame));
  t.ok(new Set(samples).size > 245, `${new Set(samples).size} colours`);
  const rangeMm = Number(texts.z_max_mm) - Number(texts.z_min_mm);
  t.ok(rangeMm > 0.0248 && rangeMm < 0.0252, `${rangeMm} mm`);
});

t.test("a frame of 3,200 x 1,000 becomes 640 x 200", async (t) => {
  const bytes = await preview(memory, surfaceFrame(7, 3_200, 1_000));
  const picture = readPalettePng(bytes);
  t.same([picture.width, picture.height], [640, 200]);
  t.ok(sampleCount(picture, 0) > 0, "the shadows are transparent");
  t.ok(bytes.length < 128_000, `${bytes.length} bytes`);
});

const pil = pythonWith("PIL", "numpy");
const PIL = `
import json, sys, warnings, numpy as np
from PIL import Image
warnings.simplefilter("ignore")
for name in sys.argv[1:]:
    plane = json.load(open(name + ".json"))
    raw = np.fromfile(name + ".raw", dtype=plane["dtype"]).reshape(plane["lines"], plane["width"])
    z = (raw.astype("f8") * plane["scale_mm"]).astype("f4")
    z[np.isin(raw.astype("f8"), plane["invalid"])] = np.nan
    z[~np.isfinite(z)] = np.nan
    k = -(-max(z.shape) // 640)
    rows, columns = -(-z.shape[0] // k), -(-z.shape[1] // k)
    padded = np.full((rows * k, columns * k), np.nan)
    padded[:z.shape[0], :z.shape[1]] = z
    mean = np.nanmean(padded.reshape(rows, k, columns, k), axis=(1, 3))
    picture = Image.open(name)
    samples, rgba = np.array(picture).astype(int), np.array(picture.convert("RGBA"))
    measured = np.isfinite(mean)
    ok = picture.mode == "P" and picture.size == (columns, rows) and max(picture.size) <= 640
    ok = ok and np.array_equal(rgba[..., 3], np.where(measured, 255, 0)) and np.array_equal(samples > 0, measured)
    if measured.any():
        low, high = np.nanpercentile(z.astype("f8"), [1, 99])
        texts = [float(picture.text[key]) for key in ("z_min_mm", "z_max_mm")]
        ok = ok and np.allclose(texts, np.array([low, high]) + plane["offset_mm"], rtol=1e-12, atol=1e-12)
        if high > low:
            colours = np.clip(np.rint((mean - low) / (high - low) * 254) + 1, 1, 255)
            off = np.abs(colours - samples)[measured]
            ok = ok and off.max() <= 1 and (off > 0).mean() < 0.001
        palette = np.array(picture.getpalette()).reshape(-1, 3)
        ok = ok and np.array_equal(palette[samples], rgba[..., :3])
        # viridis, as its authors give it: its ends and its middle.
        ok = ok and palette[[0, 128, 255]].tolist() == [[68, 1, 84], [33, 145, 140], [253, 231, 37]]
    print(name, bool(ok))
`;

t.test(
  "PIL and numpy find the same percentiles, colours and transparency",
  { skip: skipWithout(pil, "PIL") },
  async (t) => {
    const folder = t.testdir();
    const all = [...(await realFrames(t)), ...frames(), surfaceFrame(7, 3_200, 1_000)];
    const blind = frameOf("blind", "u16", { width: 30, lines: 20 }, new Uint16Array(600), { invalid: [0] });
    const files: string[] = [];
    for (const frame of [...all, blind]) {
      const file = join(folder, `${files.length}.png`);
      files.push(file);
      const { dtype, ...height } = frame.planes.height;
      writeFileSync(file, await preview(memory, frame));
      writeFileSync(`${file}.raw`, frame.height);
      const plane = { ...height, ...frame.geometry, dtype: { u16: "<u2", i16: "<i2", i32: "<i4", f32: "<f4" }[dtype] };
      writeFileSync(`${file}.json`, JSON.stringify(plane));
    }
    const answers = runPython(pil as string, PIL, ...files)
      .trim()
      .split("\n");
    t.equal(answers.length, files.length);
    t.same(
      answers.filter((answer) => !answer.endsWith("True")),
      [],
    );
  },
);
