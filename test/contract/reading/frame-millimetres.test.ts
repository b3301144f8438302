import t, { type Test } from "tap";
import type { HeightDtype } from "../../../core/capture/capture.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { readPly } from "../../helpers/captures/ply-reader.js";
import { type GreyPicture, readGreyPng } from "../../helpers/captures/png-reader.js";
import { pythonWith, runPython, skipWithout } from "../../helpers/captures/python-checker.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";

const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";
const [WIDTH, LINES] = [40, 30];
const numpy = pythonWith("numpy");

interface Plane {
  values: Uint16Array | Int16Array | Int32Array | Float32Array;
  height: { dtype: HeightDtype; scale_mm: number; offset_mm: number; invalid: number[] };
}

/** What the lines make of a frame. */
type Made = readonly [
  points: number[],
  ofArray: (number | null)[],
  ofPicture: (number | null)[],
  isOverviewSame: boolean,
];

/** A slope with a wave, and holes where nothing was measured. */
function filled<A extends Plane["values"]>(values: A, from: number, step: number, holes: readonly number[]): A {
  for (let at = 0; at < values.length; at++) {
    const isHole = at % 11 === 3;
    values[at] = isHole ? (holes[at % holes.length] as number) : from + step * (at + 200 * Math.sin(at / 9));
  }
  return values;
}

/** One of each dtype, whose numbers are what real heads send: several codes, none, NaN, and one that no f32 is. */
const PLANES: Record<string, Plane> = {
  u16: {
    values: filled(new Uint16Array(WIDTH * LINES), 9000, 7, [0, 65_535]),
    height: { dtype: "u16", scale_mm: 0.0025, offset_mm: -82.5, invalid: [0, 65_535] },
  },
  i16: {
    values: filled(new Int16Array(WIDTH * LINES), -9000, 9, [-32_768]),
    height: { dtype: "i16", scale_mm: 0.001, offset_mm: 3, invalid: [-32_768] },
  },
  i32: {
    values: filled(new Int32Array(WIDTH * LINES), -4_000_000, 3001, [-(2 ** 31), -(2 ** 31) + 1]),
    height: { dtype: "i32", scale_mm: 1e-5, offset_mm: 0, invalid: [-(2 ** 31), -(2 ** 31) + 1] },
  },
  f32: {
    values: filled(new Float32Array(WIDTH * LINES), -3, 0.01, [Number.NaN, -9999.1]),
    height: { dtype: "f32", scale_mm: 25.4, offset_mm: 0.1, invalid: [-9999.1] },
  },
  "f32 without a measurement": {
    values: new Float32Array(WIDTH * LINES).fill(Number.NaN),
    height: { dtype: "f32", scale_mm: 1, offset_mm: 0, invalid: [] },
  },
};

/** The lines that stand in the description of an operation. */
async function documentedLines(client: ContractClient, path: string): Promise<string> {
  const document = JSON.parse((await client.raw("GET", "/openapi.json")).body.toString());
  const lines = /```python\n(.*?)\n```/s.exec(document.paths[path].get.description)?.[1];
  if (lines === undefined) throw new Error(`${path} shows no lines of Python`);
  return lines;
}

/**
 * Runs the lines for each frame. `Image.open` gives what another reader found in the picture, where Pillow is not there. What was not measured is null
 * in the planes; of the points they are left out, in scan order, as f32, as a cloud has them.
 */
const SCRIPT = `
import json, sys, types, numpy as np
base_url, npy_lines, png_lines, overview_lines, frames = *sys.argv[1:5], json.loads(sys.argv[5])
class Picture:
    def __init__(self): self.text = seen["texts"]
    def __array__(self, *_, **__): return np.array(seen["samples"], np.uint16).reshape(seen["height"], seen["width"])
try: import PIL
except ImportError:
    sys.modules["PIL"] = types.ModuleType("PIL"); sys.modules["PIL"].Image = types.SimpleNamespace(open=lambda file: Picture())
plane = lambda: [None if z != z else float(z) for z in z_mm.ravel()]
made = []
for frame_id, seen in frames:
    exec(npy_lines)
    measured, (y, x) = ~np.isnan(z_mm), np.broadcast_arrays(y_mm[:, None], x_mm[None, :])
    points = np.stack([x[measured], y[measured], z_mm[measured]], 1).astype("f4").astype("f8").ravel().tolist()
    of_array, whole = plane(), [z_mm.astype("f4"), x_mm, y_mm]
    exec(overview_lines)
    is_same = all(np.array_equal(one, other, equal_nan=True) for one, other in zip(whole, [z_mm, x_mm, y_mm]))
    exec(png_lines)
    made.append([points, of_array, plane(), is_same])
print(json.dumps(made))
`;

