import { unknownId } from "../../../core/service-errors.js";
import type { FindingQuery } from "../../../storage/findings/finding-query.js";
import type { View } from "../../../storage/view/view.js";
import { CSV_HEAD } from "../../../workers/artefacts/findings/check-rows.js";
import type { AqdefStart, ChecksFormat } from "../../../workers/artefacts/findings/checks-export.js";
import { type ProgramStatistics, type StatisticsQuestion, tooManyNames } from "../../documents/program-statistics.js";
import { checksReply } from "../../downloads/checks-download.js";
import type { PieceRequest } from "../../downloads/generated-stream.js";
import { ENCODING_HEADER, NAME_HEADER } from "../../openapi/documented-headers.js";
import { accepts } from "../../replies/accepted-coding.js";
import { defineRoute, type HandlerRequest, type Route } from "../../requests/route.js";
import { jsonResponse, PROGRAM_ID, SERIAL_NUMBER } from "../declared-parameters.js";

const TAG = "statistics";

/** Both bounds are rounded up: no run ends between two microseconds. */
const QUERY = {
  completed_since: {
    type: "string",
    format: "date-time",
    isUpperBound: true,
    description: "Only runs whose `completed_at` is this time or later.",
  },
  completed_until: {
    type: "string",
    format: "date-time",
    isUpperBound: true,
    notBefore: "completed_since",
    description: "Only runs whose `completed_at` is before this time. It may not be before `completed_since`.",
  },
  serial_number: SERIAL_NUMBER,
  check: {
    type: "string",
    description: "Only the checks with this name. A name that no check has is no error: there are none then.",
  },
} as const;

export function statisticsRoutes(view: View, statistics: ProgramStatistics): Route[] {
  return [
    defineRoute({
      path: "/programs/{program_id}/statistics",
      operationId: "getProgramStatistics",
      tag: TAG,
      summary: "How a program's checks are doing: yield, capability, histogram and trend of each, and its defects.",
      description:
        "Of the runs that have ended, in the order of their `completed_at`. At a hub these are the runs of all cells. A deleted program " +
        "keeps its statistics. The same store always gives the same answer. It is kept until another run of the program ends.",
      pathParameters: { program_id: PROGRAM_ID },
      query: QUERY,
      responses: { 200: jsonResponse("ProgramStatisticsResponse", "The statistics.") },
      handle: (request) => statistics.get(questionOf(view, request), request),
    }),
    ...(Object.keys(FORMATS) as ChecksFormat[]).map((format) => exportRoute(format, view, statistics)),
  ];
}

const ROWS =
  "One row for each check of the completed runs, in the order of their `completed_at`, at a hub those of all cells: run_id, serial_number, revision, completed_at, " +
  "name, status, value, nominal, delta, threshold, units, message.";

/** The answer is sent while it is made, so it has no Content-Length and no ranges. */
const FORMATS: Readonly<
  Record<ChecksFormat, Record<"operationId" | "contentType" | "summary" | "description" | "response", string>>
> = {
  csv: {
    operationId: "downloadChecksCsv",
    contentType: "text/csv; charset=utf-8",
    summary: "The checks of a program's runs as CSV, one row each.",
    description:
      `${ROWS} The first line names these columns; an empty cell is null. A text that a spreadsheet would take for a formula ` +
      "has a leading `'`.",
    response: "CSV (RFC 4180), with LF.",
  },
  ndjson: {
    operationId: "downloadChecksNdjson",
    contentType: "application/x-ndjson",
    summary: "The checks of a program's runs as JSON, one object a line.",
    description: ROWS,
    response: "Newline-delimited JSON.",
  },
  dfq: {
    operationId: "downloadChecksDfq",
    contentType: "text/plain; charset=utf-8",
    summary: "The measured values of a program's runs in Q-DAS ASCII transfer format (AQDEF).",
    description:
      "One characteristic for each name of a check. Each value has its attribute, its time in UTC and its serial number. Checks without " +
      "a value are left out.",
    response: "AQDEF, in UTF-8, with CR LF.",
  },
};

const HEADERS = { ...NAME_HEADER, ...ENCODING_HEADER };

function exportRoute(format: ChecksFormat, view: View, statistics: ProgramStatistics): Route {
  const { contentType, response, ...described } = FORMATS[format];
  return defineRoute({
    path: `/programs/{program_id}/checks.${format}`,
    ...described,
    tag: TAG,
    pathParameters: { program_id: PROGRAM_ID },
    query: QUERY,
    responses: { 200: { description: response, contentType, schema: { type: "string" }, headers: HEADERS } },
    isMadeWhileSent: true,
    async handle(request) {
      const query = statistics.now(questionOf(view, request));
      const gone = request.gone();
      const { make } = statistics;
      const programName = view.program(query.programId)?.program.document.name ?? "";
      const first = { signal: gone, isContinued: false };
      await statistics.prepare(first);
      const start = format === "dfq" ? await aqdefStart(statistics, query, programName, first) : PLAIN_STARTS[format];
      const isCompressed = accepts(request.header("accept-encoding"), "gzip");
      return checksReply({ make, query, format, contentType, ...start, isCompressed }, gone);
    },
  });
}

const PLAIN_STARTS = {
  csv: { head: Buffer.from(CSV_HEAD), namesJson: "" },
  ndjson: { head: new Uint8Array(0), namesJson: "" },
};

/** @throws ServiceError invalid_parameter, unavailable */
async function aqdefStart(
  statistics: ProgramStatistics,
  query: FindingQuery,
  programName: string,
  request: PieceRequest,
): Promise<AqdefStart> {
  const start = await statistics.make("aqdefStart", { query, programName }, request);
  if (start.head === null) throw tooManyNames();
  return start;
}

/** @throws ServiceError program_not_found */
function questionOf(view: View, { params, query }: HandlerRequest<typeof QUERY>): StatisticsQuestion {
  const programId = params.program_id as string;
  if (!view.cell.programs.everExisted(programId)) throw unknownId("program", programId);
  const { completed_since: sinceUs, completed_until: untilUs, serial_number, check } = query;
  return {
    programId,
    sinceUs: sinceUs ?? null,
    untilUs: untilUs ?? null,
    serialNumber: serial_number ?? null,
    check: check ?? null,
  };
}
