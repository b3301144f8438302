import { setTimeout } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import t, { type Test } from "tap";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { NatsServer, noNatsServer } from "../../helpers/plant/nats-server.js";
import {
  type Answer,
  get,
  getJson,
  startCell,
  startHub,
  until,
  untilCaughtUp,
} from "../../helpers/plant/plant-processes.js";
import { runCommand, type ServiceProcess } from "../../helpers/process/service-process.js";
import { shownRuns } from "../../helpers/statistics/shown-runs.js";
import { differenceOf, modelStatistics } from "../../helpers/statistics/statistics-model.js";
import { sized } from "../../helpers/test-size.js";

interface Runs {
  total: number;
  runs: { id: string; cell?: string; program_id: string; updated_at: string }[];
}

interface RunDetail {
  results: { frame_ids: string[] };
}

/** Of a hub that starts again each time. */
const MOST_KILLS = sized(3, 1_000);

const LISTS = [
  "/runs?limit=100",
  "/runs?limit=2&offset=1",
  "/runs?status=completed&quality_status=pass",
  "/runs?status=failed",
  "/runs?status=none",
  "/runs/active",
  "/programs",
  "/webhooks",
];

/** The paths of everything that the service has about its runs and programs. */
async function pathsOf(service: ServiceProcess): Promise<string[]> {
  const { runs } = await getJson<Runs>(service, "/runs?limit=100");
  const paths = [...LISTS];
  for (const { id } of runs) {
    paths.push(`/runs/${id}`, `/runs/${id}/quality-report`, `/runs/${id}/defects`, `/runs/${id}/files`);
    const { results } = await getJson<RunDetail>(service, `/runs/${id}`);
    for (const frame of results.frame_ids) paths.push(`/sensor/frames/${frame}`, `/sensor/frames/${frame}/files`);
  }
  for (const program of new Set(runs.map(({ program_id }) => program_id))) {
    paths.push(`/programs/${program}`, `/programs/${program}/runs`, `/programs/${program}/statistics`);
    for (const format of ["csv", "ndjson", "dfq"]) paths.push(`/programs/${program}/checks.${format}`);
    paths.push(`/runs?program_id=${program}&status=completed`);
  }
  return paths;
}

/** Without what a hub adds, and without the times of its own. */
function withoutHubFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutHubFields);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([name]) => !["cell", "cells", "updated_at"].includes(name));
  return Object.fromEntries(entries.map(([name, inner]) => [name, withoutHubFields(inner)]));
}

function comparable(text: string): unknown {
  try {
    return withoutHubFields(JSON.parse(text));
  } catch {
    return text;
  }
}

t.test("bad options", async (t) => {
  const { code, stderr } = await runCommand(["hub"]);
  t.equal(code, 1);
  t.match(stderr, /--plant is required/);
});

t.test("the hubs of a plant", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const [hub, cell] = await Promise.all([startHub(t, server), startCell(t, server, { cell: "a", runs: 4, seed: 3 })]);
  await untilCaughtUp(t, hub, 4);
  await t.test("a hub answers as the cell does", (t) => answerAsCell(t, hub, cell));
  await t.test("every hub gives the same bytes", (t) => giveSameBytes(t, server, hub));
});

async function answerAsCell(t: Test, hub: ServiceProcess, cell: ServiceProcess): Promise<void> {
  const paths = await pathsOf(cell);
  for (const path of paths) {
    let own: Answer = { status: 0, text: "" };
    let hubs = own;
    // Deliveries of the cell may still be tried again: the hub is told a moment later.
    await until(t, path, async () => {
      [own, hubs] = [await get(cell, path), await get(hub, path)];
      return isDeepStrictEqual(comparable(hubs.text), comparable(own.text));
    });
    t.equal(hubs.status, own.status, path);
    t.strictSame(comparable(hubs.text), comparable(own.text), path);
  }
  const list = await getJson<Runs>(hub, "/runs");
  t.strictSame([...new Set(list.runs.map((run) => run.cell))], ["a"], "each run names its cell");
  const marks = list.runs.map((run) => run.updated_at);
  t.equal(new Set(marks).size, marks.length, "no two runs have one mark");
  t.comment(`${paths.length} answers of a hub are those of its cell`);
  const { components } = await getJson<Health>(hub, "/health");
  t.match(components.cell_a, {
    status: /healthy|degraded/,
    detail: /^last message at 2\S+Z; the plant was \d+ records? behind the cell then/,
  });
}

