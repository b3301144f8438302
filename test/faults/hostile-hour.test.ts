/**
 * Clients that do all the harm they can, all at once, beside an honest producer, reader and receiver. `npm run test:long` lets them for an hour on
 * each front (HOSTILE_MINUTES counts all fronts together); `npm test` for five minutes in all.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import t from "tap";
import { frontsHere } from "../helpers/http/fronts-here.js";
import { HonestCell } from "../helpers/link/honest-cell.js";
import { startHelper } from "../helpers/process/child-lines.js";
import { openFilesByKind, residentBytes } from "../helpers/process/process-figures.js";
import { ServiceProcess } from "../helpers/process/service-process.js";
import { isFullSize, sized } from "../helpers/test-size.js";

const MIB = 1024 * 1024;
const MINUTES_IN_ALL = sized(5, 120);
/** The newest build of uWebSockets.js that loads here, and node:http. */
const FRONTS = [...new Map([...frontsHere(t)].reverse().map((here) => [here.front, here])).values()];
const HOSTILE_MS = (Number(process.env.HOSTILE_MINUTES ?? MINUTES_IN_ALL) * 60_000) / FRONTS.length;
/** With fewer the hostile would take all places of HTTP clients, which is what they may. */
const DESCRIPTORS = "4096";
/** Checks of the run whose report the hostile ask for: some 3 MB. */
const LARGE_CHECKS = 8_000;
/** Judged where nothing else runs. Beside other tests every honest read must be answered within its deadline (honest-cell.ts). */
const MOST_READ_P99_MS = 250;
const MOST_RESIDENT_BYTES = 1_024 * MIB;
const MOST_LOG_BYTES_A_SECOND = 20 * 1024;
/** All is as before within a minute of their end. */
const CALM_MS = 60_000;
/** V8 and the allocator keep room for the next load: some 330 MiB on Node 20, 310 on Node 22, 380 on Node 26, 530 on Node 24. */
const MOST_RESIDENT_MORE = 640 * MIB;
/** What the front may hold more than before. Up to 128 MiB of it is young garbage, and there are the buffers that this garbage names. */
const MOST_HELD_MORE = 256 * MIB;
const MOST_SOCKETS_MORE = 12;

t.setTimeout(2 * HOSTILE_MS + FRONTS.length * 4 * CALM_MS);

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function listenerPort({ stderr }: ServiceProcess): string {
  return /"cell_listen":\{[^}]*"port":(\d+)/.exec(stderr)?.[1] ?? /"cell_listen":"[^"]*:(\d+)"/.exec(stderr)?.[1] ?? "";
}

async function until(what: string, isSo: () => Promise<boolean> | boolean, limitMs: number): Promise<string> {
  const beginMs = performance.now();
  while (!(await isSo())) {
    if (performance.now() - beginMs > limitMs) return `not within ${limitMs / 1000} s: ${what}`;
    await pause(250);
  }
  return "";
}

function checkNames(report: Buffer): string[] {
  const checks: { name: string }[] = JSON.parse(report.toString()).quality_report?.checks ?? [];
  return checks.map(({ name }) => name);
}

/** Every acknowledged run is there once, as it was sent, and its event came. */
async function holdAgainst(honest: HonestCell): Promise<string[]> {
  const wrong: string[] = [];
  for (const id of honest.acknowledgedRuns) {
    const { status, body } = await honest.ask("GET", `/runs/${id}/quality-report`);
    const names = status === 200 ? checkNames(body) : [];
    if (names.length === 0 || names.some((name, at) => name !== `check ${at}`))
      wrong.push(`${id}: ${status}, ${names.length} checks`);
  }
  const { body } = await honest.ask("GET", "/runs?limit=1");
  const { total } = JSON.parse(body.toString());
  if (total !== honest.acknowledgedRuns.length)
    wrong.push(`${total} runs, of ${honest.acknowledgedRuns.length} acknowledged`);
  return wrong;
}

const lacking = (all: readonly string[], some: ReadonlySet<string>) => all.filter((id) => !some.has(id));

class Samples {
  mostResidentBytes = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number) {
    this.#timer = setInterval(() => {
      this.mostResidentBytes = Math.max(this.mostResidentBytes, residentBytes(pid));
    }, 250);
  }

  end(): void {
    clearInterval(this.#timer);
  }
}

async function socketsOf({ pid }: ServiceProcess): Promise<number> {
  return openFilesByKind(pid).get("socket") ?? 0;
}

