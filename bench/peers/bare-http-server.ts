/**
 * The peer of the HTTP benchmarks: uWebSockets.js with nothing around it, answering every GET with the bytes of one file.
 * A process of its own: `node bare-http-server.js FILE` prints `listening on http://…` and serves until SIGTERM. With `--lines FILE`, a
 * JSON list of names and values, every answer has these header lines, each written by writeHeader. With `--guarded` it holds every request
 * against the service's rules of framing first.
 */

import uws from "uWebSockets.js";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { framingFault } from "../../http/request-framing.js";
import { RequestHeaders } from "../../http/request-headers.js";

// The package falls back to a slow imitation in JavaScript where its native binary does not load: no peer to be compared with.
if (!Function.prototype.toString.call(uws.App).includes("[native code]")) {
  throw new Error("uWebSockets.js runs without its native binary here");
}
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { lines: { type: "string" }, guarded: { type: "boolean" } },
});
const body = readFileSync(positionals[0] as string);
const lines: [name: string, value: string][] =
  values.lines === undefined ? [] : JSON.parse(readFileSync(values.lines, "utf8"));
const isGuarded = values.guarded === true;

const app = uws.App().get("/*", (response, request) => {
  if (isGuarded) {
    const headers = new RequestHeaders();
    request.forEach((name, value) => {
      headers.add(name, value);
    });
    const fault = framingFault({ method: request.getMethod().toUpperCase(), path: request.getUrl() }, headers);
    if (fault !== undefined) throw fault;
  }
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as [string, string];
    response.writeHeader(line[0], line[1]);
  }
  response.end(body);
});
app.listen("127.0.0.1", 0, (socket) => {
  if (socket === false) throw new Error("no port to listen on");
  process.stdout.write(`listening on http://127.0.0.1:${uws.us_socket_local_port(socket)}\n`);
});
process.on("SIGTERM", () => process.exit(0));
