import { oneOf } from "../../core/json/described-schema.js";
import { LIMITS } from "../../core/limits.js";
import { RUN_STATUS_MEANINGS } from "../../core/run/run-state.js";
import { unknownId } from "../../core/service-errors.js";
import type { View } from "../../storage/view/view.js";
import type { RunDocumentKind } from "../../workers/documents/run-documents.js";
import type { LargeDocuments } from "../documents/large-documents.js";
import type { RunDocuments } from "../documents/run-documents.js";
import type { RunPages } from "../documents/run-pages.js";
import type { RunReports } from "../documents/run-reports.js";
import { jsonBytesReply, jsonReply, type Reply } from "../replies/reply.js";
import { defineRoute, type HandlerRequest, type Route } from "../requests/route.js";
import {
  CELL,
  jsonResponse,
  limitParameter,
  OFFSET,
  oneOfClosed,
  PROGRAM_ID,
  QUALITY_STATUS,
  RUN_ID,
  SERIAL_NUMBER,
  UPDATED_SINCE,
} from "./declared-parameters.js";

const TAG = "runs";

/** @throws ServiceError run_not_found */
export async function runAnswer(large: LargeDocuments, kind: RunDocumentKind, request: HandlerRequest): Promise<Reply> {
  const id = request.params.run_id as string;
  return foundDocument(id, await large.json(kind, id, request.baseUrl, request));
}

export function runRoutes(view: View, documents: RunDocuments, large: LargeDocuments, pages: RunPages): Route[] {
  return [
    runListRoute(pages),
    activeRunRoute(view, documents, large),
    runRoute(documents),
    programRunListRoute(view, pages),
    qualityReportRoute(large),
    defectsRoute(large),
  ];
}

/** The parameters of both lists. @param page bounds of `limit` */
function listParameters(page: Parameters<typeof limitParameter>[0]) {
  return {
    quality_status: QUALITY_STATUS,
    serial_number: SERIAL_NUMBER,
    updated_since: UPDATED_SINCE,
    cell: CELL,
    limit: limitParameter(page),
    offset: OFFSET,
  } as const;
}

function runPage(
  pages: RunPages,
  request: HandlerRequest<ReturnType<typeof listParameters>>,
  programId?: string,
  status?: string,
): Reply | Promise<Reply> {
  const { quality_status: qualityStatus, serial_number: serialNumber, updated_since: updatedSinceUs } = request.query;
  const { limit, offset, cell: cells } = request.query;
  const query = { programId, status, qualityStatus, serialNumber, updatedSinceUs, cells, limit, offset };
  return pages.get(query, request.baseUrl, request);
}

function runListRoute(pages: RunPages): Route {
  return defineRoute({
    path: "/runs",
    operationId: "listRuns",
    tag: TAG,
    summary: "Lists runs, newest first.",
    query: {
      program_id: {
        type: "string",
        format: "uuid",
        description: "Only runs of the program with this id, in upper or lower case.",
      },
      status: oneOf(
        RUN_STATUS_MEANINGS,
        "Only runs in this state. Any other value is no error: the list is empty, as no run has it.",
      ),
      ...listParameters(LIMITS.runsPage),
    },
    responses: { 200: jsonResponse("ProgramRunSummaryListResponse", "The page, and the total number of matches.") },
    handle: (request) => runPage(pages, request, request.query.program_id, request.query.status),
  });
}

const ACTIVE_START = Buffer.from('{"active":true,"run":');
const ACTIVE_END = Buffer.from("}");

function activeRunRoute(view: View, documents: RunDocuments, large: LargeDocuments): Route {
  /** The answer for a run's document: the same for all clients until the document changes. */
  const answers = new WeakMap<Reply, Reply>();
  async function activeDocument(id: string, request: HandlerRequest): Promise<Reply | undefined> {
    if (large.has(id)) return large.get("active", id, request.baseUrl, request);
    const document = await documents.get(id, request.baseUrl, request);
    if (document === undefined) return undefined;
    let answer = answers.get(document);
    if (answer === undefined) {
      answer = jsonBytesReply(Buffer.concat([ACTIVE_START, document.body as Uint8Array, ACTIVE_END]), true);
      answers.set(document, answer);
    }
    return answer;
  }
  return defineRoute({
    path: "/runs/active",
    operationId: "getActiveRun",
    tag: TAG,
    summary: "The newest run that is running or finalizing, if any.",
    responses: { 200: jsonResponse("ActiveRunResponse", "Whether a run is active, and the run.") },
    async handle(request) {
      const run = view.activeRun();
      const document = run === undefined ? undefined : await activeDocument(run.id, request);
      return document ?? jsonReply({ active: false, run: null });
    },
  });
}