async function giveSameBytes(t: Test, server: NatsServer, first: ServiceProcess): Promise<void> {
  const late = startHub(t, server);
  const cells = [
    startCell(t, server, { cell: "b", runs: 2, seed: 2 }),
    startCell(t, server, { cell: "c", runs: 1, seed: 3 }),
  ];
  // The first hub is killed again and again while the cells ship. Its starts keep the cells from their work.
  let killed = first;
  let kills = 0;
  let isShipped = false;
  const shipped = Promise.all(cells).then(() => {
    isShipped = true;
  });
  while (!isShipped && kills < MOST_KILLS) {
    await until(t, "the hub answers", async () => (await get(killed, "/livez")).status === 200);
    await killed.end("SIGKILL");
    kills++;
    killed = await startHub(t, server, first.dataDirectory);
  }
  await shipped;
  const hubs = [killed, await late, await startHub(t, server)];
  for (const hub of hubs) await untilCaughtUp(t, hub, 7);
  const paths = [...(await pathsOf(killed)), "/runs?cell=b&limit=2&offset=1", "/runs?cell=a&cell=c", "/runs?cell=d"];
  for (const path of paths) {
    const [one, ...others] = await Promise.all(hubs.map((hub) => get(hub, path)));
    for (const other of others) if (other.text !== one?.text) t.equal(other.text, one?.text, path);
  }
  t.comment(`${paths.length} answers of three hubs are the same bytes, after ${kills} kills of one`);
  const { runs } = await getJson<Runs>(killed, "/runs?limit=100");
  const ids = runs.map(({ id }) => id);
  t.strictSame(ids, [...ids].sort().reverse(), "newest first over all cells");
  const client = new ContractClient(t, killed.port);
  for (const programId of new Set(runs.map(({ program_id }) => program_id))) {
    const found = await client.get("/programs/{program_id}/statistics", { path: { program_id: programId } });
    const model = modelStatistics(await shownRuns(client, programId), { programId });
    t.equal(differenceOf(found, model), undefined, "statistics over all cells are those of a plain model");
  }
  const ofCells = async (query: string) => (await getJson<Runs>(killed, `/runs?${query}`)).total;
  t.strictSame([await ofCells("cell=b"), await ofCells("cell=a&cell=c"), await ofCells("cell=d")], [2, 5, 0]);
}

interface Followed {
  id: string;
  run: { id: string; updated_at: string };
}

/** Reads a stream of changes until it has told so many events, and leaves it. */
async function follow(hub: ServiceProcess, lastEventId: string, count: number): Promise<Followed[]> {
  const left = new AbortController();
  const { body } = await fetch(`http://127.0.0.1:${hub.port}/runs/changes`, {
    headers: { "Last-Event-ID": lastEventId },
    signal: left.signal,
  });
  const events: Followed[] = [];
  let text = "";
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    const whole = text.split("\n\n");
    text = whole.pop() as string;
    for (const event of whole) {
      if (/^event: reset$/m.test(event)) throw new Error(`a reset: ${event}`);
      const [, id, data] = /^id: (.*)$[\s\S]*^data: (.*)$/m.exec(event) ?? [];
      if (/^event: run$/m.test(event)) events.push({ id: id as string, run: JSON.parse(data as string) });
    }
    if (events.length >= count) break;
  }
  left.abort();
  return events.slice(0, count);
}

async function webhooksAreReadOnly(t: Test, hub: ServiceProcess, cell: ServiceProcess): Promise<void> {
  const webhook = {
    name: "w",
    url: "http://127.0.0.1:9/",
    secret: "x".repeat(32),
    subscribed_events: ["ProgramCompleted"],
  };
  const send = (service: ServiceProcess, method: string, path: string, body?: object) =>
    fetch(`http://127.0.0.1:${service.port}${path}`, {
      method,
      ...(body !== undefined && { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
    });
  const atHub = (own: object) => ({ ...own, cell: "a" });
  const made = (await (await send(cell, "POST", "/webhooks", webhook)).json()) as { id: string };
  await until(t, "the webhook at the hub", async () => (await get(hub, `/webhooks/${made.id}`)).status === 200);
  // Deliveries go on meanwhile. The hub also lists the webhooks of the other cell.
  await until(t, "the hub lists what the cell lists", async () => {
    const own = JSON.parse((await get(cell, "/webhooks")).text) as { id: string }[];
    const all = JSON.parse((await get(hub, "/webhooks")).text) as { id: string }[];
    const same = all.filter(({ id }) => own.some((one) => one.id === id));
    return own.length > 1 && isDeepStrictEqual(same, own.map(atHub));
  });
  t.equal((await get(hub, `/webhooks/${made.id}/deliveries`)).status, 200);
  const bodies: Record<string, object> = {
    "post /webhooks": webhook,
    "post /webhooks/{webhook_id}/resend": { since: "2026-01-01T00:00:00Z" },
    "post /webhooks/{webhook_id}/rotate-secret": { secret: "y".repeat(32) },
    "patch /webhooks/{webhook_id}": { name: "x" },
  };
  const { paths } = await getJson<{ paths: Record<string, object> }>(hub, "/openapi.json");
  const writes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).flatMap((method) =>
      ["post", "patch", "put", "delete"].includes(method) ? [{ method, path }] : [],
    ),
  );
  for (const { method, path } of writes) {
    const url = path.replaceAll(/\{\w+\}/g, made.id);
    const refused = await send(hub, method.toUpperCase(), url, bodies[`${method} ${path}`]);
    const text = await refused.text();
    t.equal(refused.status, 409, `${method} ${path}: ${text}`);
    const names = path.includes("{webhook_id}") ? "a" : null;
    t.match(JSON.parse(text), { code: "read_only_hub", params: { cell: names } }, `${method} ${path}`);
  }
  const one = `/webhooks/${made.id}`;
  t.strictSame(await getJson(hub, one), atHub(await getJson<object>(cell, one)), "nothing has changed");
  t.comment(`${writes.length} routes that write are refused by a hub`);
}

