import { isDeepStrictEqual } from "node:util";
import t from "tap";
import { NatsServer, noNatsServer } from "../../helpers/plant/nats-server.js";
import { get, getJson, startCell, startHub, until, untilCaughtUp } from "../../helpers/plant/plant-processes.js";
import { runCommand, type ServiceProcess } from "../../helpers/process/service-process.js";

interface Runs {
  total: number;
  runs: { id: string; cell?: string; program_id: string; updated_at: string }[];
}

interface RunDetail {
  results: { frame_ids: string[] };
}

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

t.test("a hub answers as the cell does", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startFor(t);
  await server.with((client) => client.createLogStream(1));
  const cell = await startCell(t, server, { cell: "line3-cell7", runs: 5, seed: 3 });
  const hub = await startHub(t, server);
  await untilCaughtUp(t, hub, 5);
  const paths = await pathsOf(cell);
  for (const path of paths) {
    const [own, hubs] = [await get(cell, path), await get(hub, path)];
    t.equal(hubs.status, own.status, path);
    if (isDeepStrictEqual(comparable(hubs.text), comparable(own.text))) continue;
    t.strictSame(comparable(hubs.text), comparable(own.text), path);
  }
  const list = await getJson<Runs>(hub, "/runs");
  t.strictSame([...new Set(list.runs.map((run) => run.cell))], ["line3-cell7"], "each run names its cell");
  const marks = list.runs.map((run) => run.updated_at);
  t.equal(new Set(marks).size, marks.length, "no two runs have one mark");
  t.comment(`${paths.length} answers of a hub are those of its cell`);
  const { components } = await getJson<{ components: Record<string, { status: string; detail: string }> }>(
    hub,
    "/health",
  );
  t.match(components["cell_line3-cell7"], { status: /healthy|degraded/, detail: /^last message at 2/ });
});

t.test("every hub of a plant gives the same bytes", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startFor(t);
  await server.with((client) => client.createLogStream(1));
  const [first] = await Promise.all([startHub(t, server), startCell(t, server, { cell: "a", runs: 4, seed: 1 })]);
  await untilCaughtUp(t, first, 4);
  const late = startHub(t, server);
  const cells = [
    startCell(t, server, { cell: "b", runs: 4, seed: 2 }),
    startCell(t, server, { cell: "c", runs: 3, seed: 3 }),
  ];
  // The first hub is killed again and again while the cells ship.
  let killed = first;
  let kills = 0;
  let isShipped = false;
  const shipped = Promise.all(cells).then(() => {
    isShipped = true;
  });
  while (!isShipped) {
    await until(t, "the hub answers", async () => (await get(killed, "/livez")).status === 200);
    await killed.end("SIGKILL");
    kills++;
    killed = await startHub(t, server, first.dataDirectory);
  }
  await shipped;
  const hubs = [killed, await late, await startHub(t, server)];
  for (const hub of hubs) await untilCaughtUp(t, hub, 11);
  const paths = [...(await pathsOf(killed)), "/runs?cell=b&limit=2&offset=1", "/runs?cell=a&cell=c", "/runs?cell=d"];
  for (const path of paths) {
    const [one, ...others] = await Promise.all(hubs.map((hub) => get(hub, path)));
    for (const other of others) if (other.text !== one?.text) t.equal(other.text, one?.text, path);
  }
  t.comment(`${paths.length} answers of three hubs are the same bytes, after ${kills} kills of one`);
  const ids = (await getJson<Runs>(killed, "/runs?limit=100")).runs.map(({ id }) => id);
  t.strictSame(ids, [...ids].sort().reverse(), "newest first over all cells");
  const ofCells = async (query: string) => (await getJson<Runs>(killed, `/runs?${query}`)).total;
  t.strictSame([await ofCells("cell=b"), await ofCells("cell=a&cell=c"), await ofCells("cell=d")], [4, 7, 0]);
});