function runRoute(documents: RunDocuments): Route {
  return defineRoute({
    path: "/runs/{run_id}",
    operationId: "getRun",
    tag: TAG,
    summary: "One run with its steps, event log, files and webhook deliveries.",
    pathParameters: { run_id: RUN_ID },
    responses: { 200: jsonResponse("ProgramRunResponse", "The run.") },
    handle(request) {
      const id = request.params.run_id as string;
      const document = documents.get(id, request.baseUrl, request);
      if (document instanceof Promise) return document.then((made) => foundDocument(id, made));
      return foundDocument(id, document);
    },
  });
}

function programRunListRoute(view: View, pages: RunPages): Route {
  return defineRoute({
    path: "/programs/{program_id}/runs",
    operationId: "listProgramRuns",
    tag: TAG,
    summary: "Lists the runs of one program, newest first. A deleted program's runs stay listed.",
    description: "To choose them by `status` too, use `GET /runs?program_id=<id>&status=<status>`.",
    pathParameters: { program_id: PROGRAM_ID },
    query: listParameters(LIMITS.programRunsPage),
    responses: { 200: jsonResponse("ProgramRunSummaryListResponse", "The page, and the total number of matches.") },
    handle(request) {
      const id = request.params.program_id as string;
      if (!view.cell.programs.everExisted(id)) throw unknownId("program", id);
      return runPage(pages, request, id);
    },
  });
}

const CHECKS = {
  all: "every check.",
  not_passed:
    "those that are `failed`, `not_evaluated` or `error`: a list of runs shows why each did not pass. Then `defects` is left out.",
};
const CHECKS_VALUES = ["all", "not_passed"] as const;

function qualityReportRoute(large: LargeDocuments): Route {
  return defineRoute({
    path: "/runs/{run_id}/quality-report",
    operationId: "getQualityReport",
    tag: TAG,
    summary: "The quality report with every check; lengths are in millimetres. Null until there are checks.",
    pathParameters: { run_id: RUN_ID },
    query: { checks: oneOf(CHECKS, "Which checks the report has. Without it: all.") },
    responses: { 200: jsonResponse("QualityReportResponse", "The quality report, or null.") },
    async handle(request) {
      const checks = oneOfClosed("checks", request.query.checks, CHECKS_VALUES);
      return runAnswer(large, checks === "not_passed" ? "not-passed" : "quality-report", request);
    },
  });
}

function defectsRoute(large: LargeDocuments): Route {
  return defineRoute({
    path: "/runs/{run_id}/defects",
    operationId: "getDefects",
    tag: TAG,
    summary: "The defects of the run. They are informational and never change the quality report.",
    pathParameters: { run_id: RUN_ID },
    responses: { 200: jsonResponse("RunDefectsResponse", "The defects.") },
    handle: (request) => runAnswer(large, "defects", request),
  });
}

export function reportRoute(reports: RunReports): Route {
  return defineRoute({
    path: "/runs/{run_id}/report.html",
    operationId: "getRunReport",
    tag: TAG,
    summary: "A report of the run for people: one HTML page that prints on A4 and needs nothing else.",
    description:
      "The outcome, the part, every check with a bar, defects, the height map and the luminance of up to 12 frames with the defects drawn in, " +
      "up to 12 series, and the list of files. It has no script and loads nothing, so it can be saved or sent. It is made for a run in any state, and " +
      "says what is missing: a run that has not ended, captures that were removed or are damaged. Long texts are cut to 400 characters.",
    pathParameters: { run_id: RUN_ID },
    responses: { 200: { description: "The page.", contentType: "text/html", schema: { type: "string" } } },
    async handle(request) {
      const id = request.params.run_id as string;
      return foundDocument(id, await reports.get(id, request));
    },
  });
}

function foundDocument(id: string, document: Reply | undefined): Reply {
  if (document === undefined) throw unknownId("run", id);
  return document;
}
