import { readFileSync, writeFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import generateTypes, { astToString, COMMENT_HEADER, type OpenAPI3 } from "openapi-typescript";
import t from "tap";
import type { components } from "../../../http/client/interface-types.js";
import { REQUEST_EXAMPLES } from "../../../http/openapi/request-examples.js";
import { ERROR_EXAMPLE, EVENT_EXAMPLES, RESPONSE_EXAMPLES } from "../../../http/openapi/response-examples.js";
import {
  EXAMPLE_FRAME,
  EXAMPLE_MISTAKE,
  EXAMPLE_REQUESTS,
  EXAMPLE_RUN,
  type ExampleRequest,
  exampleCell,
  otherExampleEvents,
} from "../../helpers/example-cell.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictTypes: false, validateFormats: false });
const EXAMPLES_FILE = "http/openapi/response-examples.ts";
const TYPES_FILE = "http/client/interface-types.ts";
/** `TEST_UPDATE=1` writes both files anew in place of comparing them. */
const updates = process.env.TEST_UPDATE === "1";

type Content = Record<string, { example?: unknown }>;
interface Operation {
  operationId: string;
  requestBody?: { content: Content };
  responses: Record<string, { content?: Content }>;
}
interface Document {
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post: { requestBody: { content: Content } } }>;
  components: { schemas: Record<string, { examples?: unknown }> };
}
type CreateWebhook = components["schemas"]["CreateWebhookRequest"];
const VALID: CreateWebhook = { name: "W", url: "http://w.factory/", subscribed_events: ["ProgramCompleted"] };
/** Of the requests behind the examples: else each answer had another one. */
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";

async function served(t: { teardown(undo: () => Promise<void>): unknown }): Promise<number> {
  const cell = exampleCell();
  t.teardown(() => cell.close());
  return cell.listen();
}

/** The body of the answer, which must have this status. */
async function answer(port: number, { method, path, body }: ExampleRequest, statuses = [200, 201]): Promise<unknown> {
  const content = body === undefined ? "" : JSON.stringify(body);
  const heads = [
    `${method} ${path} HTTP/1.1`,
    "Host: cell.factory:8000",
    `traceparent: 00-${TRACE_ID}-00f067aa0ba902b7-01`,
    ...(body === undefined ? [] : ["Content-Type: application/json", `Content-Length: ${content.length}`]),
  ];
  const response = await rawRequest(port, `${heads.join("\r\n")}\r\n\r\n${content}`, method);
  if (response === undefined || !statuses.includes(response.status)) {
    throw new Error(`${method} ${path}: ${response?.status} ${response?.body}`);
  }
  return response.json();
}

async function documentOf(port: number): Promise<unknown> {
  return answer(port, { method: "GET", path: "/openapi.json" });
}

t.test("the document is valid OpenAPI 3.1 by a public validator", async (t) => {
  const document = (await documentOf(await served(t))) as Record<string, unknown>;
  const validator = new Validator();
  const { valid, errors } = await validator.validate(document);
  t.ok(valid, JSON.stringify(errors));
  t.equal(validator.version, "3.1");
  const { valid: brokenIsValid } = await new Validator().validate({ ...document, paths: { runs: {} } });
  t.notOk(brokenIsValid, "it does find what is wrong");
});

/** What is posted for each event: to the example's webhook, and what others would be told of the same run. */
function eventsOf(answers: Record<string, unknown>): Record<string, unknown> {
  const deliveries = answers.listWebhookDeliveries as { event_name: string; payload: unknown }[];
  const posted = deliveries.map(({ event_name, payload }) => [event_name, payload]);
  return { ...otherExampleEvents(), ...Object.fromEntries(posted) };
}

/** Events stand in it once, and deliveries refer to them. */
function examplesText(answers: object, events: Record<string, unknown>, refusal: unknown): string {
  const json = (value: unknown): string => JSON.stringify(value, undefined, 2);
  const reference = new Map(Object.entries(events).map(([name, event]) => [json(event), `EVENT_EXAMPLES.${name}`]));
  const referring = JSON.parse(json(answers), (key, value) =>
    key === "payload" ? (reference.get(json(value)) ?? value) : value,
  );
  const responses = json(referring).replace(/"(EVENT_EXAMPLES\.\w+)"/g, "$1");
  return [
    "/** Events of the same cell, by name. Written, as is all of this file, by test/http/openapi/interface-document.test.ts. */",
    `export const EVENT_EXAMPLES: Readonly<Record<string, unknown>> = ${json(events)};\n`,
    "/** Answers of a small cell, by operation. */",
    `export const RESPONSE_EXAMPLES: Readonly<Record<string, unknown>> = ${responses};\n`,
    "/** An answer to a request that it does not take. */",
    `export const ERROR_EXAMPLE: unknown = ${json(refusal)};\n`,
  ].join("\n");
}

