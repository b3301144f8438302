import { hash } from "node:crypto";
import t, { type Test } from "tap";
import type { CloudArtefact, CsvArtefact, Extent, FrameState, SeriesState } from "../../../core/capture/capture.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { filterOutliers } from "../../../workers/artefacts/filter/outlier-filter.js";
import { newKernelMemory } from "../../../workers/artefacts/kernel-memory.js";
import { loadFrame, type MadeFrame, plainHeights } from "../../helpers/captures/made-frames.js";
import { readPly } from "../../helpers/captures/ply-reader.js";
import { readGreyPng } from "../../helpers/captures/png-reader.js";
import {
  BLIND,
  DARK,
  overProcessedCell,
  PROCESSED_RUN,
  type ProcessedCell,
  processedCell,
  SERIES_CHANNELS,
  SURFACE,
  sharedProcessedCell,
} from "../../helpers/captures/processed-cell.js";
import { pythonWith, runPython, skipWithout } from "../../helpers/captures/python-checker.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { listOf } from "../../helpers/list-of.js";

const CSV = `/runs/${PROCESSED_RUN}/steps/2/cl_sweep.csv`;
const frameFile = (frame: string, format: string): string => `/sensor/frames/${frame}/file.${format}`;
const byName = (name: string): string => `/runs/${PROCESSED_RUN}/files/${name}`;

/** The vertices of a frame for which `keeps` holds, by the plainest code there is. */
function plainVertices(frame: MadeFrame, keeps: (position: number) => boolean): number[][] {
  const { width, xOriginMm, xPitchMm, yOriginMm, yPitchMm } = frame.geometry;
  const vertices: number[][] = [];
  plainHeights(frame).forEach((z, position) => {
    if (!Number.isFinite(z) || !keeps(position)) return;
    const x = Math.fround(xOriginMm + (position % width) * xPitchMm);
    const y = Math.fround(yOriginMm + Math.floor(position / width) * yPitchMm);
    vertices.push([x, y, z, ...(frame.luminance === null ? [] : [frame.luminance[position] as number])]);
  });
  return vertices;
}

/** The clouds of every frame, by name. */
let expectedClouds: Promise<Map<string, number[][]>> | undefined;

async function plainClouds({ frames }: ProcessedCell): Promise<Map<string, number[][]>> {
  const memory = await newKernelMemory();
  const clouds = new Map<string, number[][]>();
  for (const [frameId, frame] of frames) {
    const { bits } = filterOutliers(memory, await loadFrame(memory, frame));
    const isKept = (position: number): boolean => (((bits[position >> 3] as number) >> (position & 7)) & 1) === 1;
    clouds.set(
      `${frameId} raw.ply`,
      plainVertices(frame, () => true),
    );
    clouds.set(`${frameId} ply`, plainVertices(frame, isKept));
  }
  return clouds;
}

overProcessedCell("the clouds are the points that the plainest code gives, whole", async (t, client, cell) => {
  expectedClouds ??= plainClouds(cell);
  for (const [name, expected] of await expectedClouds) {
    const [frameId, format] = name.split(" ") as [string, string];
    const response = await client.raw("GET", frameFile(frameId, format));
    t.equal(response.status, 200);
    t.equal(response.headers["content-type"], "application/x-ply");
    t.equal(response.headers["content-disposition"], `attachment; filename="frame-${frameId}.${format}"`);
    const { comments, properties, vertices } = readPly(response.body);
    t.match(comments[0], `frame ${frameId}`);
    t.same(properties, ["x", "y", "z", ...(frameId === SURFACE ? ["intensity"] : [])]);
    t.equal(vertices.length, expected.length, name);
    t.ok(
      vertices.every((vertex, at) => vertex.every((value, nth) => value === expected[at]?.[nth])),
      `${name}: every point`,
    );
  }
  t.equal((await expectedClouds).get(`${BLIND} ply`)?.length, 0);
});

overProcessedCell("the pictures are the planes", async (t, client, { frames }) => {
  for (const [frameId, frame] of frames) {
    const png = await client.raw("GET", frameFile(frameId, "png"));
    t.equal(png.headers["content-type"], "image/png");
    const { samples } = readGreyPng(png.body);
    t.ok(Buffer.from(samples.buffer).equals(frame.height), `${frame.name}: raw values, 0 where nothing was measured`);
    if (frame.luminance === null) continue;
    const luminance = readGreyPng((await client.raw("GET", frameFile(frameId, "luminance.png"))).body);
    t.ok(Buffer.from(luminance.samples).equals(frame.luminance), "luminance");
  }
});

