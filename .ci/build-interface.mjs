// Makes what follows from the OpenAPI document, and so is not committed: the examples in it, which are answers of the example cell
// (dist/http/openapi/response-examples.js, declared in the sources), and with `types` the types of the client
// (http/client/interface-types.d.ts, and a copy beside the compiled client, for the package).
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { text } from "node:stream/consumers";

const EXAMPLES = "dist/http/openapi/response-examples.js";
const TYPES = "http/client/interface-types.d.ts";
/** Links in the examples start with it. */
const HOST = "cell.factory:8000";
/** A fixed trace id for the refused request, so that each build makes the same example. */
const TRACE_PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

function writeExamples(examples) {
  const lines = Object.entries(examples).map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};\n`);
  writeFileSync(EXAMPLES, lines.join(""));
}

/** The body of the answer, which must have this status. */
async function answer(port, { method, path, body }, isWanted = (status) => status >= 200 && status < 300) {
  const headers = { traceparent: TRACE_PARENT, ...(body !== undefined && { "Content-Type": "application/json" }) };
  // A connection for each: a kept one may be closed by the server just when it is used again.
  const sent = request({ host: "127.0.0.1", port, method, path, headers, agent: false });
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = await once(sent, "response");
  const json = await text(response);
  if (!isWanted(response.statusCode)) throw new Error(`${method} ${path}: ${response.statusCode} ${json}`);
  return JSON.parse(json);
}

async function buildExamples(port, { EXAMPLE_REQUESTS, EXAMPLE_MISTAKE, otherExampleEvents }) {
  const answers = {};
  for (const [id, example] of Object.entries(EXAMPLE_REQUESTS)) answers[id] = await answer(port, example);
  const posted = answers.listWebhookDeliveries.map(({ event_name, payload }) => [event_name, payload]);
  writeExamples({
    EVENT_EXAMPLES: { ...otherExampleEvents(), ...Object.fromEntries(posted) },
    RESPONSE_EXAMPLES: answers,
    ERROR_EXAMPLE: await answer(port, EXAMPLE_MISTAKE, (status) => status === 422),
  });
}

/** Without the examples, which have no type. */
async function buildTypes(port) {
  const { default: generate, astToString, COMMENT_HEADER } = await import("openapi-typescript");
  const json = JSON.stringify(await answer(port, { method: "GET", path: "/openapi.json" }));
  const document = JSON.parse(json, (key, value) => (/^examples?$/.test(key) ? undefined : value));
  // A property of a request that has a default can be left out.
  const types = await generate(document, { defaultNonNullable: false });
  // The compiler copies no declarations.
  mkdirSync("dist/http/client", { recursive: true });
  for (const path of [TYPES, `dist/${TYPES}`]) writeFileSync(path, COMMENT_HEADER + astToString(types));
}

// The document imports them, and is asked of the cell that gives them.
if (!existsSync(EXAMPLES)) writeExamples({ EVENT_EXAMPLES: {}, RESPONSE_EXAMPLES: {}, ERROR_EXAMPLE: null });
const example = await import("../dist/test/helpers/example-cell.js");
const cell = example.exampleCell();
const port = await cell.listen({ front: "node", baseUrl: `http://${HOST}` });
await buildExamples(port, example);
if (process.argv[2] === "types") await buildTypes(port);
await cell.close();
