import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { type HeightDtype, itemBytes } from "../../../../core/capture/capture.js";
import { plyHeader, vertexBytes } from "../../../../core/capture/ply-header.js";
import { createRandom, type Random } from "../../../../core/random.js";
import { countLineBits } from "../../../../workers/artefacts/cloud/line-counts.js";
import { type CloudSource, countCloudPoints, packCloud } from "../../../../workers/artefacts/cloud/point-cloud.js";
import { filterOutliers } from "../../../../workers/artefacts/filter/outlier-filter.js";
import { type KernelMemory, newKernelMemory } from "../../../../workers/artefacts/kernel-memory.js";
import {
  frameOf,
  heightSource,
  loadFrame,
  type MadeFrame,
  plainHeights,
  planeSource,
  realFrames,
  surfaceFrame,
} from "../../../helpers/captures/made-frames.js";
import { readPly } from "../../../helpers/captures/ply-reader.js";
import { pythonWith, runPython, skipWithout } from "../../../helpers/captures/python-checker.js";

const FRAME_ID = "01932f3a-7c2b-7a10-8000-000000000001";
const memory = await newKernelMemory();

function sourceOf(memory: KernelMemory, frame: MadeFrame, mask: Uint8Array | null): CloudSource {
  memory.reset();
  const { planes, geometry } = frame;
  const lightBytes = planes.luminance === undefined ? 0 : geometry.width * itemBytes(planes.luminance.dtype);
  const luminance = planeSource(memory, frame.luminance ?? new Uint8Array(0), lightBytes);
  return { planes, geometry, heights: heightSource(memory, frame), luminance, mask };
}

async function packed(memory: KernelMemory, source: CloudSource, firstLine: number, endLine: number): Promise<Buffer> {
  const { at, lengthBytes } = await packCloud(memory, source, firstLine, endLine);
  return Buffer.from(memory.bytes(at, lengthBytes));
}

async function cloudFile(memory: KernelMemory, frame: MadeFrame, mask: Uint8Array | null): Promise<Buffer> {
  const body = await packed(memory, sourceOf(memory, frame, mask), 0, frame.geometry.lines);
  const points = body.length / vertexBytes(frame.planes);
  const counts = await countCloudPoints(memory, sourceOf(memory, frame, null));
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (mask === null) t.equal(points, all, `${frame.name}: the size is known from the counts`);
  return Buffer.concat([plyHeader({ id: FRAME_ID, ...frame, ...frame.geometry }, points, mask !== null), body]);
}

function expectedVertices(frame: MadeFrame, mask: Uint8Array | null): number[][] {
  const { width, xOriginMm, yOriginMm, xPitchMm, yPitchMm } = frame.geometry;
  const rows: number[][] = [];
  for (const [at, z] of plainHeights(frame).entries()) {
    if (z === Number.POSITIVE_INFINITY) continue;
    if (mask !== null && (((mask[at >> 3] as number) >> (at & 7)) & 1) === 0) continue;
    const x = Math.fround(xOriginMm + (at % width) * xPitchMm);
    const row = [x, Math.fround(yOriginMm + Math.floor(at / width) * yPitchMm), z];
    const light = frame.planes.luminance;
    if (light?.dtype === "u8") row.push(frame.luminance?.[at] as number);
    else if (light !== undefined) row.push(Math.min(255, lightOf(frame, at) >> (light.bits - 8)));
    rows.push(row);
  }
  return rows;
}

function lightOf(frame: MadeFrame, at: number): number {
  const { buffer, byteOffset } = frame.luminance as Uint8Array;
  return new DataView(buffer, byteOffset).getUint16(2 * at, true);
}

function frames(): MadeFrame[] {
  const random = createRandom(8);
  const deep = [8, 10, 12, 16].map((bits) => {
    const frame = surfaceFrame(bits, 31, 20);
    frame.planes.luminance = { dtype: "u16", bits };
    // Also values with more bits than are said to carry signal: they are as bright as can be.
    const light = Uint16Array.from({ length: 31 * 20 }, () => random.integer(0, 2 ** random.integer(0, 16) - 1));
    frame.luminance = new Uint8Array(light.buffer);
    return frame;
  });
  const flat = frameOf(
    "flat, with u16 light of 8 bits",
    "f32",
    { width: 21, lines: 6 },
    new Array<number>(126).fill(0.5),
  );
  flat.planes.luminance = { dtype: "u16", bits: 8 };
  flat.luminance = new Uint8Array(Uint16Array.from({ length: 126 }, (_, at) => 3 * at).buffer);
  const bare = { ...surfaceFrame(3, 33, 20), luminance: null };
  bare.planes = { height: bare.planes.height };
  return [
    surfaceFrame(1, 50, 30),
    ...deep,
    flat,
    bare,
    frameOf("no point", "f32", { width: 9, lines: 5 }, new Array<number>(45).fill(Number.NaN)),
    frameOf("one point", "i32", { width: 1, lines: 1, xOriginMm: -3.3 }, [7], { scale_mm: 0.1 }),
  ];
}

