import { readFileSync, writeFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import createClient from "openapi-fetch";
import generateTypes, { astToString, COMMENT_HEADER, type OpenAPI3 } from "openapi-typescript";
import t from "tap";
import { RESPONSE_EXAMPLES } from "../../http/response-examples.js";
import { EXAMPLE_FRAME, EXAMPLE_PATHS, EXAMPLE_RUN, exampleCell } from "../helpers/example-cell.js";
import type { paths } from "../helpers/interface-types.js";
import { rawRequest } from "../helpers/raw-http.js";

const EXAMPLES_FILE = "http/response-examples.ts";
const TYPES_FILE = "test/helpers/interface-types.ts";
/** `TEST_UPDATE=1` writes both files anew in place of comparing them. */
const updates = process.env.TEST_UPDATE === "1";

interface Operation {
  operationId: string;
  tags: string[];
  responses: Record<string, { content?: Record<string, { example?: unknown }> }>;
}
type Document = { paths: Record<string, Record<string, Operation>> };

async function served(t: { teardown(undo: () => Promise<void>): unknown }): Promise<number> {
  const cell = exampleCell();
  t.teardown(() => cell.close());
  return cell.listen();
}

async function answer(port: number, path: string): Promise<unknown> {
  const response = await rawRequest(port, `GET ${path} HTTP/1.1\r\nHost: cell.factory:8000\r\n\r\n`);
  if (response?.status !== 200) throw new Error(`GET ${path}: ${response?.status}`);
  return response.json();
}

t.test("the document is valid OpenAPI 3.1 by a public validator", async (t) => {
  const document = (await answer(await served(t), "/openapi.json")) as Record<string, unknown>;
  const validator = new Validator();
  const { valid, errors } = await validator.validate(document);
  t.ok(valid, JSON.stringify(errors));
  t.equal(validator.version, "3.1");
  const { valid: brokenIsValid } = await new Validator().validate({ ...document, paths: { runs: {} } });
  t.notOk(brokenIsValid, "it does find what is wrong");
});

t.test("its examples are answers of the service, one for each JSON answer", async (t) => {
  const port = await served(t);
  const answers: Record<string, unknown> = {};
  for (const [id, path] of Object.entries(EXAMPLE_PATHS)) answers[id] = await answer(port, path);
  if (updates) {
    const comment = "/** Answers of a small cell, by operation: written by test/http/interface-document.test.ts. */";
    const json = JSON.stringify(answers, undefined, 2);
    writeFileSync(
      EXAMPLES_FILE,
      `${comment}\nexport const RESPONSE_EXAMPLES: Readonly<Record<string, unknown>> = ${json};\n`,
    );
    return;
  }
  t.strictSame(RESPONSE_EXAMPLES, answers);
  const document = (await answer(port, "/openapi.json")) as Document;
  for (const [path, methods] of Object.entries(document.paths)) {
    const operation = methods.get;
    const json = operation?.responses[200]?.content?.["application/json"];
    // The document is no example of itself; examples of webhooks need a store of them.
    if (operation === undefined || json === undefined || path === "/openapi.json") continue;
    if (operation.tags.includes("webhooks")) continue;
    t.strictSame(json.example, answers[operation.operationId], path);
  }
});

t.test("the client's types are made from it", async (t) => {
  const document = (await answer(await served(t), "/openapi.json")) as OpenAPI3;
  const text = `${COMMENT_HEADER}${astToString(await generateTypes(document))}`;
  if (updates) writeFileSync(TYPES_FILE, text);
  else t.equal(readFileSync(TYPES_FILE, "utf8"), text, "TEST_UPDATE=1 makes them anew");
});

t.test("a client with these types walks from the list to a run's parts", async (t) => {
  const client = createClient<paths>({ baseUrl: `http://127.0.0.1:${await served(t)}` });
  const list = await client.GET("/runs", { params: { query: { limit: 10 } } });
  t.equal(list.response.status, 200);
  const id = list.data?.runs[0]?.id ?? "";
  t.equal(id, EXAMPLE_RUN);
  const run = await client.GET("/runs/{run_id}", { params: { path: { run_id: id } } });
  t.equal(run.data?.status, "completed");
  const report = await client.GET("/runs/{run_id}/quality-report", { params: { path: { run_id: id } } });
  t.equal(report.data?.quality_report?.checks[0]?.value, 0.12);
  const frame = await client.GET("/sensor/frames/{frame_id}", { params: { path: { frame_id: EXAMPLE_FRAME } } });
  t.equal(frame.data?.width, 3);
  const missing = await client.GET("/runs/{run_id}", { params: { path: { run_id: "x" } } });
  t.equal(missing.error?.code, "run_not_found");
  // @ts-expect-error the interface has no such path
  t.equal((await client.GET("/nowhere")).response.status, 404);
});