t.test("clients that hop between hubs miss nothing, and webhooks are only read", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const hubs = await Promise.all([startHub(t, server), startHub(t, server), startHub(t, server)]);
  const synced = new Map<string, string>();
  let mark = "2020-01-01T00:00:00Z";
  let isShipped = false;
  const cells = Promise.all([
    startCell(t, server, { cell: "a", runs: 2, seed: 1 }),
    startCell(t, server, { cell: "b", runs: 2, seed: 2 }),
  ]).then((started) => {
    isShipped = true;
    return started;
  });
  let syncs = 0;
  const sync = async (): Promise<void> => {
    const hub = hubs[syncs++ % hubs.length] as ServiceProcess;
    const since = encodeURIComponent(mark);
    const { runs } = await getJson<Runs>(hub, `/runs?limit=1000&updated_since=${since}`);
    for (const run of runs) {
      synced.set(run.id, run.updated_at);
      if (run.updated_at > mark) mark = run.updated_at;
    }
  };
  while (!isShipped) {
    await sync();
    await setTimeout(20);
  }
  const [cell] = await cells;
  for (const hub of hubs) await untilCaughtUp(t, hub, 4);
  await sync();
  const { runs } = await getJson<Runs>(hubs[1], "/runs?limit=100");
  t.strictSame(
    [...synced].sort(),
    runs.map((run) => [run.id, run.updated_at]).sort(),
    "an incremental sync that asks another hub each time has every run as it is",
  );
  t.comment(`${syncs} syncs over ${hubs.length} hubs, ${synced.size} runs, none missed`);

  let last = "2020-01-01T00:00:00Z";
  const told: Followed[] = [];
  for (let nth = 0; nth < 4; nth++) {
    const events = await follow(hubs[nth % hubs.length] as ServiceProcess, last, 1);
    told.push(...events);
    last = events.at(-1)?.id as string;
  }
  const inOrder = runs.map((run) => run.updated_at).sort();
  t.strictSame(
    told.map(({ run }) => run.updated_at),
    inOrder,
    "so has a stream that goes on at another hub",
  );

  const hub = hubs[0];
  await webhooksAreReadOnly(t, hub, cell);
  const frame = (await getJson<RunDetail>(hub, `/runs/${runs[0]?.id}`)).results.frame_ids[0];
  const file = await get(hub, `/sensor/frames/${frame}/file.npy`);
  t.equal(file.status, 404);
  t.match(JSON.parse(file.text), { code: "not_shipped", params: { cell: runs[0]?.cell } });
  t.equal((await getJson<Health>(hub, "/health")).components.log?.status, "healthy", "that is no damage");
});

interface Health {
  status: string;
  components: Record<string, { status: string; detail: string | null }>;
}

t.test("a hub without its plant says so, goes on reading, and comes back", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startFor(t);
  const hub = await startHub(t, server);
  const plantOf = async (): Promise<string> => {
    const { components } = await getJson<Health>(hub, "/health");
    return `${components.plant?.status} ${components.plant?.detail}`;
  };
  const untilPlant = (expected: RegExp) => until(t, String(expected), async () => expected.test(await plantOf()));
  await untilPlant(/^down since .*INSPECTION_LOG is not there: make it with/);
  t.equal((await get(hub, "/livez")).text, '{"status":"starting"}');
  t.equal((await get(hub, "/health")).status, 503);
  t.equal((await getJson<Runs>(hub, "/runs")).runs.length, 0);
  await server.with((client) => client.createLogStream(1));
  await untilPlant(/^healthy null$/);
  await startCell(t, server, { cell: "a", runs: 1, seed: 1 });
  await untilCaughtUp(t, hub, 1);
  await server.kill();
  await untilPlant(/^down since .*the plant cannot be read: /);
  t.match(await getJson(hub, "/runs"), { total: 1 });
  await server.start();
  await untilPlant(/^healthy null$/);
  t.equal((await hub.end()).code, 0, "it stops cleanly");
});

t.test(
  "a hub catches up with the cells, whatever else the stream has at its end",
  { skip: noNatsServer },
  async (t) => {
    const server = await NatsServer.startWithLog(t);
    await server.addLogSubject("line3.other");
    const empty = await startHub(t, server);
    await untilCaughtUp(t, empty, 0);
    await startCell(t, server, { cell: "a", runs: 1, seed: 1 });
    await server.addLogSubject("line3.another");
    await untilCaughtUp(t, await startHub(t, server), 1);
    await untilCaughtUp(t, empty, 1);
  },
);
