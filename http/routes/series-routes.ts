import { canCsvCome, csvOf } from "../../core/capture/artefact.js";
import type { SeriesState } from "../../core/capture/capture.js";
import { SWEEP_TYPE, sweepFileName } from "../../core/run/manifest.js";
import type { RunState } from "../../core/run/run-state.js";
import { ServiceError } from "../../core/service-errors.js";
import type { DownloadEntry } from "../downloads/entry-body.js";
import type { Reply } from "../replies/reply.js";
import { defineRoute, type HandlerRequest, type Route } from "../requests/route.js";
import { binaryResponse, RUN_ID, STEP_INDEX } from "./declared-parameters.js";
import { type RunDownloads, retriedIfMissing } from "./run-downloads.js";

/** The measurement series of a step, as CSV. */
export function seriesRoute(downloads: RunDownloads): Route {
  return defineRoute({
    path: "/runs/{run_id}/steps/{step_index}/cl_sweep.csv",
    operationId: "downloadSweep",
    tag: "files",
    summary:
      "The step's measurement series as CSV, with one column for each channel. An invalid value is an empty cell.",
    pathParameters: { run_id: RUN_ID, step_index: STEP_INDEX },
    responses: {
      200: binaryResponse(SWEEP_TYPE.contentType, "CSV with the columns timestamp, channel_1, channel_2 and so on."),
    },
    errors: ["format_not_available"],
    handle: (request) => retriedIfMissing(() => csvReply(downloads, request)),
  });
}

async function csvReply(downloads: RunDownloads, request: HandlerRequest): Promise<Reply> {
  const { run_id: runId, step_index: step } = request.params as { run_id: string; step_index: string };
  const run = await downloads.requireRun(runId, request);
  const { index, series } = seriesOfStep(run, step);
  const csv = series === undefined || run.capturesRemovedAtUs !== null ? undefined : csvOf(series);
  if (series === undefined || csv === undefined) {
    const retryable = canCsvCome(run, index);
    throw new ServiceError(
      "format_not_available",
      run.capturesRemovedAtUs !== null
        ? "retention removed this series"
        : `the step does not have this format${retryable ? " yet" : ""}`,
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
  return downloads.reply(run, entry, SWEEP_TYPE.contentType);
}

/** The series of a step; undefined while it may still come. @param text the step's number @throws ServiceError step_not_found */
function seriesOfStep(run: RunState, text: string): { index: number; series: SeriesState | undefined } {
  const shown = { field: "step_index", in: "path", value: text };
  const index = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0;
  if (run.steps[index - 1] === undefined) throw new ServiceError("step_not_found", "the run has no such step", shown);
  const series = run.series.find(({ stepIndex }) => stepIndex === index);
  if (series === undefined && !canCsvCome(run, index)) {
    throw new ServiceError("step_not_found", "the step has no measurement series", shown);
  }
  return { index, series };
}
