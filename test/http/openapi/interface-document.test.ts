import { Validator } from "@seriousme/openapi-schema-validator";
import t from "tap";
import type { components } from "../../../http/client/interface-types.js";
import { REQUEST_EXAMPLES } from "../../../http/openapi/request-examples.js";
import { EXAMPLE_FRAME, EXAMPLE_REQUESTS, EXAMPLE_RUN, exampleCell } from "../../helpers/example-cell.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { listOf } from "../../helpers/list-of.js";

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

async function served(t: { teardown(undo: () => Promise<void>): unknown }): Promise<number> {
  const cell = exampleCell();
  return cell.listenFor(t);
}

async function documentOf(port: number): Promise<unknown> {
  const response = await rawRequest(port, "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n");
  return response?.json();
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

t.test("each JSON answer and each body has an example, and those of requests are what was sent", async (t) => {
  const { paths, webhooks, components } = (await documentOf(await served(t))) as Document;
  for (const [name, { post }] of Object.entries(webhooks)) {
    t.match(post.requestBody.content["application/json"]?.example, { event_name: name });
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
      }
    }
  }
  t.strictSame([...documented].sort(), Object.keys(EXAMPLE_REQUESTS).sort(), "no request without its operation");
  t.match(components.schemas.ErrorResponse?.examples, listOf({ code: "invalid_parameter" }), "the envelope of errors");
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
  const note = (found: unknown, expected: unknown, what: string) => {
    if (found !== expected) faults.push(what);
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