overProcessedCell("the CSV is the series", async (t, client, { series, appends }) => {
  const response = await client.raw("GET", CSV);
  t.equal(response.status, 200);
  t.equal(response.headers["content-type"], "text/csv");
  t.equal(response.headers["content-disposition"], 'attachment; filename="step-2-cl_sweep.csv"');
  const lines = response.body.toString().split("\n");
  t.equal(lines[0], "timestamp,channel_1,channel_2,channel_3");
  const [first] = appends;
  const rows = series.length / SERIES_CHANNELS;
  const wrong: string[] = [];
  for (let row = 0; row < rows; row++) {
    const cells = [...series.subarray(row * SERIES_CHANNELS, (row + 1) * SERIES_CHANNELS)];
    const time = formatTimeUs((first?.firstTimestampUs ?? 0) + row * 1000);
    const expected = [time, ...cells.map((value) => (Number.isNaN(value) ? "" : String(value)))].join(",");
    if (lines[row + 1] !== expected) wrong.push(`${row}: ${lines[row + 1]} is not ${expected}`);
  }
  t.same(wrong.slice(0, 3), []);
  t.equal(lines.length, rows + 2, "and a newline at the end");
});

overProcessedCell("the manifest has every file, with its size, and gives the same bytes", async (t, client) => {
  const files = (await client.get("/runs/{run_id}/files", { path: { run_id: PROCESSED_RUN } })) as {
    name: string;
    href: string;
    size_in_bytes: number;
  }[];
  t.equal(files.length, 4 + 5 + 4 + 1, "five formats, four without luminance, and the CSV");
  for (const { name, href, size_in_bytes: size } of files) {
    const response = await client.raw("GET", href.slice("http://cell:8000".length));
    t.equal(response.headers["content-type"], "application/octet-stream");
    t.equal(response.body.length, size, name);
    const [, frameId, format] = /^frame-([^.]+)\.(.+)$/.exec(name) ?? [];
    const own = await client.raw("GET", frameId === undefined ? CSV : frameFile(frameId, format as string));
    t.ok(own.body.equals(response.body), name);
    t.equal(own.headers.etag, response.headers.etag, `${name}: one version`);
    t.match(own.headers.etag, /^"[0-9a-f]{8}-[0-9a-f]+(-2)?"$/, "a strong tag");
  }
  for (const frame of [SURFACE, DARK, BLIND]) {
    const info = (await client.get("/sensor/frames/{frame_id}/files", { path: { frame_id: frame } })) as {
      available_formats: string[];
      files: Record<string, { size_in_bytes: number }>;
    };
    t.equal(info.available_formats.length, frame === SURFACE ? 6 : 5);
    for (const format of info.available_formats.filter((one) => one !== "preview.png")) {
      const head = await rawRequest(
        client.port,
        `HEAD ${frameFile(frame, format)} HTTP/1.1\r\nHost: x\r\n\r\n`,
        "HEAD",
      );
      t.equal(head?.status, 200);
      t.equal(head?.headers["content-length"], String(info.files[format]?.size_in_bytes), `HEAD ${format}`);
    }
  }
});

overProcessedCell("ranges at every boundary, and what their conditions say", async (t, client) => {
  for (const path of [frameFile(SURFACE, "ply"), frameFile(DARK, "raw.ply"), frameFile(SURFACE, "png"), CSV]) {
    const whole = await client.raw("GET", path);
    const { length } = whole.body;
    const text = whole.body.toString("latin1");
    const head = path === CSV ? text.indexOf("\n") + 1 : text.indexOf("end_header\n") + "end_header\n".length;
    // Pieces of the 400 x 420 cloud begin at every 201st line. The slices that are sent begin at every 256 KiB.
    const points = [0, 1, head - 1, head, head + 1, 262_143, 262_144, 262_145, 1_048_576, length >> 1, length - 1];
    const wrong: string[] = [];
    for (const first of points.filter((at) => at < length)) {
      for (const last of [first, first + 1, first + 12, first + 300_000, length - 1, length + 5]) {
        const response = await client.raw("GET", path, `Range: bytes=${first}-${last}\r\n`);
        const end = Math.min(last, length - 1);
        const range = `bytes ${first}-${end}/${length}`;
        const isRight =
          response.status === 206 &&
          response.headers["content-range"] === range &&
          response.body.equals(whole.body.subarray(first, end + 1));
        if (!isRight) wrong.push(`${path} ${first}-${last}: ${response.status} ${response.headers["content-range"]}`);
      }
    }
    t.same(wrong, []);
    t.ok((await client.raw("GET", path, "Range: bytes=-7\r\n")).body.equals(whole.body.subarray(-7)), "the last bytes");
    await client.raw("GET", path, `Range: bytes=${length}-\r\n`).then((response) => {
      t.equal(response.status, 416);
      t.equal(response.headers["content-range"], `bytes */${length}`);
    });
    const { etag, "last-modified": modified } = whole.headers;
    t.equal((await client.raw("GET", path, `If-None-Match: ${etag}\r\n`)).status, 304);
    t.equal((await client.raw("GET", path, `If-Modified-Since: ${modified}\r\n`)).status, 304);
    const first = "Range: bytes=0-9\r\n";
    t.equal((await client.raw("GET", path, `${first}If-Range: ${etag}\r\n`)).status, 206);
    t.equal((await client.raw("GET", path, `${first}If-Range: ${modified}\r\n`)).status, 206);
    t.equal(
      (await client.raw("GET", path, `${first}If-Range: "other"\r\n`)).status,
      200,
      "of another version there is no part",
    );
  }
});

