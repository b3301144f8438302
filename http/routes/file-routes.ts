import { manifestOf } from "../../core/run/run-files.js";
import { ServiceError } from "../../core/service-errors.js";
import type { View } from "../../storage/view/view.js";
import type { LargeDocuments } from "../documents/large-documents.js";
import type { EntrySources } from "../downloads/entry-body.js";
import type { Reply } from "../replies/reply.js";
import { defineRoute, type HandlerRequest, type Route } from "../requests/route.js";
import { binaryResponse, jsonResponse, RUN_ID } from "./declared-parameters.js";
import { frameFinder, frameRoutes } from "./frame-routes.js";
import { overviewRoute } from "./overview-routes.js";
import { RunDownloads, retriedIfMissing } from "./run-downloads.js";
import { runAnswer } from "./run-routes.js";
import { seriesRoute } from "./series-routes.js";

const BINARY = "application/octet-stream";

/** The routes of everything that a run has as bytes: the files of its manifest, its frames and its series. */
export function fileRoutes(view: View, large: LargeDocuments, sources: EntrySources): Route[] {
  const downloads = new RunDownloads(large, sources);
  const requireFrame = frameFinder(view, downloads);
  return [
    manifestRoute(large),
    fileRoute(downloads),
    ...frameRoutes(requireFrame, downloads),
    overviewRoute(requireFrame, downloads),
    seriesRoute(downloads),
  ];
}

function manifestRoute(large: LargeDocuments): Route {
  return defineRoute({
    path: "/runs/{run_id}/files",
    operationId: "listRunFiles",
    tag: "files",
    summary: "The run's manifest, including files whose bytes retention removed.",
    pathParameters: { run_id: RUN_ID },
    responses: { 200: jsonResponse("FileMetadataList", "The manifest, oldest entry first.") },
    handle: (request) => runAnswer(large, "files", request),
  });
}

function fileRoute(downloads: RunDownloads): Route {
  return defineRoute({
    path: "/runs/{run_id}/files/{name}",
    operationId: "downloadRunFile",
    tag: "files",
    summary: "Downloads a file of the manifest.",
    pathParameters: {
      run_id: RUN_ID,
      name: { description: "Name of a manifest entry.", schema: { type: "string" }, notFound: "file_not_found" },
    },
    responses: { 200: binaryResponse(BINARY, "The file's bytes.") },
    errors: ["file_removed"],
    handle: (request) => retriedIfMissing(() => fileReply(downloads, request)),
  });
}

async function fileReply(downloads: RunDownloads, request: HandlerRequest): Promise<Reply> {
  const { run_id: runId, name } = request.params as { run_id: string; name: string };
  const run = await downloads.requireRun(runId, request);
  const entry = manifestOf(run).find((one) => one.name === name);
  const shown = { field: "name", in: "path", value: name };
  if (entry === undefined) throw new ServiceError("file_not_found", "the run has no file of this name", shown);
  if (entry.deletedAtUs !== null) {
    throw new ServiceError("file_removed", "retention removed the file's bytes", shown);
  }
  return downloads.reply(run, entry, BINARY);
}