t.test("vertices are the valid points in scan order, and those of the mask", async (t) => {
  const random = createRandom(9);
  for (const frame of frames()) {
    const bits = random.bytes(Math.ceil((frame.geometry.width * frame.geometry.lines) / 8));
    for (const mask of [null, bits]) {
      const cloud = readPly(await cloudFile(memory, frame, mask));
      t.same(cloud.vertices, expectedVertices(frame, mask), frame.name);
      t.match(
        cloud.comments[0],
        new RegExp(`^frame ${FRAME_ID}, units mm, filter ${mask === null ? "none" : "stat.*20.*2.0"}`),
      );
    }
  }
});

t.test("the header says how vertices came about, and to where floats keep every step of the frame", async (t) => {
  const scale_mm = 0.0001;
  const limitMm = scale_mm * 2 ** 23;
  const values = Array.from({ length: 60 }, (_, at) => 7 + 13 * at + (at % 4));
  const raws = (frame: MadeFrame, memory: KernelMemory): Promise<number[]> =>
    cloudFile(memory, frame, null).then((file) =>
      readPly(file).vertices.map(([, , z]) => Math.round(((z as number) - frame.planes.height.offset_mm) / scale_mm)),
    );
  const size = { width: 12, lines: 5, xPitchMm: 0.02, yPitchMm: 1e-7, xOriginMm: -2e5, yOriginMm: 12.5 };
  const near = frameOf("near", "i32", size, values, { scale_mm, offset_mm: limitMm - 1 });
  t.same(readPly(await cloudFile(memory, near, null)).comments.slice(1), [
    `offset_mm -200000 12.5 ${limitMm - 1}`,
    "scale_mm 0.02 1e-7 0.0001",
    "a float has 24 bits: beyond 2^23 times its scale_mm a coordinate loses steps, which the NPY has",
  ]);
  t.same(await raws(near, memory), values, "raw values can be had back");
  const far = frameOf("far", "i32", size, values, { scale_mm, offset_mm: 4 * limitMm });
  t.notSame(await raws(far, memory), values);
});

/** Raw values of a type: the least, the greatest, and any. */
const RAW: Record<HeightDtype, { ends: [least: number, greatest: number]; any(random: Random): number }> = {
  u16: { ends: [0, 65_535], any: (random) => random.integer(0, 65_535) },
  i16: { ends: [-32_768, 32_767], any: (random) => random.integer(-32_768, 32_767) },
  i32: { ends: [-2_147_483_648, 2_147_483_647], any: (random) => random.integer(-2_147_483_648, 2_147_483_647) },
  f32: {
    ends: [-3.4028234663852886e38, 3.4028234663852886e38],
    any: (random) =>
      random.chance(0.1)
        ? random.pick([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 1e-45])
        : Math.fround(random.integer(-1e6, 1e6) / 997),
  },
};

t.test("heights of every type, scale, offset and set of codes are the f32 that the plainest code gives", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_122);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  for (let nth = 0; nth < 120; nth++) {
    const dtype = random.pick(["u16", "i16", "i32", "f32"] as const);
    const {
      ends: [least, greatest],
      any,
    } = RAW[dtype];
    const size = { width: random.integer(1, 70), lines: random.integer(1, 60) };
    const values = Array.from({ length: size.width * size.lines }, () =>
      random.chance(0.2) ? random.pick([least, greatest, 0, 7]) : any(random),
    );
    const others = values.slice(0, random.pick([3, 3, 50]));
    const invalid = [least, 7, 7.5, greatest + 1, 70_000, 1e12, -1, ...others].filter(
      (code) => Number.isFinite(code) && random.chance(0.4),
    );
    const height = {
      scale_mm: random.pick([1, 0.002, 1e-3 / 3, -0.01, 1e34, 3e-43, 1e300]),
      offset_mm: random.pick([0, -300.5, 1 / 3, 3e38, -1e-40]),
      invalid,
    };
    const frame = frameOf(`${nth}: ${JSON.stringify({ dtype, ...size, ...height })}`, dtype, size, values, height);
    const luminance = random.pick(["none", "u8", "u16"] as const);
    if (luminance === "u8") {
      frame.planes.luminance = { dtype: "u8", bits: 8 };
      frame.luminance = random.bytes(values.length);
    } else if (luminance === "u16") {
      frame.planes.luminance = { dtype: "u16", bits: random.integer(8, 16) };
      frame.luminance = random.bytes(2 * values.length);
    }
    const mask = random.chance(0.5) ? null : random.bytes(Math.ceil(values.length / 8));
    const vertices = readPly(await cloudFile(memory, frame, mask)).vertices;
    if (JSON.stringify(vertices) !== JSON.stringify(expectedVertices(frame, mask))) t.fail(frame.name);
  }
});