t.test("its examples are answers of the service, one for each JSON answer and each body", async (t) => {
  const port = await served(t);
  const answers: Record<string, unknown> = {};
  for (const [id, request] of Object.entries(EXAMPLE_REQUESTS)) answers[id] = await answer(port, request);
  const refusal = await answer(port, EXAMPLE_MISTAKE, [422]);
  const events = eventsOf(answers);
  if (updates) {
    writeFileSync(EXAMPLES_FILE, examplesText(answers, events, refusal));
    return;
  }
  t.strictSame(RESPONSE_EXAMPLES, answers);
  t.strictSame(EVENT_EXAMPLES, events);
  t.strictSame(ERROR_EXAMPLE, refusal);
  const { paths, webhooks, components } = (await documentOf(port)) as Document;
  t.strictSame(Object.keys(webhooks).sort(), Object.keys(events).sort(), "an example for each event");
  for (const [name, { post }] of Object.entries(webhooks)) {
    const { schema, example } = post.requestBody.content["application/json"] as { schema: object; example: unknown };
    t.strictSame(example, events[name], name);
    const validate = ajv.compile(schema);
    t.ok(validate(example), `${name}: ${ajv.errorsText(validate.errors)}`);
  }
  const documented = new Set<string>();
  for (const [path, methods] of Object.entries(paths)) {
    // The document is no example of itself.
    if (path === "/openapi.json") continue;
    for (const [method, { operationId, requestBody, responses }] of Object.entries(methods)) {
      const name = `${method} ${path}`;
      const media = requestBody?.content["application/json"];
      if (media !== undefined) {
        t.type(media.example, "object", `${name}: an example of the body`);
        t.strictSame(media.example, EXAMPLE_REQUESTS[operationId]?.body, `${name}: the body that was sent`);
      }
      for (const [status, { content }] of Object.entries(responses)) {
        const json = content?.["application/json"];
        if (json === undefined || !status.startsWith("2")) continue;
        documented.add(operationId);
        t.not(json.example, undefined, `${name}: an example of the answer`);
        t.strictSame(json.example, answers[operationId], name);
      }
    }
  }
  t.strictSame([...documented].sort(), Object.keys(answers).sort(), "no example without its operation");
  t.strictSame(components.schemas.ErrorResponse?.examples, [refusal], "the envelope of errors");
});

t.test("the client's types are made from it", async (t) => {
  // Without the examples, which are of an earlier build while they are made anew, and have no type.
  const json = JSON.stringify(await documentOf(await served(t)));
  const document = JSON.parse(json, (key, value) => (/^examples?$/.test(key) ? undefined : value)) as OpenAPI3;
  // A property of a request that has a default can be left out.
  const types = await generateTypes(document, { defaultNonNullable: false });
  const text = `${COMMENT_HEADER}${astToString(types)}`;
  if (updates) writeFileSync(TYPES_FILE, text);
  else t.equal(readFileSync(TYPES_FILE, "utf8"), text, "TEST_UPDATE=1 makes them anew");
});

t.test("a client with these types walks from the list to a run's parts", async (t) => {
  const client = new ContractClient(t, await served(t));
  const { runs } = await client.get("/runs", { query: { limit: 10 } });
  const path = { run_id: runs[0]?.id as string };
  t.equal(path.run_id, EXAMPLE_RUN);
  t.equal((await client.get("/runs/{run_id}", { path })).status, "completed");
  const report = await client.get("/runs/{run_id}/quality-report", { path });
  t.equal(report.quality_report?.checks[0]?.value, 0.12);
  t.equal((await client.get("/sensor/frames/{frame_id}", { path: { frame_id: EXAMPLE_FRAME } })).width, 3);
  await client.refusal("get", "/runs/{run_id}", 404, "run_not_found", { path: { run_id: "x" } });
  const hook = await client.post("/webhooks", { body: REQUEST_EXAMPLES.createWebhook as CreateWebhook });
  t.same(await client.get("/webhooks/{webhook_id}", { path: { webhook_id: hook.id } }), hook);
  await client.delete("/webhooks/{webhook_id}", { path: { webhook_id: hook.id } });
});

t.test("what the interface does not have is an error of the build, and holds no answer", async (t) => {
  const port = await served(t);
  const faults: unknown[] = [];
  const note = (found: unknown, wanted: unknown, what: string) => {
    if (found !== wanted) faults.push(what);
  };
  const client = new ContractClient({ equal: note, match() {} }, port);
  const path = { run_id: EXAMPLE_RUN };
  // @ts-expect-error no such path
  await client.get("/nowhere");
  // @ts-expect-error no such method of it
  await client.post("/runs");
  t.ok(faults.length >= 2, "nor does a wrong status pass");
  // @ts-expect-error no such parameter in the query
  await client.get("/runs", { query: { limt: 1 } });
  // @ts-expect-error not of its type
  await client.refusal("get", "/runs", 422, "invalid_parameter", { query: { limit: "x" } });
  // @ts-expect-error another path's parameter
  await client.refusal("get", "/runs/{run_id}", 404, "run_not_found", { path: { program_id: EXAMPLE_RUN } });
  // @ts-expect-error its parameter is missing
  await client.refusal("get", "/runs/{run_id}", 404, "run_not_found");
  // @ts-expect-error no such code
  await client.refusal("get", "/runs/{run_id}", 404, "run_missing", { path });
  // @ts-expect-error no such field of the body
  await client.refusal("post", "/webhooks", 422, "invalid_parameter", { body: { ...VALID, timeout: 3 } });
  // @ts-expect-error no such field of the answer
  t.equal((await client.get("/runs/{run_id}", { path })).program_name, undefined);
});
