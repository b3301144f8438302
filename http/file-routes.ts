import { type FrameState, lineBytes } from "../core/capture.js";
import { frameFilesResponse, frameResponse } from "../core/frame-response.js";
import { frameFileName } from "../core/manifest.js";
import { npyHeader } from "../core/npy-header.js";
import { availableFormats, type ManifestEntry, manifestOf } from "../core/run-files.js";
import { manifestResponse } from "../core/run-response.js";
import type { RunState } from "../core/run-state.js";
import { ServiceError } from "../core/service-errors.js";
import type { CaptureKind } from "../storage/capture-path.js";
import type { Slice, SliceReader } from "../storage/capture-reader.js";
import type { View } from "../storage/view.js";
import { binaryResponse, FRAME_ID, jsonResponse, RUN_ID } from "./declared-parameters.js";
import { downloadReply, jsonReply, type Reply } from "./reply.js";
import { defineRoute, type Route } from "./route.js";
import { requireRun } from "./run-routes.js";
import { storedStream } from "./stored-stream.js";

/** Opens parts of what the store keeps of a run: its captures, or the files that producers put. Rejects when the file is not there. */
export type OpenStoredSlices = (runId: string, kind: CaptureKind, slices: readonly Slice[]) => Promise<SliceReader>;

const BINARY = "application/octet-stream";

export function fileRoutes(view: View, openStoredSlices: OpenStoredSlices): Route[] {
  async function npyReply(run: RunState, frame: FrameState): Promise<Reply> {
    const heightLineBytes = lineBytes(frame.planes, frame.width).height;
    const heightSlices = frame.batches.map(({ offset, lineCount }) => ({
      offset,
      lengthBytes: lineCount * heightLineBytes,
    }));
    const head = npyHeader(frame.planes.height.dtype, frame.lines, frame.width);
    const slices = await openStoredSlices(run.id, "capture", heightSlices);
    const body = storedStream({ slices, head, crc32: frame.batches.at(-1)?.heightCrc32 ?? 0 });
    return downloadReply(body, BINARY, frameFileName(frame.id, "npy"));
  }

  async function entryReply(run: RunState, entry: ManifestEntry): Promise<Reply> {
    const { source } = entry;
    if (source.kind === "frame") return npyReply(run, source.frame);
    const { offset, lengthBytes, crc32 } = source.file;
    const slices = await openStoredSlices(run.id, "report", [{ offset, lengthBytes }]);
    const body = storedStream({ slices, head: NOTHING, crc32 });
    return downloadReply(body, BINARY, entry.name);
  }

  async function requireFrame(id: string): Promise<{ run: RunState; frame: FrameState }> {
    const found = await view.frame(id);
    if (found === undefined) {
      throw new ServiceError("frame_not_found", "no captured frame has this id", {
        field: "frame_id",
        in: "path",
        value: id,
      });
    }
    return found;
  }

  return [
    defineRoute({
      method: "GET",
      path: "/runs/{run_id}/files",
      operationId: "listRunFiles",
      tag: "files",
      summary: "The run's manifest, also of files whose bytes retention removed.",
      pathParameters: { run_id: RUN_ID },
      query: {},
      responses: { 200: jsonResponse("FileMetadataList", "The manifest, oldest entry first.") },
      errors: [],
      scope: "read",
      handle: async ({ params, baseUrl }) =>
        jsonReply(manifestResponse(await requireRun(view, params.run_id as string), baseUrl)),
    }),
    defineRoute({
      method: "GET",
      path: "/runs/{run_id}/files/{name}",
      operationId: "downloadRunFile",
      tag: "files",
      summary: "Downloads a file of the manifest.",
      pathParameters: {
        run_id: RUN_ID,
        name: { description: "Name of a manifest entry.", schema: { type: "string" }, notFound: "file_not_found" },
      },
      query: {},
      responses: { 200: binaryResponse(BINARY, "The file's bytes.") },
      errors: ["file_removed"],
      scope: "read",
      async handle({ params }) {
        const run = await requireRun(view, params.run_id as string);
        const name = params.name as string;
        const entry = manifestOf(run).find((one) => one.name === name);
        const shown = { field: "name", in: "path", value: name };
        if (entry === undefined) throw new ServiceError("file_not_found", "the run has no file of this name", shown);
        if (entry.deletedAtUs !== null) {
          throw new ServiceError("file_removed", "retention removed the file's bytes", shown);
        }
        return entryReply(run, entry);
      },
    }),
    defineRoute({
      method: "GET",
      path: "/sensor/frames/{frame_id}",
      operationId: "getFrame",
      tag: "frames",
      summary: "One captured frame.",
      pathParameters: { frame_id: FRAME_ID },
      query: {},
      responses: { 200: jsonResponse("CapturedFrameResponse", "The frame.") },
      errors: [],
      scope: "read",
      handle: async ({ params }) => jsonReply(frameResponse((await requireFrame(params.frame_id as string)).frame)),
    }),
    defineRoute({
      method: "GET",
      path: "/sensor/frames/{frame_id}/files",
      operationId: "listFrameFiles",
      tag: "frames",
      summary: "The formats that the frame is available in; they appear as processing completes.",
      pathParameters: { frame_id: FRAME_ID },
      query: {},
      responses: { 200: jsonResponse("FrameFileInfo", "The available formats.") },
      errors: [],
      scope: "read",
      async handle({ params, baseUrl }) {
        const { run, frame } = await requireFrame(params.frame_id as string);
        return jsonReply(frameFilesResponse(run, frame, baseUrl));
      },
    }),
    defineRoute({
      method: "GET",
      path: "/sensor/frames/{frame_id}/file.npy",
      operationId: "downloadFrameNpy",
      tag: "frames",
      summary: "The raw height plane as an NPY array of shape (lines, width), values untouched.",
      pathParameters: { frame_id: FRAME_ID },
      query: {},
      responses: { 200: binaryResponse(BINARY, "The array in NPY format 1.0.") },
      errors: ["format_not_available"],
      scope: "read",
      async handle({ params }) {
        const { run, frame } = await requireFrame(params.frame_id as string);
        const available = availableFormats(run, frame);
        if (!available.includes("npy")) {
          throw new ServiceError("format_not_available", "the frame does not have this format, or not yet", {
            frame_id: frame.id,
            format: "npy",
            available_formats: available,
          });
        }
        return npyReply(run, frame);
      },
    }),
  ];
}

const NOTHING = new Uint8Array(0);