overProcessedCell("what there is not: a format, a step, a series, a frame", async (t, client) => {
  const absent = await client.rawRefusal(frameFile(DARK, "luminance.png"), 404, "format_not_available");
  t.equal(absent.retryable, false, "the frame has no luminance");
  t.strictSame(absent.params, {
    frame_id: DARK,
    format: "luminance.png",
    available_formats: ["npy", "raw.ply", "png", "ply", "preview.png"],
  });
  for (const format of ["stl", "PLY", "ply.gz", ""]) {
    const { params, retryable } = await client.rawRefusal(frameFile(SURFACE, format), 404, "format_not_available");
    t.match(params, {
      format,
      available_formats: listOf("npy", "raw.ply", "png", "luminance.png", "ply", "preview.png"),
    });
    t.equal(retryable, false, "no frame has it");
  }
  const unknown = SURFACE.replace(/.$/, "f");
  for (const format of ["ply", "raw.ply", "png", "luminance.png", "npy", "stl"]) {
    await client.rawRefusal(frameFile(unknown, format), 404, "frame_not_found");
  }
  await client.rawRefusal(`/sensor/frames/${SURFACE}/else`, 404, "route_not_found");
  for (const step of ["0", "4", "-1", "02", "99999999999", "9".repeat(40)]) {
    const sweep = `/runs/${PROCESSED_RUN}/steps/${step}/cl_sweep.csv`;
    const { params } = await client.rawRefusal(sweep, 404, "step_not_found");
    t.match(params, { field: "step_index", in: "path", value: step }, step);
  }
  for (const step of ["1.5", "x", "1e0", "0x1", "+1", "--1", "-", "%201", "1%0A", "%D9%A1", "%zz"]) {
    for (const run of [PROCESSED_RUN, unknown, "no-id"]) {
      const sweep = `/runs/${run}/steps/${step}/cl_sweep.csv`;
      const { params, message } = await client.rawRefusal(sweep, 422, "invalid_parameter");
      t.strictSame(params, { field: "step_index", in: "path", value: step, allowed: "an integer" }, step);
      t.match(message, /step_index must be an integer/);
    }
  }
  const sweep = await client.rawRefusal(`/runs/${PROCESSED_RUN}/steps/1/cl_sweep.csv`, 404, "format_not_available");
  t.strictSame(sweep.params, { run_id: PROCESSED_RUN, step_index: 1, format: "csv", available_formats: [] });
  t.equal(sweep.retryable, true, "the step still takes rows");
  await client.refusal("get", "/runs/{run_id}/steps/{step_index}/cl_sweep.csv", 404, "run_not_found", {
    path: { run_id: unknown, step_index: 2 },
  });
  await client.rawRefusal(byName("step-1-cl_sweep.csv"), 404, "file_not_found");
  await client.rawRefusal(byName(`frame-${DARK}.luminance.png`), 404, "file_not_found");
});

/** Downloads of the frame with luminance, and of the series, in a folder. */
async function downloaded(t: Test, paths: Record<string, string>): Promise<string> {
  const client = new ContractClient(t, await (await sharedProcessedCell()).cell.listen());
  const files = Object.entries(paths).map(
    async ([name, path]) => [name, (await client.raw("GET", path)).body] as const,
  );
  return t.testdir(Object.fromEntries(await Promise.all(files)));
}

