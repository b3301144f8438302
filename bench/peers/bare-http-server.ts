/**
 * The peer of the HTTP benchmarks: uWebSockets.js with nothing around it, answering every GET with the bytes of one file.
 * A process of its own: `node bare-http-server.js FILE` prints `listening on http://…` and serves until SIGTERM.
 */

import uws from "uWebSockets.js";
import { readFileSync } from "node:fs";

// The package falls back to a slow imitation in JavaScript where its native binary does not load: no peer to be compared with.
if (!Function.prototype.toString.call(uws.App).includes("[native code]")) {
  throw new Error("uWebSockets.js runs without its native binary here");
}
const body = readFileSync(process.argv[2] as string);

const app = uws.App().get("/*", (response) => {
  response.end(body);
});
app.listen("127.0.0.1", 0, (socket) => {
  if (socket === false) throw new Error("no port to listen on");
  process.stdout.write(`listening on http://127.0.0.1:${uws.us_socket_local_port(socket)}\n`);
});
process.on("SIGTERM", () => process.exit(0));
