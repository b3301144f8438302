import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import t, { type Test } from "tap";
import { inBrowser, openPage, startBrowser, untilTrue } from "../helpers/browser/console-browser.js";
import { ConsoleCell, check } from "../helpers/browser/console-cell.js";
import { FRONTS_HERE } from "../helpers/http/fronts-here.js";
import { listOf } from "../helpers/list-of.js";
import { ServiceProcess } from "../helpers/process/service-process.js";

/** What a page sees of a WebSocket. */
interface Seen {
  protocol: string;
  statuses: string[];
  code: number | undefined;
  reason: string | undefined;
}

/** Opens a WebSocket, and tells how it went when it is closed. Meanwhile the page's title counts the messages. */
async function openSocket(page: Page, url: string, protocols: readonly string[] = []): Promise<Seen> {
  return page.evaluate<Seen>(`new Promise((resolve) => {
    const socket = new WebSocket(${JSON.stringify(url)}, ${JSON.stringify(protocols)});
    const seen = { protocol: "", statuses: [] };
    document.title = "";
    socket.onopen = () => { seen.protocol = socket.protocol; };
    socket.onmessage = ({ data }) => {
      seen.statuses.push(JSON.parse(data).run.status);
      document.title = "message " + seen.statuses.length;
    };
    socket.onclose = ({ code, reason }) => resolve({ ...seen, code, reason });
  })`);
}

/** The first event of the stream as a page reads it by `fetch` and by EventSource; or that it could not. */
async function readStream(page: Page, url: string): Promise<{ fetched: string; source: string }> {
  return page.evaluate(`Promise.all([
    fetch(${JSON.stringify(url)}).then(
      async ({ body }) => new TextDecoder().decode((await body.getReader().read()).value),
      (error) => error.name,
    ),
    new Promise((resolve) => {
      const source = new EventSource(${JSON.stringify(url)});
      source.addEventListener("ready", ({ data }) => { source.close(); resolve(data); });
      source.onerror = () => { if (source.readyState === EventSource.CLOSED) resolve("closed"); };
    }),
  ]).then(([fetched, source]) => ({ fetched, source }))`);
}

/** A page without a policy of its own, of another origin than the service. */
async function foreignPage(t: Test): Promise<string> {
  const server = createServer((_, response) =>
    response.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>elsewhere</title>"),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

t.test("a browser follows a run, and pages of other origins only where they may", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  for (const { name, environment } of FRONTS_HERE) await t.test(name, (t) => followRun(t, browser, environment));
});

async function followRun(t: Test, browser: Browser, environment: Record<string, string>): Promise<void> {
  const elsewhere = await foreignPage(t);
  const service = await ServiceProcess.startFor(t, { environment });
  const cell = await ConsoleCell.start(t, service);
  const base = `http://127.0.0.1:${service.port}`;
  const socketUrl = (runId: string) => `ws://127.0.0.1:${service.port}/runs/${runId}/live`;

  const id = await cell.play({ end: "none" });
  // It stays open when the service has ended.
  const own = await openPage(t, browser, `${base}/console/system`, {}, [/ERR_/]);
  const seen = openSocket(own, socketUrl(id), ["inspection.v1"]);
  await untilTrue(own, 'document.title === "message 1"');
  await cell.say("check.add", { run_id: id, check: check("depth", "passed", 10) });
  await untilTrue(own, 'document.title === "message 2"');
  await cell.say("run.finish", { id });
  const { protocol, statuses, code, reason } = await seen;
  t.same([protocol, code, reason], ["inspection.v1", 1000, "completed"]);
  t.same([statuses[0], statuses.at(-1)], ["running", "completed"]);
  t.match(await openSocket(own, socketUrl(id)), { statuses: listOf("completed"), code: 1000, reason: "completed" });
  t.match(await readStream(own, `${base}/runs/changes`), { fetched: /event: ready/, source: /service_version/ });

  const active = await cell.play({ end: "none" });
  const foreign = await browser.newPage();
  await foreign.goto(elsewhere);
  const refused = await openSocket(foreign, socketUrl(active));
  t.strictSame([refused.statuses, refused.code], [[], 1006]);
  t.same(await readStream(foreign, `${base}/runs/changes`), { fetched: "TypeError", source: "closed" });

  const ending = openSocket(own, socketUrl(active));
  await untilTrue(own, 'document.title === "message 1"');
  await service.end();
  t.match(await ending, { code: 1001, reason: "the service is stopping" });

  const allowing = await ServiceProcess.startFor(t, {
    args: ["serve", "--cors-origin", elsewhere],
    dataDirectory: service.dataDirectory,
    environment,
  });
  const url = `127.0.0.1:${allowing.port}`;
  t.match(await readStream(foreign, `http://${url}/runs/changes`), {
    fetched: /event: ready/,
    source: /service_version/,
  });
  t.match(await openSocket(foreign, `ws://${url}/runs/${id}/live`), { statuses: listOf("completed"), code: 1000 });
}
