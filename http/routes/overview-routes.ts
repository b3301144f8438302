import type { FrameState } from "../../core/capture/capture.js";
import { npyHeader } from "../../core/capture/npy-header.js";
import { LIMITS } from "../../core/limits.js";
import { availableFormats, formatCreatedAtUs } from "../../core/run/run-files.js";
import { overviewStride } from "../../workers/artefacts/frame/height-overview.js";
import type { Headers } from "../openapi/documented-headers.js";
import { OVERVIEW_IN_MILLIMETRES } from "../openapi/frame-millimetres.js";
import type { HeaderLines, Reply } from "../replies/reply.js";
import { defineRoute, type HandlerRequest, type Route } from "../requests/route.js";
import { binaryResponse, FRAME_ID } from "./declared-parameters.js";
import { formatNotAvailable, type RequireFrame } from "./frame-routes.js";
import { type RunDownloads, retriedIfMissing } from "./run-downloads.js";

const OVERVIEW_CONTENT_TYPE = "application/octet-stream";

export function overviewRoute(requireFrame: RequireFrame, downloads: RunDownloads): Route {
  const query = {
    points: {
      type: "integer",
      ...LIMITS.overviewPoints,
      description: "Maximum number of points in the answer. The stride is the smallest that keeps to it.",
    },
  } as const;
  const reply = async (request: HandlerRequest<typeof query>): Promise<Reply> => {
    const { run, frame } = await requireFrame(request);
    if (!availableFormats(run, frame).includes("npy")) throw formatNotAvailable(run, frame, "overview.npy", "npy");
    const stride = overviewStride(frame, request.query.points);
    const [width, lines] = [Math.ceil(frame.width / stride), Math.ceil(frame.lines / stride)];
    const entry = {
      name: `frame-${frame.id}.overview.npy`,
      sizeBytes: npyHeader("f32", lines, width).length + 4 * width * lines,
      createdAtUs: formatCreatedAtUs(frame, "npy"),
      source: { kind: "overview", frame, stride },
      headers: overviewHeaders(frame, stride),
    } as const;
    return downloads.reply(run, entry, OVERVIEW_CONTENT_TYPE);
  };
  return defineRoute({
    path: "/sensor/frames/{frame_id}/overview.npy",
    operationId: "downloadFrameOverview",
    tag: "frames",
    summary: "The heights in millimetres, thinned out: an NPY array of float32, NaN where nothing was measured.",
    description: OVERVIEW_IN_MILLIMETRES,
    pathParameters: { frame_id: FRAME_ID },
    query,
    responses: {
      200: binaryResponse(
        OVERVIEW_CONTENT_TYPE,
        "NPY format 1.0, float32 in mm, shape (lines, columns).",
        OVERVIEW_HEADERS,
      ),
    },
    errors: ["format_not_available"],
    handle: (request) => retriedIfMissing(() => reply(request)),
  });
}

function overviewHeaders({ xPitchMm, yPitchMm, xOriginMm, yOriginMm }: FrameState, stride: number): HeaderLines {
  return [
    ["X-Stride", String(stride)],
    ["X-X-Pitch-Mm", String(xPitchMm * stride)],
    ["X-Y-Pitch-Mm", String(yPitchMm * stride)],
    ["X-X-Origin-Mm", String(xOriginMm)],
    ["X-Y-Origin-Mm", String(yOriginMm)],
  ];
}

const millimetres = (description: string): Headers[string] => ({
  description,
  required: true,
  schema: { type: "number" },
});

const OVERVIEW_HEADERS: Headers = {
  "X-Stride": {
    description: "k: the array has every k-th column of every k-th line of the frame, beginning with the first.",
    required: true,
    schema: { type: "integer", minimum: 1 },
  },
  "X-X-Pitch-Mm": millimetres(
    "Millimetres from one column of the array to the next: k times the frame's `x_pitch_mm`.",
  ),
  "X-Y-Pitch-Mm": millimetres("Millimetres from one line of the array to the next: k times the frame's `y_pitch_mm`."),
  "X-X-Origin-Mm": millimetres("x of the first column in mm."),
  "X-Y-Origin-Mm": millimetres("y of the first line in mm."),
};
