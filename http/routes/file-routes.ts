import { canCsvCome, canFormatCome, csvOf } from "../../core/capture/artefact.js";
import type { FrameState, SeriesState } from "../../core/capture/capture.js";
import { frameFilesResponse, frameResponse } from "../../core/capture/frame-response.js";
import {
  FORMAT_TYPES,
  FRAME_FORMATS,
  type FrameFormat,
  frameFileName,
  SWEEP_TYPE,
  sweepFileName,
} from "../../core/run/manifest.js";
import { availableFormats, formatBytes, formatCreatedAtUs, manifestOf } from "../../core/run/run-files.js";
import type { RunState } from "../../core/run/run-state.js";
import { ServiceError } from "../../core/service-errors.js";
import { StorageError } from "../../storage/storage-error.js";
import type { View } from "../../storage/view/view.js";
import type { LargeDocuments } from "../documents/large-documents.js";
import { type DownloadEntry, type EntrySources, entryBody, entryValidators } from "../downloads/entry-body.js";
import { CLOUD_RESOLUTION, NPY_IN_MILLIMETRES, PNG_IN_MILLIMETRES } from "../openapi/frame-millimetres.js";
import { downloadReply, jsonReply, type Reply } from "../replies/reply.js";
import { defineRoute, type HandlerRequest, type Route } from "../requests/route.js";
import { binaryResponse, FRAME_ID, jsonResponse, RUN_ID, STEP_INDEX } from "./declared-parameters.js";
import { runAnswer, runNotFound } from "./run-routes.js";

const BINARY = "application/octet-stream";

/** What each format's route is called, and what it gives. */
const FORMAT_ROUTES: Record<
  FrameFormat,
  { operationId: string; summary: string; description?: string; response: string }
> = {
  npy: {
    operationId: "downloadFrameNpy",
    summary: "The raw height plane as an NPY array of shape (lines, width), values untouched.",
    description: NPY_IN_MILLIMETRES,
    response: "The array in NPY format 1.0.",
  },
  ply: {
    operationId: "downloadFramePly",
    summary: "The point cloud without statistical outliers.",
    description: CLOUD_RESOLUTION,
    response: "Binary little-endian PLY: x, y, z in mm, and intensity where there is luminance.",
  },
  "raw.ply": {
    operationId: "downloadFrameRawPly",
    summary: "The point cloud of every point that was measured.",
    description: CLOUD_RESOLUTION,
    response: "Binary little-endian PLY: x, y, z in mm, and intensity where there is luminance.",
  },
  png: {
    operationId: "downloadFramePng",
    summary: "The height map as a picture; its text chunks say how samples become millimetres.",
    description: PNG_IN_MILLIMETRES,
    response: "16-bit greyscale PNG; 0 is no measurement.",
  },
  "luminance.png": {
    operationId: "downloadFrameLuminance",
    summary: "The luminance as a picture.",
    response: "8-bit greyscale PNG.",
  },
};

