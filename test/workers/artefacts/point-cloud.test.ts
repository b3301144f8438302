import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { itemBytes } from "../../../core/capture.js";
import { plyHeader, vertexBytes } from "../../../core/ply-header.js";
import { createRandom } from "../../../core/random.js";
import { type KernelMemory, typeScriptKernels, wasmKernels } from "../../../workers/artefacts/kernel-memory.js";
import { type CloudSource, countCloudPoints, packCloud } from "../../../workers/artefacts/point-cloud.js";
import {
  frameOf,
  heightSource,
  type MadeFrame,
  plainHeights,
  planeSource,
  realFrames,
  surfaceFrame,
} from "../../helpers/made-frames.js";
import { readPly } from "../../helpers/ply-reader.js";
import { pythonWith, runPython, skipWithout } from "../../helpers/python-checker.js";

const FRAME_ID = "01932f3a-7c2b-7a10-8000-000000000001";
const kernels: [name: string, memory: KernelMemory][] = [
  ["TypeScript", typeScriptKernels()],
  ["WebAssembly", await wasmKernels()],
];

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
  const counts = await countCloudPoints(memory, sourceOf(memory, frame, mask));
  const points = counts.reduce((sum, count) => sum + count, 0);
  const body = await packed(memory, sourceOf(memory, frame, mask), 0, frame.geometry.lines);
  t.equal(body.length, points * vertexBytes(frame.planes), `${frame.name}: the size is known from the counts`);
  return Buffer.concat([plyHeader(FRAME_ID, frame.planes, points, mask !== null), body]);
}

function wantedVertices(frame: MadeFrame, mask: Uint8Array | null): number[][] {
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
    // Also more bits than are said to carry signal: as bright as can be.
    const light = Uint16Array.from({ length: 31 * 20 }, () => random.integer(0, 2 ** random.integer(0, 16) - 1));
    frame.luminance = new Uint8Array(light.buffer);
    return frame;
  });
  const bare = { ...surfaceFrame(3, 33, 20), luminance: null };
  bare.planes = { height: bare.planes.height };
  return [
    surfaceFrame(1, 50, 30),
    ...deep,
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
      for (const [name, memory] of kernels) {
        const cloud = readPly(await cloudFile(memory, frame, mask));
        t.same(cloud.vertices, wantedVertices(frame, mask), `${name}: ${frame.name}`);
        t.match(
          cloud.comments,
          listOf(new RegExp(`^frame ${FRAME_ID}, units mm, filter ${mask === null ? "none" : "stat.*20.*2.0"}`)),
        );
      }
    }
  }
});

t.test("16-bit heights of every scale, offset and set of codes are the same f32 by both kernels", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_122);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  for (let nth = 0; nth < 60; nth++) {
    const dtype = random.pick(["u16", "i16"] as const);
    const [least, greatest] = dtype === "u16" ? [0, 65_535] : [-32_768, 32_767];
    const size = { width: random.integer(1, 70), lines: random.integer(1, 60) };
    const values = Array.from({ length: size.width * size.lines }, () =>
      random.chance(0.2) ? random.pick([least, greatest, 0, 7]) : random.integer(least, greatest),
    );
    const invalid = [least, 7, 7.5, greatest + 1, 70_000, 1e12, -1, ...values.slice(0, 3)].filter(() =>
      random.chance(0.4),
    );
    const height = {
      scale_mm: random.pick([1, 0.002, 1e-3 / 3, -0.01, 1e34, 3e-43, 1e300]),
      offset_mm: random.pick([0, -300.5, 1 / 3, 3e38, -1e-40]),
      invalid,
    };
    const frame = frameOf(`${nth}: ${JSON.stringify({ dtype, ...size, ...height })}`, dtype, size, values, height);
    const mask = random.chance(0.5) ? null : random.bytes(Math.ceil(values.length / 8));
    const clouds = await Promise.all(kernels.map(([, memory]) => cloudFile(memory, frame, mask)));
    if (!(clouds[0] as Buffer).equals(clouds[1] as Buffer)) t.fail(`the kernels differ: ${frame.name}`);
    const vertices = readPly(clouds[0] as Buffer).vertices;
    if (JSON.stringify(vertices) !== JSON.stringify(wantedVertices(frame, mask))) t.fail(frame.name);
  }
});

t.test("any lines joined are the whole", async (t) => {
  const frame = surfaceFrame(5, 70, 41);
  for (const [name, memory] of kernels) {
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
    t.ok(Buffer.concat(parts).equals(whole), name);
  }
});

const ASCII = "../shared/data/formats/ply";

t.test(
  "the reader of these tests reads tinyply's two forms of one shape alike",
  {
    skip: existsSync(ASCII) ? false : "the conformance files are not there",
  },
  (t) => {
    const [ascii, binary] = ["icosahedron_ascii.ply", "icosahedron.ply"].map((name) =>
      readPly(readFileSync(join(ASCII, name))),
    );
    t.same(ascii?.properties, binary?.properties);
    t.equal(ascii?.vertices.length, binary?.vertices.length);
    for (const [nth, row] of (ascii?.vertices ?? []).entries()) {
      for (const [column, value] of row.entries()) {
        if (Math.abs(value - (binary?.vertices[nth]?.[column] as number)) > 1e-5) t.fail(`vertex ${nth}`);
      }
    }
    t.end();
  },
);

const open3d = pythonWith("open3d", "numpy");
const OPEN3D = `
import sys, numpy, open3d
for name in sys.argv[1:]:
    points = numpy.asarray(open3d.io.read_point_cloud(name).points).astype("<f4")
    wanted = numpy.fromfile(name + ".xyz", dtype="<f4").reshape(-1, 3)
    print(name, bool(numpy.array_equal(points, wanted)))
`;

import { listOf } from "../../helpers/list-of.js";

t.test("Open3D reads the same points", { skip: skipWithout(open3d, "Open3D") }, async (t) => {
  const folder = t.testdir();
  const files: string[] = [];
  for (const frame of [...(await realFrames(t)), surfaceFrame(1, 200, 100)]) {
    // As wantedVertices, without an array for each of a million points.
    const { width, xOriginMm, yOriginMm, xPitchMm, yPitchMm } = frame.geometry;
    const zs = plainHeights(frame);
    const all = new Float32Array(3 * zs.length);
    let length = 0;
    for (let at = 0; at < zs.length; at++) {
      if (zs[at] === Number.POSITIVE_INFINITY) continue;
      all[length++] = xOriginMm + (at % width) * xPitchMm;
      all[length++] = yOriginMm + Math.floor(at / width) * yPitchMm;
      all[length++] = zs[at] as number;
    }
    const xyz = all.slice(0, length);
    for (const [, memory] of kernels) {
      const file = join(folder, `${files.length}.ply`);
      files.push(file);
      writeFileSync(file, await cloudFile(memory, frame, null));
      writeFileSync(`${file}.xyz`, new Uint8Array(xyz.buffer));
    }
  }
  const answers = runPython(open3d as string, OPEN3D, ...files)
    .trim()
    .split("\n");
  t.same(
    answers.filter((answer) => !answer.endsWith("True")),
    [],
  );
  t.comment(`${files.length} clouds read by Open3D`);
});
