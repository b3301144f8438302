import t from "tap";
import { FRONTS_HERE, type FrontHere, frontsHere } from "../../helpers/http/fronts-here.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { isFullSize } from "../../helpers/test-size.js";
import { until } from "../../helpers/until.js";

/** The service promises ten seconds, where nothing else runs. */
const STOPS_WITHIN_MS = isFullSize ? 10_000 : 30_000;

/** Almost every test ends its service by SIGTERM. */
const SIGNALS = isFullSize ? (["SIGTERM", "SIGINT", "SIGHUP"] as const) : (["SIGINT", "SIGHUP"] as const);
for (const [at, signal] of SIGNALS.entries()) {
  const { name, environment } = frontsHere(t)[at % FRONTS_HERE.length] as FrontHere;
  t.test(`${signal} ends it cleanly with 0, and its directory is free (${name})`, async (t) => {
    const service = await ServiceProcess.startFor(t, { args: ["serve"], environment });
    const idle = await RawConnection.open(service.port);
    idle.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
    t.equal((await idle.response())?.status, 200);
    const ended = await service.end(signal);
    t.match(ended, { code: 0, signal: null });
    await idle.closed;
    // Refused where a service has it.
    t.match(await checkDirectory(service.dataDirectory), { ok: true });
  });
}

// Side by side, except where a time is promised: a stop that waits for its clients takes most of the time.
t.jobs = isFullSize ? 1 : 3;
const options = { buffered: true };

t.test(
  "signals that come together ask once, as npm passes a Ctrl-C on; a later one ends it at once",
  options,
  async (t) => {
    const together = await ServiceProcess.startFor(t, { args: ["serve"] });
    process.kill(together.pid, "SIGINT");
    t.match(await together.end("SIGTERM"), { code: 0, signal: null });

    const waiting = await ServiceProcess.startFor(t, { args: ["serve"] });
    const unfinished = await RawConnection.open(waiting.port);
    t.teardown(async () => unfinished.close());
    unfinished.send(
      "POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    );
    const metrics = async () =>
      (await rawRequest(waiting.port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))?.body.toString();
    // The request that asks is open too.
    await until("two open requests", async () => /^inspection_http_open_requests 2$/m.test((await metrics()) ?? ""));
    const ended = waiting.end("SIGTERM");
    // One alone: a signal that comes while the process already exits would give it another code.
    const again = setInterval(() => void waiting.end("SIGTERM"), 1_500);
    t.teardown(() => clearInterval(again));
    await unfinished.closed;
    clearInterval(again);
    t.match(await ended, { code: 1 }, "it did not wait for the request");
    t.match(await checkDirectory(waiting.dataDirectory), { ok: true });
  },
);

t.test(
  "a stop with clients that take nothing, and others that never stop asking, ends with 0 within 10 s",
  options,
  async (t) => {
    const stop = async ({ name, environment }: FrontHere) => {
      const service = await ServiceProcess.startFor(t, { args: ["serve"], environment });
      const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
      const id = nextId();
      await producer.accept(programPut());
      await producer.accept({ type: "run.create", id, program_id: PROGRAM_ID, serial_number: "SN" });
      const put = { type: "file.put", run_id: id, name: "large.bin", content_type: "application/octet-stream" };
      await producer.accept(put, Buffer.alloc(12_000_000, 7));
      const ask = (client: RawConnection, path: string) => client.send(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      const stalled = await RawConnection.open(service.port);
      t.teardown(async () => stalled.close());
      ask(stalled, `/runs/${id}/files/large.bin`);
      // Its head has come: the rest is on its way, more than the buffers of both sides take.
      await new Promise((resolve) => stalled.socket.once("data", resolve));
      stalled.socket.pause();
      const busy = await RawConnection.open(service.port);
      t.teardown(async () => busy.close());
      const asking = (async () => {
        let status: number | undefined;
        do {
          ask(busy, `/runs/${id}/files/large.bin`);
          status = (await busy.response())?.status;
        } while (status === 200);
      })();
      const startedMs = performance.now();
      t.match(await service.end(), { code: 0, signal: null }, name);
      const tookMs = performance.now() - startedMs;
      t.ok(tookMs < STOPS_WITHIN_MS, `${name}: ${Math.round(tookMs)} ms`);
      await asking;
    };
    await Promise.all(FRONTS_HERE.map(stop));
  },
);

t.test(
  "a second service on the port or the directory ends with 1 and says why, also right after a kill -9",
  options,
  async (t) => {
    const service = await ServiceProcess.startFor(t);
    const folder = temporaryDirectory(t);
    const onPort = await runCommand(["serve", "--data", folder, "--port", String(service.port)]);
    t.match(onPort, { code: 1, stderr: `cannot listen on 127.0.0.1 port ${service.port}` });
    t.match(await checkDirectory(folder), { ok: true }, "its directory is free");
    const args = ["serve", "--data", service.dataDirectory, "--port", "0"];
    const second = await runCommand(args);
    t.equal(second.code, 1);
    t.match(second.stderr, new RegExp(`\\b${service.pid}\\b`), "names the process");
    t.notMatch(second.stderr, /^\s+at /m);
    t.equal(second.stdout, "");
    for (const command of isFullSize ? ["check", "inspect"] : ["inspect"]) {
      const other = await runCommand([command, "--data", service.dataDirectory]);
      t.equal(other.code, 0, `${command} reads a store that is served: ${other.stderr}`);
    }
    t.match(await service.end("SIGKILL"), { signal: "SIGKILL" });
    const third = await ServiceProcess.startFor(t, { dataDirectory: service.dataDirectory });
    const fourth = await runCommand(["check", "--data", service.dataDirectory]);
    t.equal(fourth.code, 0, fourth.stderr);
    t.match(await third.end("SIGTERM"), { code: 0 }, "nothing has disturbed it");
  },
);