t.test("the lines of the document make millimetres of a frame", { skip: skipWithout(numpy, "numpy") }, async (t) => {
  const service = await ServiceProcess.start();
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "millimetres" });
  t.teardown(async () => {
    producer.destroy();
    await service.dispose();
  });
  const client = new ContractClient(t, service.port);
  await producer.welcomed();
  const steps = [{ type: "wait" }, { type: "capture_frame" }];
  await producer.deliver({ type: "program.put", program: { id: PROGRAM_ID, name: "p", status: "active", steps } });
  const runId = producer.nextRunId();
  await producer.deliver({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  await producer.deliver({ type: "run.start", id: runId });
  await producer.deliver({ type: "step.start", run_id: runId, index: 2 });
  const npyLines = await documentedLines(client, "/sensor/frames/{frame_id}/file.npy");
  t.ok(npyLines.split("\n").length <= 7, "six lines, and one that imports");
  const overviewLines = await documentedLines(client, "/sensor/frames/{frame_id}/overview.npy");
  const pngLines = await documentedLines(client, "/sensor/frames/{frame_id}/file.png");

  const frames: { name: string; frameId: string; picture: GreyPicture }[] = [];
  for (const [name, { values, height }] of Object.entries(PLANES)) {
    const frameId = producer.nextRunId();
    const isFirst = name === "u16";
    const geometry = {
      x_pitch_mm: 0.05,
      y_pitch_mm: 0.1,
      ...(!isFirst && { x_origin_mm: -20.7, y_origin_mm: 1e3 / 3 }),
    };
    await producer.deliver({
      ...{ type: "frame.begin", id: frameId, run_id: runId, step_index: 2, session_id: "s", frame_type: "heightmap" },
      ...{ width: WIDTH, height: LINES, planes: { height }, ...geometry, capture_timestamp: "2026-01-31T12:00:00Z" },
      ...(isFirst && { sensor_id: "head-1" }),
    });
    const lines = { type: "frame.lines", id: frameId, first_line: 0, line_count: LINES };
    await producer.deliver(lines, Buffer.from(values.buffer));
    await producer.deliver({ type: "frame.end", id: frameId });
    const path = { path: { frame_id: frameId } };
    await client.until("/sensor/frames/{frame_id}/files", (files) => files.available_formats.length === 5, path);
    t.match(await client.get("/sensor/frames/{frame_id}", path), {
      ...{ run_id: runId, step_index: 2, sensor_id: isFirst ? "head-1" : null },
      geometry: { x_origin_mm: 0, y_origin_mm: 0, ...geometry, height, luminance: null },
    });
    const picture = readGreyPng((await client.raw("GET", `/sensor/frames/${frameId}/file.png`)).body);
    frames.push({ name, frameId, picture });
  }

  const seen = frames.map(({ frameId, picture }) => [frameId, { ...picture, samples: [...picture.samples] }]);
  const args = [`http://127.0.0.1:${service.port}`, npyLines, pngLines, overviewLines, JSON.stringify(seen)];
  const made = JSON.parse(runPython(numpy as string, SCRIPT, ...args)) as Made[];
  for (const [nth, { name, frameId, picture }] of frames.entries()) {
    const cloud = readPly((await client.raw("GET", `/sensor/frames/${frameId}/file.raw.ply`)).body);
    fits(t, name, cloud.vertices, picture, made[nth] as Made);
  }
});

/** Cloud and picture have the millimetres that the lines made. */
function fits(t: Test, name: string, vertices: readonly number[][], picture: GreyPicture, made: Made): void {
  const [points, ofArray, ofPicture, isOverviewSame] = made;
  t.ok(isOverviewSame, `${name}: the overview of a small frame has every height`);
  t.equal(vertices.length, picture.samples.filter((sample) => sample !== 0).length, `${name}: every point`);
  t.strictSame(points, vertices.flat(), `${name}: the vertices of the cloud`);
  const { z_min_mm: lowest, z_max_mm: highest } = picture.texts;
  t.equal(
    lowest === undefined,
    name === "u16" || vertices.length === 0,
    `${name}: raw samples, or z from the lowest to the highest`,
  );
  // A sample is rounded to the nearest, an f32 z to 24 bits.
  const most = lowest === undefined ? 0 : (Number(highest) - Number(lowest)) / 65_534 / 2 + 1e-4;
  const wrong = ofPicture.filter((z, at) => {
    const other = ofArray[at] as number | null;
    return z === null || other === null ? z !== other : Math.abs(z - other) > most;
  });
  t.same(wrong.slice(0, 3), [], `${name}: the picture says what the array does`);
  t.same([ofPicture.length, ofArray.length], [WIDTH * LINES, WIDTH * LINES]);
}
