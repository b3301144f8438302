import t from "tap";
import type { FrameState, LineBatch } from "../../../core/capture/capture.js";
import { type MadeFrame, plainHeights } from "../../helpers/captures/made-frames.js";
import { readPalettePng } from "../../helpers/captures/png-reader.js";
import {
  BLIND,
  DARK,
  overProcessedCell,
  PROCESSED_RUN,
  processedCell,
  SURFACE,
  sharedProcessedCell,
} from "../../helpers/captures/processed-cell.js";
import { pythonWith, runPython, skipWithout } from "../../helpers/captures/python-checker.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";

const previewOf = (frame: string): string => `/sensor/frames/${frame}/preview.png`;
const overviewOf = (frame: string, points = ""): string => `/sensor/frames/${frame}/overview.npy${points}`;

/** What an overview is, in the plainest code there is: its array and its headers. */
function plainOverview({ geometry, ...frame }: MadeFrame, stride: number) {
  const { width, lines } = geometry;
  const zs = plainHeights({ geometry, ...frame });
  const expected: number[] = [];
  for (let line = 0; line < lines; line += stride) {
    for (let column = 0; column < width; column += stride) {
      const z = zs[line * width + column] as number;
      expected.push(z === Number.POSITIVE_INFINITY ? Number.NaN : z);
    }
  }
  const headers = {
    "x-stride": String(stride),
    "x-x-pitch-mm": String(geometry.xPitchMm * stride),
    "x-y-pitch-mm": String(geometry.yPitchMm * stride),
    "x-x-origin-mm": String(geometry.xOriginMm),
    "x-y-origin-mm": String(geometry.yOriginMm),
  };
  return { heights: Float32Array.from(expected), headers };
}

overProcessedCell("the preview: kept, and listed", async (t, client, { frames }) => {
  for (const [frameId, { geometry }] of frames) {
    const { status, headers, body } = await client.raw("GET", previewOf(frameId));
    t.equal(status, 200);
    t.equal(headers["content-type"], "image/png");
    t.equal(headers["content-disposition"], `attachment; filename="frame-${frameId}.preview.png"`);
    const { width, height, samples } = readPalettePng(body);
    t.same([width, height], [geometry.width, geometry.lines]);
    const measured = samples.filter((sample) => sample > 0).length;
    t.ok(frameId === BLIND ? measured === 0 : measured > samples.length / 2, `${measured} points`);
    const path = { frame_id: frameId };
    const { available_formats: formats, files } = await client.get("/sensor/frames/{frame_id}/files", { path });
    t.equal(formats.at(-1), "preview.png");
    t.match(files["preview.png"], {
      href: `http://cell:8000${previewOf(frameId)}`,
      content_type: "image/png",
      size_in_bytes: body.length,
    });
    const manifest = await client.get("/runs/{run_id}/files", { path: { run_id: PROCESSED_RUN } });
    t.notOk(manifest.some(({ name }) => name.includes("preview")));
    t.match(headers.etag, /^"[0-9a-f]{8}-[0-9a-f]+"$/);
    t.equal((await client.raw("GET", previewOf(frameId), `If-None-Match: ${headers.etag}\r\n`)).status, 304);
    const part = await client.raw("GET", previewOf(frameId), `Range: bytes=5-40\r\nIf-Range: ${headers.etag}\r\n`);
    t.equal(part.status, 206);
    t.ok(part.body.equals(body.subarray(5, 41)));
  }
});

overProcessedCell("the overview: heights in mm at the stride", async (t, client, { frames }) => {
  // 400 x 420 points: the default takes all, 10,000 every fifth of every fifth line.
  for (const [frameId, query, stride] of [
    [SURFACE, "", 1],
    [SURFACE, "?points=168000", 1],
    [SURFACE, "?points=167999", 2],
    [SURFACE, "?points=10000", 5],
    [DARK, "?points=10000", 1],
    [BLIND, "", 1],
  ] as const) {
    const frame = frames.get(frameId) as MadeFrame;
    const { heights, headers } = plainOverview(frame, stride);
    const answer = await client.raw("GET", overviewOf(frameId, query));
    t.equal(answer.status, 200);
    t.match(answer.headers, { ...headers, "content-type": "application/octet-stream" }, `${frame.name}${query}`);
    const shape = [frame.geometry.lines, frame.geometry.width].map((count) => Math.ceil(count / stride)).join(", ");
    t.match(answer.body.toString("latin1", 10, 128), `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape}), }`);
    const values = new Float32Array(Uint8Array.from(answer.body.subarray(128)).buffer);
    t.ok(values.length === heights.length && values.every((z, at) => Object.is(z, heights[at])), "every height");
  }
});

