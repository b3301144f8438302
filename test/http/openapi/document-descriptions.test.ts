import { Ajv2020 } from "ajv/dist/2020.js";
import t from "tap";
import { WEBHOOK_DEFAULTS } from "../../../core/webhook/webhook.js";
import { exampleCell } from "../../helpers/example-cell.js";
import { closed } from "../../helpers/http/contract-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { undescribedParts } from "../../helpers/http/undescribed-parts.js";

interface Media {
  schema: object;
  example?: unknown;
}
interface Operation {
  description: string;
  tags: string[];
  security?: Record<string, string[]>[];
  parameters: { name: string; in: string; required: boolean }[];
  requestBody: { content: Record<string, Media> };
  responses: Record<string, { headers?: Record<string, { required?: true }>; content?: Record<string, Media> }>;
}
interface Document {
  info: { description: string };
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post: Operation }>;
  components: { schemas: Record<string, { properties: Record<string, Record<string, unknown>> }> };
}

async function servedDocument(t: { teardown(undo: () => Promise<void>): unknown }): Promise<Document> {
  const cell = exampleCell();
  const response = await rawRequest(await cell.listenFor(t), "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n");
  return response?.json() as Document;
}

t.test("everything that the document names is described, each value of a closed set too", async (t) => {
  const document = await servedDocument(t);
  t.strictSame(undescribedParts({ ...document }), []);
  t.ok(JSON.stringify(document).length > 100_000, "it was all of it");
  const { ProgramRunResponse: run } = document.components.schemas;
  Object.assign(run?.properties as object, { added: {}, status: { enum: ["a"], description: "Is one." } });
  const at = "/components/schemas/ProgramRunResponse/properties";
  const faults = [`${at}/status: a is not explained`, `${at}/added: no description`];
  t.strictSame(undescribedParts({ ...document }), faults, "and what is not is found");
});

/** Every example of a JSON body, with its schema. */
function* examplesOf({ paths, webhooks }: Document): Generator<[name: string, media: Media]> {
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { responses }] of Object.entries(methods)) {
      for (const { content = {} } of Object.values(responses)) {
        const media = content["application/json"];
        if (media?.example !== undefined) yield [`${method} ${path}`, media];
      }
    }
  }
  for (const [name, { post }] of Object.entries(webhooks)) {
    yield [name, post.requestBody.content["application/json"] as Media];
  }
}

/** Answers and events that have a property which the document lacks, or are something else than it says. */
function misfits(document: Document): string[] {
  // That the schemas are valid ones is openapi.test's to show.
  const ajv = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false, code: { optimize: false } });
  ajv.addVocabulary(["components"]);
  const { components } = closed(document);
  return [...examplesOf(document)]
    .filter(([, { schema, example }]) => !ajv.compile({ ...closed(schema), components })(example))
    .map(([name]) => name);
}

t.test("no answer and no event has a property that the document lacks", async (t) => {
  const document = await servedDocument(t);
  t.strictSame(misfits(document), []);
  const lacking = JSON.parse(JSON.stringify(document)) as Document;
  delete lacking.components.schemas.ProgramResponse?.properties.sensor_id;
  t.strictSame(misfits(lacking), ["get /programs", "get /programs/{program_id}"], "and those that have one are found");
});

