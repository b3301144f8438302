/**
 * The peer of the HTTP benchmarks: uWebSockets.js with nothing around it, answering every GET with the bytes of one file.
 * A process of its own: `node bare-http-server.js FILE` prints `listening on http://…` and serves until SIGTERM. With `--lines FILE`, a
 * JSON list of names and values, every answer has these header lines, all written by one writeHeader, as the service does it: each call costs
 * as much as a line. With `--guarded` it copies every request's header lines and holds them against the service's rules of framing first.
 */

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { framingFault } from "../../http/requests/request-framing.js";
import { RequestHeaders } from "../../http/requests/request-headers.js";
import { requireUws } from "../../http/server/uws-binary.js";

// The build that the service takes too.
const { uws } = requireUws();
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { lines: { type: "string" }, guarded: { type: "boolean" } },
});
const body = readFileSync(positionals[0] as string);
const lines: [name: string, value: string][] =
  values.lines === undefined ? [] : JSON.parse(readFileSync(values.lines, "utf8"));
const [firstName, firstValue] = lines[0] ?? ["", ""];
const joined =
  firstValue +
  lines
    .slice(1)
    .map(([name, value]) => `\r\n${name}: ${value}`)
    .join("");
const isGuarded = values.guarded === true;

/** Of the request that is being read: as the service does it, without a closure for each. */
let headersBeingRead: RequestHeaders;
const addHeader = (name: string, value: string): void => headersBeingRead.add(name, value);

const app = uws.App().get("/*", (response, request) => {
  if (isGuarded) {
    const headers = new RequestHeaders();
    headersBeingRead = headers;
    const path = request.getUrl();
    request.forEach(addHeader);
    const fault = framingFault({ method: "GET", path }, headers);
    if (fault !== undefined) throw fault;
  }
  if (lines.length > 0) response.writeHeader(firstName, joined);
  response.end(body);
});
app.listen("127.0.0.1", 0, (socket) => {
  if (socket === false) throw new Error("no port to listen on");
  process.stdout.write(`listening on http://127.0.0.1:${uws.us_socket_local_port(socket)}\n`);
});
process.on("SIGTERM", () => process.exit(0));
