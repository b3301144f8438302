import { readdirSync, readlinkSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t, { type Test } from "tap";
import { SYSTEM_TIMERS } from "../../../core/timers.js";
import { ArtefactWork, type ArtefactWorkOptions } from "../../../http/downloads/artefact-work.js";
import { PROCESSED_RUN, processedCell, SURFACE } from "../../helpers/captures/processed-cell.js";
import { type FrontHere, frontsHere } from "../../helpers/http/fronts-here.js";
import { until } from "../../helpers/http/handler-server.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { ArmedTimers } from "../../helpers/recorder/armed-timers.js";

const CLOUD = `/sensor/frames/${SURFACE}/file.raw.ply`;
const CSV = `/runs/${PROCESSED_RUN}/steps/2/cl_sweep.csv`;
const GET = (path: string, headers = "") => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;

const built = processedCell();

/** A service whose captures lie in a folder, and threads that do their tasks but for the faults that the test sets. */
async function faultyService(t: Test, here: FrontHere | undefined, options: Partial<ArtefactWorkOptions> = {}) {
  const { cell } = await built;
  const folder = t.testdir({ faults: {}, [PROCESSED_RUN]: {} });
  const captures = join(folder, PROCESSED_RUN, "capture");
  writeFileSync(captures, cell.files.get(`${PROCESSED_RUN}/capture`) as Uint8Array);
  process.env.FAULTS = join(folder, "faults");
  const reports: unknown[] = [];
  const work = new ArtefactWork({
    threads: 1,
    timers: SYSTEM_TIMERS,
    threadModule: new URL("../../helpers/captures/faulty-artefact-thread.js", import.meta.url),
    report: (_message, fields) => reports.push(fields.code),
    onReadDamage: () => {},
    nowUs: () => Date.UTC(2026, 0, 31) * 1000,
    ...options,
  });
  t.teardown(() => work.close());
  cell.folder = `${folder}/`;
  cell.make = work.makeForClient;
  const port = await cell.listen(here);
  return {
    port,
    work,
    reports,
    captures,
    fault: (name: string) => writeFileSync(join(folder, "faults", name), ""),
    faults: () => readdirSync(join(folder, "faults")),
    get: (path: string, headers?: string) => rawRequest(port, GET(path, headers)),
    /** Nothing waits, runs or is open. */
    async isQuiet(): Promise<void> {
      const { openFiles } = cell;
      await until(() => cell.openFiles === 0 && work.figures().running === 0 && work.figures().waitingClients === 0);
      t.equal(openFiles, 0);
    },
  };
}

function onBothFronts(name: string, run: (t: Test, here: FrontHere) => Promise<void>): void {
  for (const here of frontsHere(t)) t.test(`${name} (${here.name})`, (t) => run(t, here));
}

t.teardown(async () => (await built).cell.close());

onBothFronts(
  "a thread that dies at a piece costs the client nothing; one that dies twice, this download",
  async (t, here) => {
    const { get, fault, faults, reports, work, isQuiet } = await faultyService(t, here);
    const whole = await get(CLOUD);
    t.equal(whole?.status, 200);
    fault("crash-1");
    t.ok((await get(CLOUD))?.body.equals(whole?.body as Buffer), "every byte");
    t.same(reports, ["worker_crashed"]);
    t.equal(work.row().status, "healthy");
    fault("crash-1");
    fault("crash-2");
    const failed = await get(CLOUD);
    t.equal(failed?.status, 500);
    t.match(failed?.json(), { code: "internal_error", retryable: true });
    t.match(work.row(), {
      status: "degraded",
      detail: /^since 2026-01-31T00:00:00.000000Z a task failed, last packPoints: /,
    });
    t.ok((await get(CLOUD))?.body.equals(whole?.body as Buffer), "the next is served");
    t.equal(work.row().status, "healthy", "what failed has been done since");
    fault("hold-1");
    const broken = get(CLOUD);
    await until(() => faults().includes("hold-1-taken"));
    fault("crash-1");
    fault("crash-2");
    fault("go");
    t.equal(await broken, undefined, "after the first bytes only a broken connection tells that some are missing");
    t.equal((await get(CSV))?.status, 200);
    t.match(work.row().detail, /a task failed, last packPoints: /);
    t.equal((await get(CLOUD))?.status, 200);
    t.equal(work.row().status, "healthy");
    await isQuiet();
  },
);

onBothFronts("more clients than may wait: 503 with Retry-After, and those who wait are served", async (t, here) => {
  const { get, fault, faults, work, isQuiet } = await faultyService(t, here, { waitingClients: 1 });
  fault("hold-1");
  const first = get(CLOUD);
  await until(() => faults().includes("hold-1-taken"));
  const second = get(CSV);
  await until(() => work.figures().waitingClients === 1);
  const refused = await get(CLOUD, "Range: bytes=2000000-\r\n");
  t.equal(refused?.status, 503);
  t.equal(refused?.headers["retry-after"], "1");
  t.match(refused?.json(), { code: "unavailable", retryable: true });
  fault("go");
  t.same([(await first)?.status, (await second)?.status], [200, 200]);
  t.equal((await get(CLOUD, "Range: bytes=2000000-\r\n"))?.status, 206);
  t.equal(work.row().status, "healthy", "that is no failure");
  await isQuiet();
});

onBothFronts("a client that no thread comes to in time is told so", async (t, here) => {
  const timers = new ArmedTimers(25_000);
  const { get, fault, faults, work, isQuiet } = await faultyService(t, here, { timers });
  fault("hold-1");
  const input = { path: "x", channels: 1, appends: [] };
  const held = work
    .makeForClient("indexSeries", input, { signal: new AbortController().signal, isContinued: true })
    .catch(() => {});
  await until(() => faults().includes("hold-1-taken"));
  const waiting = get(CSV);
  await until(() => work.figures().waitingClients === 1);
  await timers.letOneRunOut();
  const refused = await waiting;
  t.equal(refused?.status, 503);
  t.equal(refused?.headers["retry-after"], "1");
  fault("go");
  await held;
  t.equal((await get(CSV))?.status, 200);
  t.equal(timers.armed, 0);
  await isQuiet();
});

onBothFronts("a client that goes while it waits or takes its bytes leaves nothing behind", async (t, here) => {
  const { get, port, fault, faults, work, captures, isQuiet } = await faultyService(t, here);
  const whole = (await get(CLOUD))?.body as Buffer;
  fault("hold-1");
  const held = await RawConnection.open(port);
  held.send(GET(CLOUD));
  await until(() => faults().includes("hold-1-taken"));
  const waiting = await RawConnection.open(port);
  waiting.send(GET(CSV));
  await until(() => work.figures().waitingClients === 1);
  waiting.close();
  await until(() => work.figures().waitingClients === 0);
  t.equal(work.figures().running, 1, "what waited for a thread does not wait any more");
  held.close();
  fault("go");
  const slow = await RawConnection.open(port);
  slow.send(GET(CLOUD));
  await until(() => slow.receivedBytes > 0);
  slow.socket.pause();
  slow.close();
  await isQuiet();
  if (process.platform === "linux") {
    const open = () => readdirSync("/proc/self/fd").filter((fd) => linkOf(fd) === captures);
    while (open().length > 0) await eventLoopTurn();
    t.same(open(), [], "no file is open");
  }
  t.ok((await get(CLOUD))?.body.equals(whole), "the next is served");
});

onBothFronts("captures that go away while pieces are made end the download, and no other", async (t, here) => {
  const { get, port, captures, fault, faults, work, isQuiet } = await faultyService(t, here);
  fault("hold-1");
  const connection = await RawConnection.open(port);
  connection.send(GET(CLOUD));
  await until(() => faults().includes("hold-1-taken"));
  renameSync(captures, `${captures}.gone`);
  fault("go");
  const refused = await connection.response();
  t.equal(refused?.status, 503, "it is to be asked again, which tells what became of it");
  t.match(refused?.json(), { code: "unavailable", retryable: true });
  connection.close();
  renameSync(`${captures}.gone`, captures);
  t.equal((await get(CLOUD))?.status, 200);
  t.equal(work.row().status, "healthy", "retention may have removed it");
  await isQuiet();
});

t.test("what comes when the pool is closed is refused, and what waits too", async (t) => {
  const { get, work, fault, faults } = await faultyService(t, undefined);
  fault("hold-1");
  const download = get(CSV);
  await until(() => faults().includes("hold-1-taken"));
  await work.close();
  for (const response of [await download, await get(CSV)]) t.match(response?.json(), { code: "unavailable" });
  const answer = await work.makeForRecorder({ name: "verify", input: { path: "x", extents: [] } });
  t.match(answer, { error: { code: "closed" } });
  t.equal(work.row().status, "healthy");
});

t.test("the row of health and the figures say what became of tasks", async (t) => {
  const damages: string[] = [];
  let nowUs = Date.UTC(2026, 0, 31) * 1000;
  const { work, captures } = await faultyService(t, undefined, {
    onReadDamage: ({ message }) => damages.push(message),
    nowUs: () => nowUs,
  });
  t.match(work.row(), { key: "artefacts", status: "healthy", detail: null, required: true });
  const verify = (length: number, crc32 = 0, path = captures) =>
    work.makeForRecorder({ name: "verify", input: { path, extents: [{ offset: 0, lengthBytes: length, crc32 }] } });
  t.same(await verify(0), { value: { verifiedBytes: 0 } });
  t.match(await verify(1, 1, "/nowhere"), { error: { code: "capture_missing" } });
  t.equal(work.row().status, "healthy");
  t.match(await verify(100, 1), { error: { code: "capture_damaged" } });
  t.match(work.row(), { status: "degraded", detail: /a task failed, last verify: .* \(capture_damaged\)$/ });
  t.equal(damages.length, 1);
  t.match(await verify(0), { value: Object });
  t.equal(work.row().status, "healthy", "the same has been done since");
  await verify(100, 1);
  t.equal(work.row().status, "degraded");
  nowUs += 25 * 3600 * 1_000_000;
  t.equal(work.row().status, "healthy", "it is old");
  const counts = [...work.figures().tasks].map(({ labels, durations }) => [
    labels.task,
    labels.outcome,
    durations.counts.reduce((sum, count) => sum + count, 0),
  ]);
  t.same(counts, [
    ["verify", "done", 2],
    ["verify", "capture_missing", 1],
    ["verify", "capture_damaged", 2],
  ]);
});

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}
