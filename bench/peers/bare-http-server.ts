/**
 * The peer of hot reads: uWebSockets.js with nothing around it. `node bare-http-server.js BODY LINES` answers every GET with the bytes of the file
 * BODY and the header lines of the file LINES (JSON, a list of names and values). It prints `listening on http://…`, and serves until SIGTERM. One
 * writeHeader writes all lines, as in the service: each call costs as much as a line.
 */
import { readFileSync } from "node:fs";
import { findUws, type UwsBuild } from "../../http/server/uws-binary.js";

// The build that the service takes too: without one, this peer is not started.
const { uws } = findUws() as UwsBuild;
const [bodyFile = "", linesFile = ""] = process.argv.slice(2);
const body = readFileSync(bodyFile);
const [first, ...others] = JSON.parse(readFileSync(linesFile, "utf8")) as [name: string, value: string][];
if (first === undefined) throw new Error(`${linesFile} has no header line`);
const joined = first[1] + others.map(([name, value]) => `\r\n${name}: ${value}`).join("");

const app = uws.App().get("/*", (response) => {
  response.writeHeader(first[0], joined);
  response.end(body);
});
app.listen("127.0.0.1", 0, (socket) => {
  if (socket === false) throw new Error("no port to listen on");
  process.stdout.write(`listening on http://127.0.0.1:${uws.us_socket_local_port(socket)}\n`);
});
process.on("SIGTERM", () => process.exit(0));
