import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { ProducerClient } from "../../workers/cell-link/producer-client.js";
import { frontsHere } from "../helpers/http/fronts-here.js";
import { RawConnection, type RawResponse, rawRequest } from "../helpers/http/raw-http.js";
import { PROGRAM_ID, programPut } from "../helpers/link/link-messages.js";
import { EventStream } from "../helpers/live/event-stream.js";
import { RunSocketClient } from "../helpers/live/run-socket-client.js";
import { ServiceProcess } from "../helpers/process/service-process.js";
import { temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { freePort } from "../helpers/system/free-port.js";

const skip = spawnSync("nginx", ["-v"]).status === 0 ? false : "nginx is not here";

/** nginx with the configuration that the repository shows, in front of the service; its port. */
async function startNginx(t: Test, servicePort: number): Promise<number> {
  const folder = temporaryDirectory(t);
  const port = await freePort();
  const shown = readFileSync("http/server/nginx.conf", "utf8")
    .replace("127.0.0.1:8000", `127.0.0.1:${servicePort}`)
    .replace("listen 80;", `listen 127.0.0.1:${port};`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join("\n");
  const file = join(folder, "nginx.conf");
  const log = `error_log ${folder}/error.log; pid ${folder}/pid; daemon off; master_process off;`;
  writeFileSync(file, `${log}\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${shown}\n}\n`);
  const nginx = spawn("nginx", ["-c", file, "-p", folder], { stdio: "ignore" });
  const ended = new Promise((resolve) => nginx.once("exit", resolve));
  t.teardown(async () => {
    nginx.kill("SIGKILL");
    await ended;
  });
  while (nginx.exitCode === null) {
    try {
      (await RawConnection.open(port)).close();
      return port;
    } catch {
      await sleep(20);
    }
  }
  throw new Error(`nginx ended: ${readFileSync(`${folder}/error.log`, "utf8")}`);
}

/** Events come through at once, and so does a WebSocket. */
async function liveBehindNginx(t: Test, port: number, service: ServiceProcess): Promise<void> {
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "controller" });
  await producer.deliver(programPut());
  const stream = await EventStream.open({ port, headers: { host: "cell" } });
  await stream.until(({ events }) => events.length === 1);
  const id = producer.nextRunId();
  await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
  await stream.until(({ rows }) => rows.length === 1);
  const socket = new RunSocketClient(port, id, ["inspection.v1"], { headers: { host: "cell" } });
  await socket.until(({ messages }) => messages.length === 1);
  t.match(socket.messages[0], { run: { id, status: "pending" } });
  socket.ws.close();
  stream.close();
  await producer.close();
}

for (const { name, environment } of frontsHere(t)) {
  t.test(`behind nginx as http/server/nginx.conf has it, clients see the service (${name})`, { skip }, async (t) => {
    const service = await ServiceProcess.startFor(t, { environment });
    const port = await startNginx(t, service.port);
    const ask = (head: string, body = ""): Promise<RawResponse | undefined> =>
      rawRequest(port, `${head}\r\n\r\n${body}`);
    const list = await ask("GET /runs?limit=1 HTTP/1.1\r\nHost: cell");
    t.equal(list?.status, 200);
    t.same(list?.json(), { runs: [], total: 0, limit: 1, offset: 0 });
    t.equal((await ask("GET /livez HTTP/1.0\r\nHost: cell"))?.status, 200, "a client of HTTP/1.0");
    // Beyond what one packet holds, and within the 4 KiB that uWebSockets.js 20.56 takes in pieces.
    const long = Array.from({ length: 2 }, (_, nth) => `X-Long-${nth}: ${"x".repeat(1_500)}`).join("\r\n");
    t.equal((await ask(`GET /livez HTTP/1.1\r\nHost: cell\r\n${long}`))?.status, 200, "a long head");
    const webhook = JSON.stringify({ name: "a", url: "http://127.0.0.1:9/", subscribed_events: ["ProgramCompleted"] });
    const post = "POST /webhooks HTTP/1.1\r\nHost: cell\r\nContent-Type: application/json";
    const made = await ask(`${post}\r\nContent-Length: ${webhook.length}`, webhook);
    t.equal(made?.status, 201);
    const chunk = `${webhook.length.toString(16)}\r\n${webhook}\r\n0\r\n\r\n`;
    t.equal((await ask(`${post}\r\nTransfer-Encoding: chunked`, chunk))?.status, 201, "a body in chunks");
    const programs = await ask("GET /programs HTTP/1.1\r\nHost: elsewhere");
    t.equal(programs?.status, 421, "a name that is not the service's");
    await liveBehindNginx(t, port, service);
    t.equal((await service.end()).code, 0);
  });
}