t.test("lines of several blocks, whose masks begin within a byte, are those of the whole", async (t) => {
  const random = createRandom(77);
  const [width, lines] = [501, 600];
  const surface = surfaceFrame(9, width, lines);
  const words = Array.from({ length: width * lines }, () => random.integer(-9, 9));
  const single = frameOf("single", "f32", { width, lines }, words, { invalid: [3] });
  const word = frameOf("word", "i32", { width, lines }, words, { invalid: [-9, 3] });
  for (const frame of [surface, single, word]) await blocksAreTheWhole(t, frame, random);
});

/** The bits of the mask that belong to points. */
function maskOfPoints(frame: MadeFrame, mask: Uint8Array): Uint8Array {
  const bits = mask.slice();
  for (const [at, z] of plainHeights(frame).entries()) {
    if (z === Number.POSITIVE_INFINITY) bits[at >> 3] = (bits[at >> 3] as number) & ~(1 << (at & 7));
  }
  return bits;
}

async function blocksAreTheWhole(t: Test, frame: MadeFrame, random: Random): Promise<void> {
  const { width, lines } = frame.geometry;
  frame.planes.luminance = { dtype: "u16", bits: 12 };
  const light = Uint16Array.from({ length: width * lines }, () => random.integer(0, 4_095));
  frame.luminance = new Uint8Array(light.buffer);
  const mask = random.bytes(Math.ceil((width * lines) / 8));
  const [firstLine, endLine] = [77, 590];
  const firstByte = Math.floor((firstLine * width) / 8);
  const part = mask.subarray(firstByte, Math.ceil((endLine * width) / 8));
  const counts = countLineBits(maskOfPoints(frame, mask), width, lines);
  const bytesOf = (first: number, end: number): number =>
    counts.subarray(first, end).reduce((sum, count) => sum + count, 0) * vertexBytes(frame.planes);
  const whole = await packed(memory, sourceOf(memory, frame, mask), 0, lines);
  const source = { ...sourceOf(memory, frame, part), maskFirstBit: 8 * firstByte };
  const some = await packed(memory, source, firstLine, endLine);
  const from = bytesOf(0, firstLine);
  t.ok(some.equals(whole.subarray(from, from + bytesOf(firstLine, endLine))));
  const blocks = { ...sourceOf(memory, frame, mask), blockBytes: 7_000 };
  t.ok((await packed(memory, blocks, 0, lines)).equals(whole), "in small blocks");
  const points = whole.length / vertexBytes(frame.planes);
  const { vertices } = readPly(
    Buffer.concat([plyHeader({ id: FRAME_ID, ...frame, ...frame.geometry }, points, true), whole]),
  );
  const expected = expectedVertices(frame, mask);
  t.equal(vertices.length, expected.length);
  t.equal(JSON.stringify(vertices), JSON.stringify(expected), "all of them");
}

t.test("any lines joined are the whole", async (t) => {
  const frame = surfaceFrame(5, 70, 41);
  const whole = await packed(memory, sourceOf(memory, frame, null), 0, 41);
  const parts: Uint8Array[] = [];
  for (const [first, end] of [
    [0, 1],
    [1, 1],
    [1, 20],
    [20, 41],
  ] as const) {
    parts.push(await packed(memory, sourceOf(memory, frame, null), first, end));
  }
  t.ok(Buffer.concat(parts).equals(whole));
});

/** As expectedVertices, in one array a property: a row for each of a million points would take seconds. */
function expectedColumns(frame: MadeFrame, mask: Uint8Array | null): { xyz: Float32Array; intensity: Uint8Array } {
  const { width, xOriginMm, yOriginMm, xPitchMm, yPitchMm } = frame.geometry;
  const light = frame.planes.luminance;
  const zs = plainHeights(frame);
  const xyz = new Float32Array(3 * zs.length);
  const intensity = new Uint8Array(zs.length);
  let points = 0;
  for (let at = 0; at < zs.length; at++) {
    if (zs[at] === Number.POSITIVE_INFINITY) continue;
    if (mask !== null && (((mask[at >> 3] as number) >> (at & 7)) & 1) === 0) continue;
    xyz[3 * points] = xOriginMm + (at % width) * xPitchMm;
    xyz[3 * points + 1] = yOriginMm + Math.floor(at / width) * yPitchMm;
    xyz[3 * points + 2] = zs[at] as number;
    if (light?.dtype === "u8") intensity[points] = frame.luminance?.[at] as number;
    else if (light !== undefined) intensity[points] = Math.min(255, lightOf(frame, at) >> (light.bits - 8));
    points++;
  }
  return { xyz: xyz.subarray(0, 3 * points), intensity: intensity.subarray(0, light === undefined ? 0 : points) };
}

