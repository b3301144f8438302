import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import t from "tap";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { hasNoCompiler, preloadedLibrary } from "../../helpers/preload/preloaded-library.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { until } from "../../helpers/until.js";

const RUNS = 10;
const ATTEMPTS = 5;
/** Far more than a busy machine takes for it: a bound for a failure, not a wait. */
const SHOWN_WITHIN_MS = 20_000;

async function getJson(service: ServiceProcess, path: string) {
  const response = await fetch(`http://127.0.0.1:${service.port}${path}`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function runIds(service: ServiceProcess): Promise<string[]> {
  const { status, body } = await getJson(service, "/runs?limit=1000");
  if (status !== 200) throw new Error(`GET /runs: ${status}`);
  return (body.runs as { id: string }[]).map(({ id }) => id);
}

/** Newest last, once all of these are there: what was acknowledged is durable, and shows a moment later. */
async function listedRuns(service: ServiceProcess, wanted: readonly string[]): Promise<string[]> {
  const deadlineMs = performance.now() + SHOWN_WITHIN_MS;
  for (;;) {
    const ids = (await runIds(service)).sort();
    if (wanted.every((id) => ids.includes(id)) || performance.now() > deadlineMs) return ids;
    await pause(10);
  }
}

/** Resolves when the service has made its ballast: until then it syncs something that nothing depends on. */
async function untilBallast(service: ServiceProcess): Promise<void> {
  await until("the ballast", () => existsSync(join(service.dataDirectory, "ballast.bin")));
}

function createRun(producer: RawProducer, id: string): Promise<unknown> {
  return producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
}

t.test("fdatasync of the running service returns EIO, by a preloaded library", { skip: hasNoCompiler }, async (t) => {
  const library = preloadedLibrary(t, "failing-sync");
  const order = `${library}.order`;
  const environment = { LD_PRELOAD: library, FAIL_ONE_SYNC: order };
  const service = await ServiceProcess.startFor(t, { environment });
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "cell");
  const acknowledged: string[] = [];
  await producer.accept(programPut());
  for (let run = 0; run < RUNS; run++) {
    const id = nextId();
    await createRun(producer, id);
    acknowledged.push(id);
  }
  await untilBallast(service);
  // The next sync of the service's process fails, and only that one.
  writeFileSync(order, "");

  let acknowledgedAfter = 0;
  const refusals: string[] = [];
  const isRefused = (error: Error): void => {
    refusals.push(error.message);
  };
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    // The first one is on its way when the sync fails; then come reconnects, as a producer makes them.
    const again =
      attempt === 0
        ? producer
        : await RawProducer.connect({ path: service.cellSocketPath }, "cell").catch((error: Error) => isRefused(error));
    if (again === undefined) continue;
    await createRun(again, nextId()).then(() => acknowledgedAfter++, isRefused);
  }
  t.equal(acknowledgedAfter, 0);
  t.equal(refusals.length, ATTEMPTS);
  for (const refusal of refusals.slice(1)) t.match(refusal, /"unavailable".*EIO/);
  const health = await getJson(service, "/health");
  t.match(health.body, { status: "down", components: { log: { status: "down", detail: /EIO/ } } });
  t.same(await listedRuns(service, acknowledged), acknowledged, "reads go on");
  await producer.close();
  const ended = await service.end();
  t.equal(ended.code, 1, "it did not end well, and says so once more");
  t.match(ended.stderr, /^inspection-service: nothing was recorded since .*EIO/m);

  const { dataDirectory } = service;
  t.match(await checkDirectory(dataDirectory), { ok: true });
  const restarted = await ServiceProcess.startFor(t, { dataDirectory });
  const there = new Set(await runIds(restarted));
  const lost = acknowledged.filter((id) => !there.has(id));
  t.same(lost, []);
  const resending = await RawProducer.connect({ path: restarted.cellSocketPath }, "cell");
  await resending.accept({ type: "run.create", id: nextId(), program_id: PROGRAM_ID });
  await resending.close();
  t.comment(
    `one real EIO after ${acknowledged.length} acknowledgements: ${acknowledgedAfter} acknowledged after it in ${ATTEMPTS} attempts, ` +
      `${lost.length} lost`,
  );
});

t.test("the demo ends too when its disk has failed", { skip: hasNoCompiler }, async (t) => {
  const library = preloadedLibrary(t, "failing-sync");
  const order = `${library}.order`;
  const environment = { LD_PRELOAD: library, FAIL_ONE_SYNC: order };
  const service = await ServiceProcess.startFor(t, { args: ["demo"], environment });
  // By then it has marked its store: that sync may fail, and nothing depends on it.
  await service.untilStdout(/^open http/m);
  await untilBallast(service);
  writeFileSync(order, "");
  const isDown = async (): Promise<boolean> => {
    const { body } = await getJson(service, "/health");
    return (body as { components: { log: { status: string } } }).components.log.status === "down";
  };
  await until("the log is down", isDown);
  const ended = await service.end("SIGTERM");
  t.equal(ended.code, 1);
  t.match(ended.stderr, /EIO/);
});
