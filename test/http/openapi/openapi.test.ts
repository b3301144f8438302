import { Ajv2020 } from "ajv/dist/2020.js";
import t from "tap";
import { NO_REPORT, REPORT_STATUSES } from "../../../core/run/quality.js";
import { RUN_STATUSES } from "../../../core/run/run-state.js";
import { ERROR_CATALOGUE } from "../../../core/service-errors.js";
import { EVENT_NAMES } from "../../../core/webhook/webhook.js";
import { FIXTURE_VERSION, RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { rawRequest } from "../../helpers/http/raw-http.js";

interface Parameter {
  name: string;
  in: string;
  required: boolean;
  schema: Record<string, unknown>;
}
interface Operation {
  operationId: string;
  parameters: Parameter[];
  responses: Record<string, { headers: object; content?: Record<string, { schema: Record<string, unknown> }> }>;
}
interface Document {
  openapi: string;
  info: { version: string };
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, unknown>;
  components: { schemas: Record<string, Record<string, unknown>> };
}

/** The endpoints of the interface that this release serves, by hand. */
const PATHS: Record<string, string> = {
  "/": "200 304 400 411 412 413 421 500 503",
  "/runs": "200 304 400 401 411 412 413 421 422 500 503",
  "/runs/changes": "200 400 401 403 411 413 421 422 500 503",
  "/runs/{run_id}/live": "101 400 401 403 404 411 413 421 426 500 503",
  "/runs/active": "200 304 400 401 411 412 413 421 500 503",
  "/runs/{run_id}": "200 304 400 401 404 411 412 413 421 500 503",
  "/programs/{program_id}/runs": "200 304 400 401 404 411 412 413 421 422 500 503",
  "/programs": "200 304 400 401 411 412 413 421 422 500 503",
  "/programs/{program_id}": "200 304 400 401 404 411 412 413 421 500 503",
  "/programs/{program_id}/statistics": "200 304 400 401 404 411 412 413 421 422 500 503",
  "/programs/{program_id}/checks.csv": "200 400 401 404 411 413 421 422 500 503",
  "/programs/{program_id}/checks.ndjson": "200 400 401 404 411 413 421 422 500 503",
  "/programs/{program_id}/checks.dfq": "200 400 401 404 411 413 421 422 500 503",
  "/runs/{run_id}/quality-report": "200 304 400 401 404 411 412 413 421 422 500 503",
  "/runs/{run_id}/report.html": "200 304 400 401 404 411 412 413 421 500 503",
  "/runs/{run_id}/defects": "200 304 400 401 404 411 412 413 421 500 503",
  "/runs/{run_id}/files": "200 304 400 401 404 411 412 413 421 500 503",
  "/runs/{run_id}/files/{name}": "200 206 304 400 401 404 410 411 412 413 416 421 500 503",
  "/sensor/frames/{frame_id}": "200 304 400 401 404 411 412 413 421 500 503",
  "/sensor/frames/{frame_id}/files": "200 304 400 401 404 411 412 413 421 500 503",
  "/sensor/frames/{frame_id}/file.npy": "200 206 304 400 401 404 411 412 413 416 421 500 503",
  "/sensor/frames/{frame_id}/file.ply": "200 206 304 400 401 404 411 412 413 416 421 500 503",
  "/sensor/frames/{frame_id}/file.raw.ply": "200 206 304 400 401 404 411 412 413 416 421 500 503",
  "/sensor/frames/{frame_id}/file.png": "200 206 304 400 401 404 411 412 413 416 421 500 503",
  "/sensor/frames/{frame_id}/file.luminance.png": "200 206 304 400 401 404 411 412 413 416 421 500 503",
  "/sensor/frames/{frame_id}/preview.png": "200 206 304 400 401 404 411 412 413 416 421 500 503",
  "/sensor/frames/{frame_id}/overview.npy": "200 206 304 400 401 404 411 412 413 416 421 422 500 503",
  "/runs/{run_id}/steps/{step_index}/cl_sweep.csv": "200 206 304 400 401 404 411 412 413 416 421 422 500 503",
  "/webhooks": "200 304 400 401 411 412 413 421 500 503",
  "POST /webhooks": "201 400 401 403 409 411 413 415 421 422 500 503",
  "/webhooks/{webhook_id}": "200 304 400 401 404 411 412 413 421 500 503",
  "PATCH /webhooks/{webhook_id}": "200 400 401 403 404 409 411 412 413 415 421 422 500 503",
  "DELETE /webhooks/{webhook_id}": "204 400 401 403 404 409 411 412 413 421 500 503",
  "POST /webhooks/{webhook_id}/test": "200 400 401 403 404 409 411 413 421 500 503",
  "POST /webhooks/{webhook_id}/rotate-secret": "200 400 401 403 404 409 411 413 415 421 422 500 503",
  "/webhooks/signing-key": "200 304 400 401 409 411 412 413 421 500 503",
  "POST /webhooks/{webhook_id}/resend": "202 400 401 403 404 409 411 413 415 421 422 500 503",
  "/webhooks/{webhook_id}/resends/{resend_id}": "200 304 400 401 404 409 411 412 413 421 500 503",
  "DELETE /webhooks/{webhook_id}/resends/{resend_id}": "204 400 401 403 404 409 411 413 421 500 503",
  "/webhooks/{webhook_id}/deliveries": "200 304 400 401 404 411 412 413 421 422 500 503",
  "/webhook-deliveries/{delivery_id}": "200 304 400 401 404 411 412 413 421 500 503",
  "POST /webhook-deliveries/{delivery_id}/retry": "200 400 401 403 404 409 411 413 421 500 503",
  "/health": "200 304 400 401 411 412 413 421 500 503",
  "/system/version": "200 304 400 401 411 412 413 421 500 503",
  "/openapi.json": "200 304 400 401 411 412 413 421 500 503",
  "/metrics": "200 304 400 401 411 412 413 421 500 503",
  "/docs": "200 304 400 401 411 412 413 421 500 503",
  "/livez": "200 304 400 411 412 413 421 500 503",
};

/** What their answers of success are, by hand: what they hold is held against these. */
const ANSWERS: Record<string, string> = {
  "/runs": "ProgramRunSummaryListResponse",
  "/runs/active": "ActiveRunResponse",
  "/runs/{run_id}": "ProgramRunResponse",
  "/programs/{program_id}/runs": "ProgramRunSummaryListResponse",
  "/programs": "ProgramListResponse",
  "/programs/{program_id}": "ProgramResponse",
  "/programs/{program_id}/statistics": "ProgramStatisticsResponse",
  "/runs/{run_id}/quality-report": "QualityReportResponse",
  "/runs/{run_id}/defects": "RunDefectsResponse",
  "/runs/{run_id}/files": "FileMetadataList",
  "/sensor/frames/{frame_id}": "CapturedFrameResponse",
  "/sensor/frames/{frame_id}/files": "FrameFileInfo",
  "/webhooks": "WebhookResponseList",
  "POST /webhooks": "WebhookResponse",
  "/webhooks/{webhook_id}": "WebhookResponse",
  "PATCH /webhooks/{webhook_id}": "WebhookResponse",
  "POST /webhooks/{webhook_id}/test": "TestWebhookResponse",
  "POST /webhooks/{webhook_id}/rotate-secret": "WebhookResponse",
  "/webhooks/signing-key": "SigningKeyResponse",
  "POST /webhooks/{webhook_id}/resend": "ResendResponse",
  "/webhooks/{webhook_id}/resends/{resend_id}": "ResendStateResponse",
  "/webhooks/{webhook_id}/deliveries": "WebhookDeliveryResponseList",
  "/webhook-deliveries/{delivery_id}": "WebhookDeliveryDetailResponse",
  "POST /webhook-deliveries/{delivery_id}/retry": "WebhookDeliveryDetailResponse",
  "/health": "SystemStateResponse",
  "/system/version": "VersionResponse",
  "/livez": "LivenessResponse",
  "/": "RootResponse",
};

const IN_QUERY = { where: "query", required: false };
const RUN_PARAMETERS = [
  { name: "program_id", ...IN_QUERY, type: "string", format: "uuid" },
  { name: "status", ...IN_QUERY, type: "string", enum: RUN_STATUSES },
  { name: "quality_status", ...IN_QUERY, type: "string", enum: [...REPORT_STATUSES, NO_REPORT] },
  { name: "serial_number", ...IN_QUERY, type: "string" },
  { name: "updated_since", ...IN_QUERY, type: "string", format: "date-time" },
  { name: "cell", ...IN_QUERY, type: "array", items: { type: "string" } },
  { name: "limit", ...IN_QUERY, type: "integer", default: 50, minimum: 1, maximum: 1000 },
  { name: "offset", ...IN_QUERY, type: "integer", minimum: 0, maximum: 2 ** 53 - 1, default: 0 },
];

t.test("the served document describes every route", async (t) => {
  const cell = new RecordedCell();
  const port = await cell.listenFor(t);
  const response = await rawRequest(port, "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n");
  t.equal(response?.headers["content-type"], "application/json");
  const document = response?.json() as Document;
  t.match(document, { openapi: "3.1.0", info: { version: FIXTURE_VERSION } });
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      return [method === "get" ? path : `${method.toUpperCase()} ${path}`, operation] as const;
    }),
  );
  t.strictSame(operations.map(([name]) => name).sort(), Object.keys(PATHS).sort());

  const ids = new Set<string>();
  for (const [path, operation] of operations) {
    ids.add(operation.operationId);
    t.equal(Object.keys(operation.responses).sort().join(" "), PATHS[path], `${path}: statuses`);
    const inPath = operation.parameters.filter((parameter) => parameter.in === "path");
    t.strictSame(
      inPath.map(({ name, required }) => [name, required]),
      [...path.matchAll(/\{(\w+)\}/g)].map((match) => [match[1], true]),
      `${path}: path parameters`,
    );
    for (const { headers } of Object.values(operation.responses)) t.hasProp(headers, "X-Trace-ID");
    const { 200: ok, 201: created, 202: begun } = operation.responses;
    const json = (ok ?? created ?? begun)?.content?.["application/json"];
    const schema = ANSWERS[path] === undefined ? undefined : `#/components/schemas/${ANSWERS[path]}`;
    t.equal(json?.schema.$ref, schema, `${path}: what it answers`);
  }
  t.equal(ids.size, Object.keys(PATHS).length, "operation ids are unique");

  const runs = document.paths["/runs"]?.get?.parameters ?? [];
  t.strictSame(
    runs.map(({ name, in: where, required, schema }) => ({ name, where, required, ...schema })),
    RUN_PARAMETERS,
  );
  t.match(document.paths["/programs"]?.get?.parameters.find(({ name }) => name === "limit")?.schema, { default: 100 });

  const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, formats: { "date-time": true, binary: true } });
  ajv.addVocabulary(["components"]);
  const { components } = document;
  for (const name of Object.keys(components.schemas)) {
    // Compiling resolves every reference.
    t.doesNotThrow(() => ajv.compile({ $ref: `#/components/schemas/${name}`, components }), name);
  }
  const used = new Set(
    [...JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)].map((match) => match[1]),
  );
  t.strictSame(
    [...used].sort(),
    Object.keys(components.schemas).sort(),
    "every schema is used, every used one is there",
  );
  t.strictSame(Object.keys(document.webhooks), [...EVENT_NAMES], "every event is described");
  const codes = components.schemas.ErrorResponse?.properties as { code: { enum: string[] } };
  t.strictSame(codes.code.enum, Object.keys(ERROR_CATALOGUE));
});

t.test("the document's server is what links start with", async (t) => {
  const cell = new RecordedCell();
  const serversOf = async (port: number) => {
    const response = await rawRequest(port, "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n");
    return (response?.json() as { servers?: unknown } | undefined)?.servers;
  };
  t.same(await serversOf(await cell.listenFor(t)), [{ url: "/" }]);
  const baseUrl = "https://mes.example/inspection";
  t.same(
    await serversOf(await cell.listen({ baseUrl })),
    [{ url: baseUrl }],
    "behind a proxy that serves it under a path",
  );
});
