import { canFormatCome } from "../../core/capture/artefact.js";
import type { FrameState } from "../../core/capture/capture.js";
import { frameFilesResponse, frameResponse } from "../../core/capture/frame-response.js";
import {
  contentTypeOf,
  type FrameFormat,
  formatPath,
  frameFileName,
  OFFERED_FORMATS,
  type OfferedFormat,
} from "../../core/run/manifest.js";
import { availableFormats, formatBytes, formatCreatedAtUs } from "../../core/run/run-files.js";
import type { RunState } from "../../core/run/run-state.js";
import { ServiceError, unknownId } from "../../core/service-errors.js";
import type { View } from "../../storage/view/view.js";
import type { DownloadEntry } from "../downloads/entry-body.js";
import {
  CLOUD_RESOLUTION,
  NPY_IN_MILLIMETRES,
  PNG_IN_MILLIMETRES,
  PREVIEW_COLOURS,
} from "../openapi/frame-millimetres.js";
import { jsonReply, type Reply } from "../replies/reply.js";
import { defineRoute, type HandlerRequest, type Route } from "../requests/route.js";
import { binaryResponse, FRAME_ID, jsonResponse } from "./declared-parameters.js";
import { type RunDownloads, retriedIfMissing } from "./run-downloads.js";

const TAG = "frames";

interface FormatRoute {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** Description of the 200. */
  readonly response: string;
}

const FORMAT_ROUTES: Readonly<Record<OfferedFormat, FormatRoute>> = {
  npy: {
    operationId: "downloadFrameNpy",
    summary: "The raw height plane as an NPY array of shape (lines, width), with unchanged values.",
    description: NPY_IN_MILLIMETRES,
    response: "The array in NPY format 1.0.",
  },
  ply: {
    operationId: "downloadFramePly",
    summary: "The point cloud without statistical outliers.",
    description: `Of the points of \`file.raw.ply\`, in the same order. ${CLOUD_RESOLUTION}`,
    response: "Binary little-endian PLY: x, y, z in mm, and intensity if the frame has luminance.",
  },
  "raw.ply": {
    operationId: "downloadFrameRawPly",
    summary: "The point cloud of all measured points.",
    description: `In the order of the NPY, row by row, without the invalid points. ${CLOUD_RESOLUTION}`,
    response: "Binary little-endian PLY: x, y, z in mm, and intensity if the frame has luminance.",
  },
  png: {
    operationId: "downloadFramePng",
    summary: "The height map as a picture; its text chunks say how to turn samples into millimetres.",
    description: PNG_IN_MILLIMETRES,
    response: "16-bit greyscale PNG; 0 means no measurement.",
  },
  "luminance.png": {
    operationId: "downloadFrameLuminance",
    summary: "The luminance as a picture.",
    response: "8-bit greyscale PNG.",
  },
  "preview.png": {
    operationId: "downloadFramePreview",
    summary: "The height map as a small picture in false colours.",
    description: PREVIEW_COLOURS,
    response: "8-bit palette PNG; no measurement is transparent.",
  },
};

/** A frame, and the run that it belongs to. */
interface FrameOfRun {
  run: RunState;
  frame: FrameState;
}

/** @throws ServiceError frame_not_found */
export type RequireFrame = (request: HandlerRequest) => Promise<FrameOfRun>;

export function frameFinder(view: View, downloads: RunDownloads): RequireFrame {
  return async (request) => {
    const id = request.params.frame_id as string;
    const runId = view.runOfFrame(id);
    const run = runId === undefined ? undefined : await downloads.run(runId, request);
    const frame = run?.frames.find((one) => one.id === id);
    if (run === undefined || frame === undefined) throw unknownId("frame", id);
    return { run, frame };
  };
}

export function frameRoutes(requireFrame: RequireFrame, downloads: RunDownloads): Route[] {
  return [
    frameRoute(requireFrame),
    frameFilesRoute(requireFrame),
    ...OFFERED_FORMATS.map((format) => formatRoute(format, requireFrame, downloads)),
    unknownFormatRoute(requireFrame),
  ];
}

function frameRoute(requireFrame: RequireFrame): Route {
  return defineRoute({
    path: "/sensor/frames/{frame_id}",
    operationId: "getFrame",
    tag: TAG,
    summary: "One captured frame.",
    pathParameters: { frame_id: FRAME_ID },
    responses: { 200: jsonResponse("CapturedFrameResponse", "The frame.") },
    async handle(request) {
      const { run, frame } = await requireFrame(request);
      return jsonReply(frameResponse(run, frame));
    },
  });
}

function frameFilesRoute(requireFrame: RequireFrame): Route {
  return defineRoute({
    path: "/sensor/frames/{frame_id}/files",
    operationId: "listFrameFiles",
    tag: TAG,
    summary: "The formats in which the frame is available. They appear as processing completes.",
    pathParameters: { frame_id: FRAME_ID },
    responses: { 200: jsonResponse("FrameFileInfo", "The available formats.") },
    async handle(request) {
      const { run, frame } = await requireFrame(request);
      return jsonReply(frameFilesResponse(run, frame, request.baseUrl));
    },
  });
}

function formatRoute(format: OfferedFormat, requireFrame: RequireFrame, downloads: RunDownloads): Route {
  const contentType = contentTypeOf(format);
  const formatReply = async (request: HandlerRequest): Promise<Reply> => {
    const { run, frame } = await requireFrame(request);
    const madeWith = format === "preview.png" ? "png" : format;
    if (!availableFormats(run, frame).includes(format)) throw formatNotAvailable(run, frame, format, madeWith);
    const entry: DownloadEntry = {
      name: frameFileName(frame.id, format),
      sizeBytes: formatBytes(frame, format),
      createdAtUs: formatCreatedAtUs(frame, format),
      source: { kind: "frame", frame, format },
    };
    return downloads.reply(run, entry, contentType);
  };
  const { response, ...described } = FORMAT_ROUTES[format];
  return defineRoute({
    path: `/sensor/frames/{frame_id}/${formatPath(format)}`,
    ...described,
    tag: TAG,
    pathParameters: { frame_id: FRAME_ID },
    responses: { 200: binaryResponse(contentType, response) },
    errors: ["format_not_available"],
    handle: (request) => retriedIfMissing(() => formatReply(request)),
  });
}

/** Answers a request for any other file of a frame: for an unknown format, it names the formats that there are. */
function unknownFormatRoute(requireFrame: RequireFrame): Route {
  return defineRoute({
    path: "/sensor/frames/{frame_id}/{file}",
    operationId: "downloadFrameFile",
    tag: TAG,
    summary: "Names the formats of this frame when an unknown one is requested.",
    pathParameters: {
      frame_id: FRAME_ID,
      file: { description: "Any other name.", schema: { type: "string" }, notFound: "route_not_found" },
    },
    responses: {},
    errors: ["format_not_available"],
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
  });
}

/** @param madeWith the format that it appears with, if that is another one */
export function formatNotAvailable(
  run: RunState,
  frame: FrameState,
  format: string,
  madeWith: FrameFormat | undefined = undefined,
): ServiceError {
  const retryable = canFormatCome(run, frame, madeWith ?? format);
  const isRemoved = run.capturesRemovedAtUs !== null;
  return new ServiceError(
    "format_not_available",
    isRemoved ? "retention removed this capture" : `the frame does not have this format${retryable ? " yet" : ""}`,
    { frame_id: frame.id, format, available_formats: availableFormats(run, frame) },
    { retryable },
  );
}
