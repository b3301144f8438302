/** Captures at a hub are the bytes of their cell, whatever happens to the hub, its disk and the plant. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { formatPath, type OfferedFormat } from "../../../core/run/manifest.js";
import { type CaptureKind, capturePath } from "../../../storage/captures/capture-path.js";
import { NatsServer, noNatsServer } from "../../helpers/plant/nats-server.js";
import { getJson, startHub, until, untilCaughtUp } from "../../helpers/plant/plant-processes.js";
import { untilShippedWhole } from "../../helpers/plant/shipping-service.js";
import { startDemo } from "../../helpers/process/demo-results.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { sized } from "../../helpers/test-size.js";

const ADDRESS = "http://cell-7.factory:8000";

interface Run {
  id: string;
  results: { frame_ids: string[] } | null;
  steps: { completed: { index: number; type: string }[] };
}

async function startPlant(t: Test): Promise<NatsServer> {
  const server = await NatsServer.startFor(t);
  const limits = ["--replicas", "1", "--capture-days", "90"];
  t.match(await runCommand(["plant", "init", "--plant", server.url, ...limits]), { code: 0 });
  return server;
}

/** A cell whose runs have ended, and are in the plant with their captures. */
async function startCell(t: Test, server: NatsServer, cell: string, runs: number, more: readonly string[]) {
  const args = ["demo", "--runs", String(runs), "--plant", server.url, "--cell", cell, "--base-url", "http://plant"];
  const service = await startDemo(t, { args: [...args, ...more] });
  await untilShippedWhole(service.port, runs, server);
  return service;
}

async function runsOf(service: ServiceProcess): Promise<Run[]> {
  const { runs } = await getJson<{ runs: { id: string }[] }>(service, "/runs?limit=100");
  return Promise.all(runs.map(({ id }) => getJson<Run>(service, `/runs/${id}`)));
}

/** The paths of all bytes of these runs. */
async function downloadsOf(service: ServiceProcess, runs: readonly Run[]): Promise<string[]> {
  const paths: string[] = [];
  for (const { id, results, steps } of runs) {
    const files = await getJson<{ name: string }[]>(service, `/runs/${id}/files`);
    for (const { name } of files) paths.push(`/runs/${id}/files/${encodeURIComponent(name)}`);
    for (const frame of results?.frame_ids ?? []) {
      const { available_formats: formats } = await getJson<{ available_formats: string[] }>(
        service,
        `/sensor/frames/${frame}/files`,
      );
      for (const format of formats) paths.push(`/sensor/frames/${frame}/${formatPath(format as OfferedFormat)}`);
      paths.push(`/sensor/frames/${frame}/overview.npy?points=10000`);
    }
    for (const { index, type } of steps.completed)
      if (type === "cl_sweep") paths.push(`/runs/${id}/steps/${index}/cl_sweep.csv`);
  }
  return [...new Set(paths)];
}

interface Download {
  status: number;
  headers: string;
  bytes: Buffer;
}

const COMPARED = ["content-type", "content-length", "content-range", "content-disposition", "etag", "accept-ranges"];

async function download(service: ServiceProcess, path: string, init: RequestInit = {}): Promise<Download> {
  const response = await fetch(`http://127.0.0.1:${service.port}${path}`, init);
  const bytes = Buffer.from(await response.arrayBuffer());
  const headers = COMPARED.map((name) => `${name}: ${response.headers.get(name)}`).join("\n");
  return { status: response.status, headers, bytes };
}

/** Compares what both answer to the same request. @returns bytes of the body */
async function compare(t: Test, cell: ServiceProcess, hub: ServiceProcess, path: string, init: RequestInit = {}) {
  const [own, hubs] = await Promise.all([download(cell, path, init), download(hub, path, init)]);
  // An error has its own trace id.
  const isSame = own.status >= 400 || hubs.bytes.equals(own.bytes);
  if (hubs.status !== own.status || hubs.headers !== own.headers || !isSame)
    t.fail(`${path}: ${hubs.status} ${hubs.headers} ${hubs.bytes.toString("latin1", 0, 300)}, not ${own.status}`);
  return own.bytes.length;
}