/** Both read x, y, z and, where the header has it, intensity; `expected` is `<name>.xyz` and `<name>.light`. */
const COMPARISON = `
def compare(name, xyz, light):
    expected = numpy.fromfile(name + ".xyz", dtype="<f4").reshape(-1, 3)
    bright = numpy.fromfile(name + ".light", dtype="u1")
    same_light = light is None if bright.size == 0 else light is not None and light.dtype == numpy.uint8 and numpy.array_equal(light, bright)
    print(name, len(xyz), bool(xyz.dtype == numpy.float32 and numpy.array_equal(xyz, expected) and same_light))
`;
/** Reads a binary PLY by nothing but its own header, which says what the rows are. */
const NUMPY = `
import sys, numpy
${COMPARISON}
TYPES = {"float": "<f4", "float32": "<f4", "uchar": "u1", "uint8": "u1"}
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        lines = []
        while not lines or lines[-1] != "end_header":
            lines.append(file.readline().decode("ascii").rstrip("\\n"))
        assert lines[:2] == ["ply", "format binary_little_endian 1.0"], lines
        words = [line.split() for line in lines[2:-1] if not line.startswith("comment ")]
        (element, kind, count), properties = words[0], words[1:]
        assert (element, kind) == ("element", "vertex"), words
        rows = numpy.dtype([(field, TYPES[dtype]) for _, dtype, field in properties])
        vertices = numpy.frombuffer(file.read(), dtype=rows)
        assert len(vertices) == int(count), (len(vertices), count)
        assert rows.names[:3] == ("x", "y", "z"), rows
    xyz = numpy.stack([vertices[axis] for axis in "xyz"], axis=1)
    compare(name, xyz, vertices["intensity"] if "intensity" in rows.names else None)
`;
const OPEN3D = `
import sys, numpy, open3d
${COMPARISON}
for name in sys.argv[1:]:
    cloud = open3d.t.io.read_point_cloud(name)
    xyz = cloud.point["positions"].numpy()
    light = cloud.point["intensity"].numpy().ravel() if "intensity" in cloud.point else None
    compare(name, xyz, light)
    plain = numpy.asarray(open3d.io.read_point_cloud(name).points)
    assert numpy.array_equal(plain, xyz.astype("f8")), name
`;

t.test("other readers read the same points, all of them and those of the filter", async (t) => {
  const folder = t.testdir();
  const files: string[] = [];
  const filled: string[] = [];
  let intensities = 0;
  for (const frame of [...(await realFrames(t)), surfaceFrame(1, 200, 100), ...frames()]) {
    const { bits, inliers, points } = filterOutliers(memory, await loadFrame(memory, frame));
    for (const [mask, count] of [
      [null, points],
      [bits, inliers],
    ] as const) {
      const { xyz, intensity } = expectedColumns(frame, mask);
      t.equal(xyz.length, 3 * count, `${frame.name}: ${count} points`);
      if (intensity.length > 0) intensities++;
      const file = join(folder, `${files.length}.ply`);
      // Open3D refuses a cloud without a point.
      if (count > 0) filled.push(file);
      files.push(file);
      writeFileSync(file, await cloudFile(memory, frame, mask));
      writeFileSync(`${file}.xyz`, xyz);
      writeFileSync(`${file}.light`, intensity);
    }
  }
  const compare = (t: Test, python: string, script: string, files: readonly string[]): void => {
    const answers = runPython(python, script, ...files)
      .trim()
      .split("\n");
    t.equal(answers.length, files.length);
    t.same(
      answers.filter((answer) => !answer.endsWith("True")),
      [],
    );
    t.comment(`${files.length} clouds, ${intensities} with intensity, read as they are by ${t.name}`);
  };
  const numpy = pythonWith("numpy");
  t.test("numpy, as the header says", { skip: skipWithout(numpy, "numpy") }, async (t) =>
    compare(t, numpy as string, NUMPY, files),
  );
  const open3d = pythonWith("open3d", "numpy");
  t.test("Open3D", { skip: skipWithout(open3d, "Open3D") }, async (t) => compare(t, open3d as string, OPEN3D, filled));
});