/** Bytes of the front's heap that are in use, and of the buffers outside it. */
async function heldBytes(honest: HonestCell): Promise<number> {
  const metrics = (await honest.ask("GET", "/metrics")).body.toString();
  const amounts = [...metrics.matchAll(/^nodejs_(?:heap_size_used|external_memory)_bytes (\d+)$/gm)];
  if (amounts.length !== 2) throw new Error("/metrics lacks the memory of the front");
  return amounts.reduce((sum, [, bytes]) => sum + Number(bytes), 0);
}

async function healthOf(honest: HonestCell): Promise<string> {
  return JSON.parse((await honest.ask("GET", "/health")).body.toString()).status;
}

for (const { name, environment } of FRONTS) {
  t.test(`honest clients beside hostile ones, ${name}`, async (t) => {
    const tokenFile = join(t.testdir(), "token");
    writeFileSync(tokenFile, "the-right-token\n");
    const args = ["serve", "--cell-listen", "127.0.0.1:0", "--cell-token-file", tokenFile];
    const service = await ServiceProcess.startFor(t, { args, environment, descriptorLimit: DESCRIPTORS });
    const honest = new HonestCell(service);
    t.teardown(() => honest.close());
    await honest.prepare();
    const large = await honest.playRun(LARGE_CHECKS);
    const before = {
      sockets: await socketsOf(service),
      resident: residentBytes(service.pid),
      held: await heldBytes(honest),
      log: service.stderr.length,
    };

    const hostile = startHelper("http/hostile-clients", [
      String(service.port),
      listenerPort(service),
      service.cellSocketPath,
      (await honest.largePaths(large)).join(),
    ]);
    t.teardown(() => hostile.end("SIGKILL"));
    await hostile.line(0);
    const samples = new Samples(service.pid);
    honest.begin();
    await pause(HOSTILE_MS);
    await honest.stop();
    samples.end();
    await hostile.end("SIGTERM");

    const { counts, mostOpen } = JSON.parse(await hostile.line(1));
    const p99 = percentile(honest.readMs, 0.99);
    const logBytesASecond = (service.stderr.length - before.log) / (HOSTILE_MS / 1000);
    t.comment(`what they did: ${JSON.stringify(counts)}; open at once: ${JSON.stringify(mostOpen)}`);
    t.comment(
      `${honest.acknowledgedRuns.length} runs; ${honest.readMs.length} reads, p50 ${percentile(honest.readMs, 0.5).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms; ` +
        `acknowledgements p99 ${percentile(honest.acknowledgementMs, 0.99).toFixed(1)} ms; ` +
        `at most ${(samples.mostResidentBytes / MIB).toFixed(0)} MiB resident, ${(logBytesASecond / 1024).toFixed(1)} KiB/s of log`,
    );
    t.same(honest.faults.slice(0, 5), [], "every honest message and read succeeded");
    if (isFullSize) t.ok(p99 < MOST_READ_P99_MS, `p99 of honest reads: ${p99.toFixed(1)} ms`);
    t.ok(samples.mostResidentBytes < MOST_RESIDENT_BYTES, "memory is bounded");
    t.ok(logBytesASecond < MOST_LOG_BYTES_A_SECOND, "the log is bounded");

    const isCalm = async () => {
      const isSmall = residentBytes(service.pid) < before.resident + MOST_RESIDENT_MORE;
      return (
        isSmall &&
        (await heldBytes(honest)) <= before.held + MOST_HELD_MORE &&
        (await socketsOf(service)) <= before.sockets + MOST_SOCKETS_MORE &&
        (await healthOf(honest)) === "healthy"
      );
    };
    t.equal(await until("sockets, memory and health as before", isCalm, CALM_MS), "", "all is as before");
    const { status } = await honest.ask("POST", "/webhooks", {
      name: "late",
      url: "http://127.0.0.1:9/",
      subscribed_events: ["ProgramFailed"],
    });
    t.equal(status, 201, "a webhook can be made");
    t.same(await holdAgainst(honest), [], "what was acknowledged is stored, once");
    const missing = () => lacking(honest.acknowledgedRuns, honest.announcedRuns);
    t.equal(
      await until(`events of ${missing().length} runs`, () => missing().length === 0, CALM_MS),
      "",
      "every event came",
    );
    t.equal((await service.end()).code, 0, "it ends cleanly");
  });
}