async function metric(service: ServiceProcess, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${service.port}/metrics`)).text();
  return Number(new RegExp(`^inspection_hub_${name} (\\d+)$`, "m").exec(text)?.[1] ?? Number.NaN);
}

function cachedFiles({ dataDirectory }: ServiceProcess): string[] {
  const names = readdirSync(join(dataDirectory, "captures"), { recursive: true }) as string[];
  return names.filter((name) => /\.(cap|rep)$/.test(name));
}

async function healthIsGood(t: Test, hub: ServiceProcess): Promise<void> {
  const { components } = await getJson<{ components: Record<string, { status: string }> }>(hub, "/health");
  for (const name of ["log", "plant", "artefacts"]) t.equal(components[name]?.status, "healthy", name);
}

t.test("a cell that ships all of its captures", { skip: noNatsServer }, async (t) => {
  const server = await startPlant(t);
  const cell = await startCell(t, server, "line3-cell7", 3, ["--seed", "5", "--plant-captures", "all"]);
  await t.test("every file, format, range and report of it", (t) => everyFile(t, server, cell));
  await t.test("a small cache, and bad options", (t) => smallCache(t, server, cell));
  await t.test("many clients, kills, damage, and a plant that goes away", (t) => manyClients(t, server, cell));
});

async function everyFile(t: Test, server: NatsServer, cell: ServiceProcess): Promise<void> {
  const hub = await startHub(t, server);
  await untilCaughtUp(t, hub, 3);
  const runs = await runsOf(cell);
  const paths = await downloadsOf(cell, runs);
  t.strictSame(await downloadsOf(hub, runs), paths);

  // Ranges first: they cost only the chunks that they touch.
  const [largest] = paths.filter((path) => path.endsWith("file.npy"));
  const { length } = (await download(cell, largest as string)).bytes;
  await compare(t, cell, hub, largest as string, { headers: { range: `bytes=${length - 10}-` } });
  t.ok((await metric(hub, "fetched_bytes")) < length + 2 * 1024 * 1024, "a range fetches what it touches");
  let ranges = 1;
  for (const path of paths) {
    for (const range of ["bytes=0-0", "bytes=1000-70000", "bytes=-1", "bytes=99999999999-"]) {
      await compare(t, cell, hub, path, { headers: { range } });
      ranges++;
    }
  }
  let bytes = 0;
  for (const path of paths) {
    bytes += await compare(t, cell, hub, path);
    const head = await download(hub, path, { method: "HEAD" });
    const own = await download(cell, path, { method: "HEAD" });
    t.strictSame([head.status, head.headers], [own.status, own.headers], `HEAD ${path}`);
    const etag = /etag: (.*)/.exec(own.headers)?.[1] as string;
    t.equal((await download(hub, path, { headers: { "if-none-match": etag } })).status, 304);
  }
  for (const { id } of runs) {
    const [own, hubs] = await Promise.all([cell, hub].map((one) => download(one, `/runs/${id}/report.html`)));
    const pictures = (page?: Download) => page?.bytes.toString().match(/data:image\/png;base64,[^"]+/g) ?? [];
    t.ok(pictures(own).length > 0);
    t.strictSame(pictures(hubs), pictures(own), "the report shows the same pictures");
  }
  t.equal((await download(hub, paths[0] as string, { method: "HEAD" })).bytes.length, 0);
  const formats = new Set(paths.map((path) => path.replace(/.*\/(?:frame-[0-9a-f-]+\.)?/, "").replace(/\?.*/, "")));
  for (const format of ["file.npy", "file.ply", "file.raw.ply", "file.png", "file.luminance.png", "preview.png"])
    t.ok(formats.has(format), format);
  t.ok(paths.some((path) => path.endsWith("cl_sweep.csv")));
  await healthIsGood(t, hub);
  t.comment(`${paths.length} files with ${bytes} bytes and ${ranges} ranges are those of the cell: 0 differences`);
}

t.test("reports and previews alone, and what is not shipped", { skip: noNatsServer }, async (t) => {
  const server = await startPlant(t);
  const cells = [
    await startCell(t, server, "line3-cell7", 2, ["--seed", "5", "--public-url", ADDRESS]),
    await startCell(t, server, "line3-cell8", 2, ["--seed", "6"]),
  ];
  const hub = await startHub(t, server);
  await untilCaughtUp(t, hub, 4);
  let previews = 0;
  let reports = 0;
  let missing = 0;
  for (const [nth, cell] of cells.entries()) {
    const name = ["line3-cell7", "line3-cell8"][nth];
    const url = [ADDRESS, null][nth];
    for (const path of await downloadsOf(cell, await runsOf(cell))) {
      const answer = await download(hub, path);
      const isReport = /\/files\/(?!frame-|step-)/.test(path);
      if (isReport || path.endsWith("preview.png")) {
        await compare(t, cell, hub, path);
        if (isReport) reports++;
        else previews++;
        continue;
      }
      missing++;
      t.equal(answer.status, 404, path);
      t.match(JSON.parse(answer.bytes.toString()), {
        code: "not_shipped",
        message: `the plant does not have these bytes: ask the cell ${name}${url ? ` at ${url}` : ""}`,
        params: { cell: name, public_url: url },
        retryable: true,
      });
      t.equal((await download(hub, path, { method: "HEAD" })).status, 404);
      t.equal((await download(hub, path, { headers: { range: "bytes=0-9" } })).status, 404);
    }
    for (const { id } of await runsOf(cell)) {
      const page = (await download(hub, `/runs/${id}/report.html`)).bytes.toString();
      t.match(page, /data:image\/png;base64,/, "the report shows the previews");
    }
  }
  t.ok(previews > 0 && reports > 0 && missing > 0);
  await healthIsGood(t, hub);
  t.comment(`${previews} previews and ${reports} reports as on the cells, ${missing} files not shipped`);
});

async function manyClients(t: Test, server: NatsServer, cell: ServiceProcess): Promise<void> {
  const started = await startHub(t, server);
  await untilCaughtUp(t, started, 3);
  const paths = await downloadsOf(cell, await runsOf(cell));
  const large = paths.filter((path) => path.endsWith("file.ply"))[0] as string;
  const expected = (await download(cell, large)).bytes;

  let hub = started;
  const gone = new AbortController();
  const clients = Array.from({ length: 100 }, (_, nth) =>
    download(hub, large, nth % 3 === 0 ? { signal: gone.signal } : {}).catch(() => undefined),
  );
  gone.abort();
  const answers = (await Promise.all(clients)).filter((answer) => answer !== undefined);
  t.ok(answers.length >= 66);
  t.ok(answers.every(({ status, bytes }) => status === 200 && bytes.equals(expected)));
  const chunks = await metric(hub, "fetched_chunks");
  await download(hub, large);
  t.equal(await metric(hub, "fetched_chunks"), chunks, "what is there is not fetched again");
  t.equal(await metric(hub, "fetched_bytes"), await metric(hub, "cache_bytes"), "each chunk was fetched once");
  t.comment(`100 clients of ${expected.length} bytes, 34 went away: ${chunks} chunks fetched`);

  const kills = sized(2, 4);
  for (let kill = 0; kill < kills; kill++) {
    const broken = paths.map((path) => download(hub, path).catch(() => undefined));
    await until(t, "a fetch", async () => cachedFiles(hub).length > 0);
    await hub.end("SIGKILL");
    await Promise.all(broken);
    const left = cachedFiles(hub).length;
    hub = await startHub(t, server, started.dataDirectory);
    t.equal(await metric(hub, "cache_bytes"), 0);
    t.strictSame(cachedFiles(hub), [], `a start removes the ${left} files that are left`);
  }
  for (const path of paths) await compare(t, cell, hub, path);
  t.equal((await hub.end()).code, 0);
  hub = await startHub(t, server, started.dataDirectory);

  // Bytes of the cache go bad before they are read for the first time.
  const preview = paths.filter((path) => path.endsWith("preview.png"))[0] as string;
  await compare(t, cell, hub, preview);
  const [name] = cachedFiles(hub) as [string];
  const file = join(started.dataDirectory, "captures", name);
  writeFileSync(
    file,
    readFileSync(file).map((byte) => ~byte & 0xff),
  );
  for (const path of paths) await compare(t, cell, hub, path);
  await healthIsGood(t, hub);

  await server.kill();
  await until(t, "the plant is down", async () => (await download(hub, "/health")).status === 503);
  for (const path of paths) await compare(t, cell, hub, path);
  t.equal((await hub.end()).code, 0);
  hub = await startHub(t, server, started.dataDirectory);
  t.match(JSON.parse((await download(hub, large)).bytes.toString()), {
    code: "unavailable",
    message: /the plant cannot be reached/,
  });
  await server.start();
  await until(t, "the plant is back", async () => (await download(hub, "/health")).status === 200);
  await compare(t, cell, hub, large);
}

async function smallCache(t: Test, server: NatsServer, cell: ServiceProcess): Promise<void> {
  const cacheBytes = 1024 * 1024;
  const args = ["hub", "--plant", server.url, "--base-url", "http://plant", "--cache-bytes", String(cacheBytes)];
  const hub = await ServiceProcess.startFor(t, { args });
  await untilCaughtUp(t, hub, 3);
  const paths = await downloadsOf(cell, await runsOf(cell));
  let order = paths;
  for (let round = 0; round < 2; round++) {
    await Promise.all(order.slice(0, 10).map((path) => compare(t, cell, hub, path)));
    for (const path of order) await compare(t, cell, hub, path);
    order = [...order].reverse();
  }
  await until(t, "the bound", async () => (await metric(hub, "cache_bytes")) <= cacheBytes);
  t.ok((await metric(hub, "evicted_bytes")) > 0);
  const kinds: [string, CaptureKind][] = [
    [".cap", "capture"],
    [".rep", "report"],
  ];
  const known = (await runsOf(cell)).flatMap(({ id }) => kinds.map(([, kind]) => capturePath(id, kind)));
  t.ok(
    cachedFiles(hub).every((name) => known.includes(name)),
    "the layout of a cell",
  );
  t.comment(`2 x ${paths.length} files through a cache of ${cacheBytes} bytes: 0 differences`);
  const refused = await runCommand(["hub", "--plant", server.url, "--cache-bytes", "0"]);
  t.match(refused, {
    code: 1,
    stderr: /--cache-bytes: "0" is not allowed; it must be "off", or a size of at least 1 byte/,
  });
}