overProcessedCell("ranges, conditions and HEAD of an overview", async (t, client) => {
  const path = overviewOf(SURFACE);
  const whole = await client.raw("GET", path);
  const { etag } = whole.headers;
  const { length } = whole.body;
  // Pieces begin at every 40,960th height.
  for (const [first, last] of [
    [0, 0],
    [100, 200],
    [127, 128],
    [163_000, 165_000],
    [3, length - 2],
    [length - 1, length + 5],
  ] as const) {
    const part = await client.raw("GET", path, `Range: bytes=${first}-${last}\r\nIf-Range: ${etag}\r\n`);
    t.equal(part.status, 206);
    t.ok(part.body.equals(whole.body.subarray(first, last + 1)), `${first}-${last}`);
    t.equal(part.headers["x-stride"], "1");
  }
  t.equal((await client.raw("GET", path, `Range: bytes=${length}-\r\n`)).status, 416);
  t.equal((await client.raw("GET", path, `If-None-Match: ${etag}\r\n`)).status, 304);
  t.equal((await client.raw("GET", path, 'If-Match: "another"\r\n')).status, 412);
  const head = await rawRequest(client.port, `HEAD ${path} HTTP/1.1\r\nHost: x\r\n\r\n`, "HEAD");
  t.match(head, { status: 200, headers: { "content-length": String(length), "x-stride": "1", etag } });
  const other = (await client.raw("GET", overviewOf(SURFACE, "?points=10000"))).headers.etag;
  t.not(other, etag, "another stride is another file");
});

overProcessedCell("what is refused", async (t, client) => {
  for (const points of ["9999", "4000001", "0", "-1", "1e5", "many", "10000&points=10000"]) {
    const { params } = await client.rawRefusal(overviewOf(SURFACE, `?points=${points}`), 422, "invalid_parameter");
    t.match(params, { field: "points", in: "query" }, points);
  }
  for (const path of [previewOf, overviewOf]) {
    await client.rawRefusal(path(SURFACE.replace(/.$/, "f")), 404, "frame_not_found");
  }
});

t.test("a removed capture has neither; damage is never sent", async (t) => {
  const { cell } = await processedCell();
  const client = new ContractClient(t, await cell.listenFor(t));
  const captures = cell.files.get(`${PROCESSED_RUN}/capture`) as Uint8Array;
  const flip = (at: number): number => (captures[at] = (captures[at] ?? 0) ^ 1);
  const frameOf = (id: string) => cell.state(PROCESSED_RUN).frames.find((one) => one.id === id) as FrameState;
  const { png } = frameOf(SURFACE).artefacts ?? {};
  const kept = png?.kind === "picture" ? png.preview?.offset : undefined;
  const heights = (id: string) => (frameOf(id).batches[1] as LineBatch).offset + 5;
  for (const [path, at] of [
    [previewOf(SURFACE), (kept as number) + 20],
    [overviewOf(SURFACE), heights(SURFACE)],
  ] as const) {
    flip(at);
    const { params } = await client.rawRefusal(path, 500, "internal_error");
    t.match(params, { cause: "capture_damaged" }, path);
    flip(at);
    t.equal((await client.raw("GET", path)).status, 200, "mended");
  }
  // Damaged luminance does not matter for heights.
  const { offset, lengthBytes } = frameOf(SURFACE).batches[1] as LineBatch;
  flip(offset + lengthBytes - 1);
  t.equal((await client.raw("GET", overviewOf(SURFACE))).status, 200);
  t.equal(cell.openFiles, 0);

  const removedUs = Date.UTC(2026, 1, 28) * 1000;
  const ending = { status: "completed" as const, errorMessage: null, notes: [] };
  cell.end(removedUs, PROCESSED_RUN, ending, { capturesRemovedAtUs: removedUs });
  for (const [path, format] of [
    [previewOf(SURFACE), "preview.png"],
    [overviewOf(SURFACE), "overview.npy"],
  ] as const) {
    const { params, retryable } = await client.rawRefusal(path, 404, "format_not_available");
    t.match(params, { frame_id: SURFACE, format, available_formats: { length: 0 } });
    t.equal(retryable, false, "it does not come back");
  }
});

const numpy = pythonWith("numpy");
const NUMPY = `
import json, sys, numpy as np
folder, k, h = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
raw, overview = np.load(folder + "/file.npy"), np.load(folder + "/overview.npy")
z = np.where(np.isin(raw, np.array(h["invalid"], raw.dtype)), np.nan, raw.astype("f8") * h["scale_mm"] + h["offset_mm"])
print(overview.dtype, overview.shape, np.array_equal(z[::k, ::k].astype("f4"), overview, equal_nan=True))
`;

t.test("numpy reads it: file.npy in mm, every k-th", { skip: skipWithout(numpy, "numpy") }, async (t) => {
  const { cell, frames } = await sharedProcessedCell();
  const client = new ContractClient(t, await cell.listen());
  const overview = await client.raw("GET", overviewOf(SURFACE, "?points=50000"));
  const file = await client.raw("GET", `/sensor/frames/${SURFACE}/file.npy`);
  const folder = t.testdir({ "file.npy": file.body, "overview.npy": overview.body });
  const height = JSON.stringify(frames.get(SURFACE)?.planes.height);
  const printed = runPython(numpy as string, NUMPY, folder, overview.headers["x-stride"] as string, height);
  t.equal(printed, "float32 (210, 200) True\n");
});
