import { hostname } from "node:os";
import t, { type Test } from "tap";
import { someFronts } from "../../helpers/http/fronts-here.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";

async function serve(t: Test, args: readonly string[], environment: Record<string, string> = {}): Promise<number> {
  const service = await ServiceProcess.startFor(t, {
    args: ["serve", "--log-level", "error", ...args],
    // Without the names that other tests ask by.
    environment: { INSPECTION_ALLOWED_HOST: "", ...environment },
  });
  return service.port;
}

const ask = async (port: number, host: string, target = "GET /runs", headers = "", body = "") => {
  const [method] = target.split(" ");
  const text = `${target} HTTP/1.1\r\nHost: ${host}\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
  const response = await rawRequest(port, text, method);
  if (response === undefined) throw new Error(`${target} of ${host}: no answer`);
  return response;
};

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
}

const OPTIONS = ["--allowed-host", "Cell-7.Factory, bücher.example", "--base-url", "https://mes.example:8443/cell"];

for (const { name: front, environment } of someFronts(t)) {
  let served: Promise<number> | undefined;
  const portOf = () => (served ??= serve(t, OPTIONS, environment));

  t.test(`without keys no route answers to a foreign host (${front})`, async (t) => {
    const port = await portOf();
    const document = (await ask(port, "localhost", "GET /openapi.json")).json() as Document;
    const targets = ["OPTIONS /runs", "OPTIONS /nowhere", "GET /nowhere", "GET /docs/start.js", "HEAD /livez"];
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const [method, { responses }] of Object.entries(operations)) {
        targets.push(`${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, "1")}`);
        t.ok("421" in responses, `${method} ${path} says so`);
      }
    }
    t.ok(targets.length > 35, `${targets.length} targets`);
    for (const target of targets) {
      const refused = await ask(port, `evil.example:${port}`, target, "Content-Type: application/json\r\n", "{}");
      t.equal(refused.status, 421, target);
      t.match(refused.headers["x-trace-id"], /^[0-9a-f]{32}$/, target);
      if (target.startsWith("HEAD")) continue;
      const { code, message, params, retryable } = refused.json() as Record<string, unknown>;
      t.equal(code, "misdirected_request", target);
      t.match(message, /start the service with --allowed-host evil\.example$/);
      t.match(params, { field: "host", in: "header", value: `evil.example:${port}` });
      t.equal(retryable, false);
    }
  });

  t.test(`a host is looked at for each request of a connection (${front})`, async (t) => {
    const port = await portOf();
    const connection = await RawConnection.openFor(t, port);
    const statuses: (number | undefined)[] = [];
    for (const host of [
      "cell-8",
      "localhost",
      "evil.example",
      "localhost",
      "LOCALHOST.",
      "evil.example",
      "127.0.0.1",
    ]) {
      connection.send(`GET /livez HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`);
      statuses.push((await connection.response())?.status);
    }
    t.same(statuses, [421, 200, 421, 200, 200, 421, 200]);
    connection.send(`POST /webhooks HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\n\r\nabc`);
    t.equal((await connection.response())?.status, 421);
    connection.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    t.equal((await connection.response())?.status, 200, "a body that nobody read is no request");
  });

  t.test(`the names of the options and of the machine (${front})`, async (t) => {
    const port = await portOf();
    const name = hostname();
    const taken = ["cell-7.factory", "xn--bcher-kva.example", "mes.example", name, `${name.split(".")[0]}.local`];
    for (const host of taken) {
      for (const sent of [host, host.toUpperCase(), `${host}:${port}`, `${host}.:1`]) {
        t.equal((await ask(port, sent)).status, 200, sent);
      }
    }
    for (const host of ["cell-7", "factory", "sub.mes.example", `${name}.evil.example`, `x${name}`]) {
      t.equal((await ask(port, host)).status, 421, host);
    }
  });
}

t.test("with keys a key is what counts, and any host is taken", async (t) => {
  const file = `${t.testdir({})}/keys.json`;
  const { stdout } = await runCommand(["keys", "add", "--file", file]);
  const key = /isk_\S+/.exec(stdout)?.[0];
  const port = await serve(t, ["--host", "0.0.0.0", "--api-keys", file]);
  t.equal((await ask(port, "anything.example", "GET /runs", `Authorization: Bearer ${key}\r\n`)).status, 200);
  t.equal((await ask(port, "anything.example", "GET /runs")).status, 401);
  t.equal((await ask(port, "anything.example", "GET /livez")).status, 200);
});