const numpy = pythonWith("numpy", "PIL.Image");
t.test("numpy and PIL read the same from what is downloaded", { skip: skipWithout(numpy, "PIL") }, async (t) => {
  const paths = { npy: frameFile(SURFACE, "npy"), png: frameFile(SURFACE, "png"), csv: CSV };
  const folder = await downloaded(t, { ...paths, light: frameFile(SURFACE, "luminance.png") });
  const script = `
import sys, hashlib, numpy, PIL.Image
folder = sys.argv[1]
height = numpy.load(folder + "/npy")
png = numpy.array(PIL.Image.open(folder + "/png"))
light = numpy.array(PIL.Image.open(folder + "/light"))
rows = numpy.genfromtxt(folder + "/csv", delimiter=",", skip_header=1, usecols=(1, 2, 3))
print(height.shape, png.shape == height.shape and bool((png == height).all()), light.shape, hashlib.sha1(light.astype("u1").tobytes()).hexdigest())
print(rows.shape, hashlib.sha1(numpy.nan_to_num(rows.astype("f4"), nan=-1).tobytes()).hexdigest())`;
  const { frames, series } = await sharedProcessedCell();
  const luminance = frames.get(SURFACE)?.luminance as Uint8Array;
  const values = series.map((value) => (Number.isNaN(value) ? -1 : value));
  t.equal(
    runPython(numpy as string, script, folder),
    `(420, 400) True (420, 400) ${hash("sha1", luminance)}\n(10000, 3) ${hash("sha1", new Uint8Array(values.buffer))}\n`,
  );
});

const open3d = pythonWith("open3d", "numpy");
t.test("Open3D reads the clouds, and filters the same points", { skip: skipWithout(open3d, "Open3D") }, async (t) => {
  const paths = { "raw.ply": frameFile(SURFACE, "raw.ply"), "ply.ply": frameFile(SURFACE, "ply") };
  const folder = await downloaded(t, paths);
  const script = `
import sys, numpy, open3d
raw, kept = (open3d.io.read_point_cloud(sys.argv[1] + "/" + name) for name in ("raw.ply", "ply.ply"))
own = raw.remove_statistical_outlier(20, 2.0)[0]
print(len(raw.points) > len(kept.points) > 0, numpy.array_equal(numpy.asarray(own.points), numpy.asarray(kept.points)))`;
  t.equal(runPython(open3d as string, script, folder).trim(), "True True");
});

t.test("nothing is open any more", async (t) => {
  t.equal((await sharedProcessedCell()).cell.openFiles, 0);
});

t.test("what retention has removed: formats and CSV 404, files 410", async (t) => {
  const { cell } = await processedCell();
  const client = new ContractClient(t, await cell.listenFor(t));
  const removedUs = Date.UTC(2026, 1, 28) * 1000;
  const ending = { status: "completed" as const, errorMessage: null, notes: [] };
  cell.end(removedUs, PROCESSED_RUN, ending, { capturesRemovedAtUs: removedUs });
  for (const format of ["ply", "raw.ply", "png", "luminance.png", "npy"]) {
    const { params, retryable } = await client.rawRefusal(frameFile(SURFACE, format), 404, "format_not_available");
    t.match(params, { available_formats: { length: 0 } });
    t.equal(retryable, false, "it does not come back");
    await client.rawRefusal(byName(`frame-${SURFACE}.${format}`), 410, "file_removed");
  }
  const { params, retryable } = await client.rawRefusal(CSV, 404, "format_not_available");
  t.strictSame(params, { run_id: PROCESSED_RUN, step_index: 2, format: "csv", available_formats: [] });
  t.equal(retryable, false);
  const never = `/runs/${PROCESSED_RUN}/steps/1/cl_sweep.csv`;
  t.equal((await client.rawRefusal(never, 404, "step_not_found")).retryable, false, "the run has ended without one");
  await client.rawRefusal(byName("step-2-cl_sweep.csv"), 410, "file_removed");
});

t.test("bytes that are not what was stored are never sent", async (t) => {
  const { cell } = await processedCell();
  const client = new ContractClient(t, await cell.listenFor(t));
  const captures = cell.files.get(`${PROCESSED_RUN}/capture`) as Uint8Array;
  const { frames, series: all } = cell.state(PROCESSED_RUN);
  const [frame, series] = [frames[0] as FrameState, all[0] as SeriesState];
  const made = frame.artefacts as Record<string, CloudArtefact>;
  const csv = series.csv as CsvArtefact;
  const extents: [name: string, extent: Extent, path: string][] = [
    ["the lines", frame.batches[1] as Extent, frameFile(SURFACE, "raw.ply")],
    ["the counts", made["raw.ply"]?.lineCounts as Extent, frameFile(SURFACE, "raw.ply")],
    ["the mask", made.ply?.mask as Extent, frameFile(SURFACE, "ply")],
    ["the series", series.appends[0] as Extent, CSV],
    ["its offsets", csv.offsets, CSV],
  ];
  for (const [name, { offset, lengthBytes }, path] of extents) {
    const at = offset + lengthBytes - 5;
    captures[at] = (captures[at] ?? 0) ^ 1;
    const { params } = await client.rawRefusal(path, 500, "internal_error");
    t.match(params, { cause: "capture_damaged" }, name);
    captures[at] = (captures[at] ?? 0) ^ 1;
    t.equal((await client.raw("GET", path)).status, 200, `${name}: mended`);
    t.equal(cell.openFiles, 0);
  }
});
