import t from "tap";
import { createServiceClient, type RunEvent, ServiceRequestError } from "../../../http/client/service-client.js";
import { ApiKeys, createKey } from "../../../http/requests/api-keys.js";
import { frontsHere } from "../../helpers/http/fronts-here.js";
import { ChangingCell } from "../../helpers/live/changing-cell.js";

const { key, stored } = createKey("read", "2026-01-31T12:00:00.000000Z");

/** What lies between the client and the service. */
class BreakingNetwork {
  readonly asked: { url: string; headers: Headers }[] = [];
  /** Answers that will break off after their first piece. */
  breaks = 0;
  /** A proxy refuses the next stream. */
  isBusy = false;

  readonly fetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    this.asked.push({ url: request.url, headers: request.headers });
    const response = await fetch(request);
    if (request.url.includes("/changes") && this.isBusy) {
      this.isBusy = false;
      return new Response("a proxy's", { status: 429, headers: { "Retry-After": "0.01" } });
    }
    if (this.breaks-- <= 0 || response.body === null) return response;
    const reader = response.body.getReader();
    const first = await reader.read();
    await reader.cancel();
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        if (first.value !== undefined) controller.enqueue(first.value);
      },
      pull: (controller) => controller.error(new TypeError("broken off")),
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
}

for (const { name, front, uwsPackage } of frontsHere(t)) {
  t.test(`the typed client lists runs, and follows them through breaks (${name})`, async (t) => {
    const cell = new ChangingCell();
    const port = await cell.listenFor(t, {
      ...{ front, apiKeys: new ApiKeys([stored]) },
      ...(uwsPackage !== undefined && { uwsPackage }),
    });
    const network = new BreakingNetwork();
    const { asked } = network;
    const client = createServiceClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey: key, fetch: network.fetch });
    const id = cell.create();
    const leave = new AbortController();
    t.teardown(() => leave.abort());
    let toldBreaks = 0;
    const onBreak = (): void => {
      toldBreaks++;
    };
    const changes = client.changes({ filter: { status: "running" }, signal: leave.signal, onBreak });
    const next = async (): Promise<RunEvent> => (await changes.next()).value as RunEvent;
    network.breaks = 1;
    const ready = await next();
    t.match(ready, { type: "ready", serviceVersion: /test/ });
    const { data } = await client.api.GET("/runs", { params: { query: { limit: 10 } } });
    t.strictSame(
      data?.runs.map((run) => run.id),
      [id],
    );

    // It is broken off here; while it is away, the run changes.
    cell.start(id);
    t.match(await next(), { type: "ready", mark: ready.mark });
    const run = await next();
    t.match(run, { type: "run", run: { id, status: "running" } });
    t.equal(toldBreaks, 1);
    const streams = asked.filter(({ url }) => url.includes("/runs/changes"));
    t.strictSame(
      streams.map(({ headers }) => headers.get("last-event-id")),
      [null, ready.mark],
    );
    t.ok(asked.every(({ url, headers }) => !url.includes(key) && headers.get("authorization") === `Bearer ${key}`));
    leave.abort();
    t.strictSame(await changes.next(), { done: true, value: undefined });
    t.equal(toldBreaks, 1, "leaving is no break");

    network.isBusy = true;
    const reset = client.changes({ since: "2030-01-01T00:00:00Z", signal: AbortSignal.timeout(60_000) });
    t.match((await reset.next()).value, { type: "ready" }, "a proxy's 429 passes");
    t.notOk(network.isBusy);
    t.match((await reset.next()).value, { type: "reset", reason: /later/ });
    await reset.return();
    const wrong = client.changes({ since: "yesterday" });
    const faulty = await wrong.next().catch((error: unknown) => error);
    t.match(faulty, { status: 422, error: { code: "invalid_parameter" } });
    const keyless = createServiceClient({ baseUrl: `http://127.0.0.1:${port}` }).changes();
    const refused = await keyless.next().catch((error: unknown) => error);
    t.ok(refused instanceof ServiceRequestError && refused.status === 401);
  });
}