t.test("headers, scopes and defaults are told, and the page begins with what to do", async (t) => {
  const { info, tags, paths, webhooks, components } = await servedDocument(t);
  const headers = (path: string, status: number) => {
    const declared = paths[path]?.get?.responses[status]?.headers ?? {};
    return Object.keys(declared)
      .map((name) => (declared[name]?.required ? name : `${name}?`))
      .sort()
      .join(" ");
  };
  const download = "/sensor/frames/{frame_id}/file.ply";
  const file = "Accept-Ranges Content-Disposition Content-Length";
  t.equal(headers(download, 200), `${file} ETag Last-Modified X-Trace-ID`);
  t.equal(headers(download, 206), `${file.replace("Length", "Length Content-Range")} ETag Last-Modified X-Trace-ID`);
  t.equal(headers(download, 304), "Accept-Ranges ETag Last-Modified X-Trace-ID");
  t.equal(headers(download, 416), "Content-Range X-Trace-ID");
  t.equal(headers(download, 401), "WWW-Authenticate X-Trace-ID");
  t.equal(headers(download, 503), "Retry-After? X-Trace-ID");
  t.equal(headers("/runs", 200), "Content-Encoding? ETag X-Trace-ID");
  t.equal(headers("/runs", 304), "ETag X-Trace-ID");

  for (const [name, { post }] of Object.entries(webhooks)) {
    const sent = post.parameters.map((one) => `${one.in} ${one.name}${one.required ? "" : "?"}`);
    t.strictSame(
      sent.sort(),
      [
        "header User-Agent",
        "header X-Service-Event",
        "header X-Service-Signature?",
        "header webhook-id",
        "header webhook-signature?",
        "header webhook-timestamp?",
      ],
      name,
    );
  }
  const scope = (method: string, path: string) => {
    const { security, description = "" }: Partial<Operation> = paths[path]?.[method] ?? {};
    return [security?.map((one) => one.apiKey?.join()), /(?:Scope of|Needs no).*/.exec(description)?.[0]];
  };
  t.strictSame(scope("get", "/runs"), [["read", undefined], "Scope of the API key: `read`, or `manage`."]);
  t.strictSame(scope("post", "/webhooks"), [["manage", undefined], "Scope of the API key: `manage`."]);
  t.strictSame(scope("get", "/livez"), [undefined, "Needs no API key."]);

  const { properties: create } = components.schemas.CreateWebhookRequest as { properties: Record<string, object> };
  t.match(create, {
    on_failure_mode: { default: WEBHOOK_DEFAULTS.onFailureMode },
    enabled: { default: WEBHOOK_DEFAULTS.enabled },
    delivery_timeout_seconds: { default: 3, minimum: 1, maximum: 300 },
    retry_backoff_seconds: { default: 1, minimum: 0, maximum: 30 },
    max_retries: { default: 3, minimum: 0, maximum: 10 },
  });
  const { properties: update } = components.schemas.UpdateWebhookRequest as { properties: Record<string, object> };
  t.notOk(
    Object.values(update).some((one) => "default" in one),
    "an update has no defaults: what is left out stays",
  );

  for (const what of ["updated_since", "status=failed", "quality_status=failed", "scale_mm", "retryable", "Bearer"]) {
    t.match(info.description, what);
  }
  const used = new Set(
    Object.values(paths).flatMap((methods) => Object.values(methods).flatMap((operation) => operation.tags)),
  );
  t.strictSame(tags.map(({ name }) => name).sort(), [...used].sort(), "every group of operations is described");
});

t.test("what the numbers of findings mean is said alike of answers and of events", async (t) => {
  const { components, webhooks } = JSON.parse(JSON.stringify(await servedDocument(t)));
  const event =
    webhooks.ProgramCompleted.post.requestBody.content["application/json"].schema.properties.data.properties;
  const defect = event.defects.items.properties;
  for (const region of [components.schemas.DefectRegion2DModel.properties, defect.region_2d.properties]) {
    t.match(region.bbox.description, /\[x_min, y_min, x_max, y_max\] in pixels.*top left.*not including, x_max/);
  }
  for (const region of [components.schemas.DefectRegion3DModel.properties, defect.region_3d.properties]) {
    t.match(region.location.description, /^Centre of the box: \[x, y, z\] in (mm|`unit`), in scan space/);
    t.match(region.extents.description, /^Full edge lengths of the box in (mm|`unit`)/);
    t.match(
      region.orientation.description,
      /quaternion \[x, y, z, w\] that turns the box's own axes into those of scan/,
    );
  }
  t.same(defect.region_3d.properties.unit.enum, ["mm", "in"]);
  for (const check of [components.schemas.QualityCheckModel.properties, event.qc_checks.items.properties]) {
    t.match(
      check.threshold.description,
      /to either side.*`nominal` - `threshold` and `nominal` \+ `threshold`.*the least `value` that passes/,
    );
  }
});