export function fileRoutes(view: View, large: LargeDocuments, sources: EntrySources): Route[] {
  /** What serves its files. @throws ServiceError run_not_found */
  async function requireRun(id: string, request: HandlerRequest): Promise<RunState> {
    const run = await large.run(id, request);
    if (run === undefined) throw runNotFound(id);
    return run;
  }

  async function fileReply(request: HandlerRequest): Promise<Reply> {
    const { run_id: runId, name } = request.params as { run_id: string; name: string };
    const run = await requireRun(runId, request);
    const entry = manifestOf(run).find((one) => one.name === name);
    const shown = { field: "name", in: "path", value: name };
    if (entry === undefined) throw new ServiceError("file_not_found", "the run has no file of this name", shown);
    if (entry.deletedAtUs !== null) {
      throw new ServiceError("file_removed", "retention removed the file's bytes", shown);
    }
    return entryReply(run, entry, BINARY);
  }

  async function formatReply(request: HandlerRequest, format: FrameFormat): Promise<Reply> {
    const { run, frame } = await requireFrame(request);
    if (!availableFormats(run, frame).includes(format)) throw formatNotAvailable(run, frame, format);
    const entry: DownloadEntry = {
      name: frameFileName(frame.id, format),
      sizeBytes: formatBytes(frame, format),
      createdAtUs: formatCreatedAtUs(frame, format),
      source: { kind: "frame", frame, format },
    };
    return entryReply(run, entry, FORMAT_TYPES[format].contentType);
  }

  async function sweepReply(request: HandlerRequest): Promise<Reply> {
    const { run_id: runId, step_index: step } = request.params as { run_id: string; step_index: string };
    const run = await requireRun(runId, request);
    const { index, series } = sweepOf(run, step);
    const csv = series === undefined || run.capturesRemovedAtUs !== null ? undefined : csvOf(series);
    if (series === undefined || csv === undefined) {
      const retryable = canCsvCome(run, index);
      throw new ServiceError(
        "format_not_available",
        retryable ? "the step does not have this format yet" : "the step does not have this format",
        { run_id: run.id, step_index: index, format: "csv", available_formats: [] },
        { retryable },
      );
    }
    const entry: DownloadEntry = {
      name: sweepFileName(series.stepIndex),
      sizeBytes: csv.totalBytes,
      createdAtUs: csv.atUs,
      source: { kind: "series", series },
    };
    return entryReply(run, entry, SWEEP_TYPE.contentType);
  }

  async function entryReply(run: RunState, entry: DownloadEntry, contentType: string): Promise<Reply> {
    return downloadReply(await entryBody(run, entry, sources), contentType, entry.name, entryValidators(entry));
  }

  async function requireFrame(request: HandlerRequest): Promise<{ run: RunState; frame: FrameState }> {
    const id = request.params.frame_id as string;
    const runId = view.runOfFrame(id);
    const run = runId === undefined ? undefined : await large.run(runId, request);
    const frame = run?.frames.find((one) => one.id === id);
    if (run === undefined || frame === undefined) {
      throw new ServiceError("frame_not_found", "no captured frame has this id", {
        field: "frame_id",
        in: "path",
        value: id,
      });
    }
    return { run, frame };
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
      handle: (request) => runAnswer(large, "files", request),
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
      handle: (request) => lookingAgain(() => fileReply(request)),
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
      async handle(request) {
        const { run, frame } = await requireFrame(request);
        return jsonReply(frameResponse(run, frame));
      },
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
      async handle(request) {
        const { run, frame } = await requireFrame(request);
        return jsonReply(frameFilesResponse(run, frame, request.baseUrl));
      },
    }),
    ...FRAME_FORMATS.map((format) => {
      const { response, ...described } = FORMAT_ROUTES[format];
      return defineRoute({
        method: "GET",
        path: `/sensor/frames/{frame_id}/file.${format}`,
        ...described,
        tag: "frames",
        pathParameters: { frame_id: FRAME_ID },
        query: {},
        responses: { 200: binaryResponse(FORMAT_TYPES[format].contentType, response) },
        errors: ["format_not_available"],
        scope: "read",
        handle: (request) => lookingAgain(() => formatReply(request, format)),
      });
    }),
    defineRoute({
      method: "GET",
      path: "/sensor/frames/{frame_id}/{file}",
      operationId: "downloadFrameFile",
      tag: "frames",
      summary: "Tells of a format that no frame has which ones this frame has.",
      pathParameters: {
        frame_id: FRAME_ID,
        file: { description: "Anything else.", schema: { type: "string" }, notFound: "route_not_found" },
      },
      query: {},
      responses: {},
      errors: ["format_not_available"],
      scope: "read",
      isUndocumented: true,
      async handle(request) {
        const { frame_id: frameId, file } = request.params as { frame_id: string; file: string };
        if (!file.startsWith("file.")) {
          const path = `/sensor/frames/${frameId}/${file}`.slice(0, 2048);
          throw new ServiceError("route_not_found", "the interface has no such path", { path });
        }
        const { run, frame } = await requireFrame(request);
        throw formatNotAvailable(run, frame, file.slice("file.".length));
      },
    }),
    defineRoute({
      method: "GET",
      path: "/runs/{run_id}/steps/{step_index}/cl_sweep.csv",
      operationId: "downloadSweep",
      tag: "files",
      summary: "The step's measurement series, with a column for each channel; an invalid value is an empty cell.",
      pathParameters: { run_id: RUN_ID, step_index: STEP_INDEX },
      query: {},
      responses: { 200: binaryResponse(SWEEP_TYPE.contentType, "Columns timestamp, channel_1, channel_2 and so on.") },
      errors: ["format_not_available"],
      scope: "read",
      handle: (request) => lookingAgain(() => sweepReply(request)),
    }),
  ];
}

function formatNotAvailable(run: RunState, frame: FrameState, format: string): ServiceError {
  const retryable = canFormatCome(run, frame, format);
  return new ServiceError(
    "format_not_available",
    retryable ? "the frame does not have this format yet" : "the frame does not have this format",
    { frame_id: frame.id, format, available_formats: availableFormats(run, frame) },
    { retryable },
  );
}

/** The series of a step; undefined while it may still come. @param text an integer. @throws ServiceError step_not_found */
function sweepOf(run: RunState, text: string): { index: number; series: SeriesState | undefined } {
  const shown = { field: "step_index", in: "path", value: text };
  const index = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0;
  if (run.steps[index - 1] === undefined) throw new ServiceError("step_not_found", "the run has no such step", shown);
  const series = run.series.find(({ stepIndex }) => stepIndex === index);
  if (series === undefined && !canCsvCome(run, index)) {
    throw new ServiceError("step_not_found", "the step has no measurement series", shown);
  }
  return { index, series };
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
