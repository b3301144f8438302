import type { FrameState } from "../core/capture.js";
import { frameFilesResponse, frameResponse } from "../core/frame-response.js";
import { frameFileName } from "../core/manifest.js";
import { availableFormats, manifestOf } from "../core/run-files.js";
import { manifestResponse } from "../core/run-response.js";
import type { RunState } from "../core/run-state.js";
import { ServiceError } from "../core/service-errors.js";
import { StorageError } from "../storage/storage-error.js";
import type { View } from "../storage/view.js";
import { binaryResponse, FRAME_ID, jsonResponse, RUN_ID } from "./declared-parameters.js";
import { entryBody, entryValidators, npyBody, type OpenStoredSlices } from "./entry-body.js";
import { downloadReply, jsonReply, type Reply, storedValidators } from "./reply.js";
import { defineRoute, type Route } from "./route.js";
import { requireRun } from "./run-routes.js";

const BINARY = "application/octet-stream";

export function fileRoutes(view: View, openStoredSlices: OpenStoredSlices): Route[] {
  async function fileReply(runId: string, name: string): Promise<Reply> {
    const run = await requireRun(view, runId);
    const entry = manifestOf(run).find((one) => one.name === name);
    const shown = { field: "name", in: "path", value: name };
    if (entry === undefined) throw new ServiceError("file_not_found", "the run has no file of this name", shown);
    if (entry.deletedAtUs !== null) {
      throw new ServiceError("file_removed", "retention removed the file's bytes", shown);
    }
    const body = await entryBody(run, entry, openStoredSlices);
    return downloadReply(body, BINARY, entry.name, entryValidators(entry));
  }

  async function npyReply(frameId: string): Promise<Reply> {
    const { run, frame } = await requireFrame(frameId);
    const available = availableFormats(run, frame);
    if (!available.includes("npy")) {
      throw new ServiceError("format_not_available", "the frame does not have this format, or not yet", {
        frame_id: frame.id,
        format: "npy",
        available_formats: available,
      });
    }
    const body = await npyBody(run, frame, openStoredSlices);
    const crc32 = frame.batches.at(-1)?.heightCrc32 ?? 0;
    const validators = storedValidators(crc32, body.totalBytes, frame.completedAtUs ?? run.createdAtUs);
    return downloadReply(body, BINARY, frameFileName(frame.id, "npy"), validators);
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
      handle: ({ params }) => lookingAgain(() => fileReply(params.run_id as string, params.name as string)),
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
      handle: ({ params }) => lookingAgain(() => npyReply(params.frame_id as string)),
    }),
  ];
}

/**
 * Retention may remove a file between the look at its run and its opening. The run then says so at a second look; bytes that are missing
 * without that are lost, which is an error.
 */
async function lookingAgain(reply: () => Promise<Reply>): Promise<Reply> {
  try {
    return await reply();
  } catch (error) {
    if (error instanceof StorageError && error.code === "capture_missing") return reply();
    throw error;
  }
}
