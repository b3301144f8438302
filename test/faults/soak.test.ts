/**
 * A real service under everything at once: ingest with captures, reads that know the answers (every format of frames among them), retention, and
 * whatever the store does by itself meanwhile. `npm run test:long` soaks for SOAK_MINUTES (10); a commit's size is a number of runs.
 */
import { readdirSync, statSync } from "node:fs";
import { Agent, get } from "node:http";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import t, { type Test } from "tap";
import { createRandom, type Random } from "../../core/random.js";
import { formatTimeUs } from "../../core/timestamps.js";
import { ProducerClient } from "../../workers/cell-link/producer-client.js";
import {
  FORMATS,
  type Format,
  isRight,
  type KnownRun,
  LARGE_WIDTH,
  LINES,
  linesOf,
  SERIES_CHANNELS,
  SERIES_PERIOD_US,
  SERIES_START_US,
  seriesOf,
  seriesRows,
  VALUE_BYTES,
} from "../helpers/captures/known-run.js";
import { frameBegin, frameLines, PROGRAM_ID, programPut, seriesAppend, WIDTH } from "../helpers/link/link-messages.js";
import { openFilesByKind, residentBytes, slopeOf } from "../helpers/process/process-figures.js";
import { runCommand, ServiceProcess } from "../helpers/process/service-process.js";
import { isFullSize } from "../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
const MIB = 1024 * 1024;
const SOAK_MS = isFullSize ? Number(process.env.SOAK_MINUTES ?? 10) * 60_000 : 0;
/** What a commit's size makes at least. */
const LEAST_RUNS = 45;
/** One run in so many is large: its frame takes the pool some tenths of a second, its clouds and its series have several pieces. */
const LARGE_EVERY = 20;
const SERIES_STEP = 2;
const EVENT_BYTES = 8_000;
const EVENTS = 30;
const EVENT_TEXT = "e".repeat(EVENT_BYTES);
/** Captures that retention keeps: those of some 25 runs, and of two large ones. */
const RETAIN_BYTES = (25 * WIDTH + 2 * LARGE_WIDTH) * LINES * VALUE_BYTES;
/** Half of the reads of captures are of the newest runs. Retention has removed few of these. */
const NEWEST_RUNS = 40;
const RUNS_AT_ONCE = 3;
const READERS = 3;
/**
 * Runs a second. The rate is fixed, so that the service is measured and not the speed of the machine today. The warm-up
 * has many, so that the caches are full when it ends; then come some 2 MiB of log.
 */
const WARM_RUNS_A_SECOND = 12;
const RUNS_A_SECOND = 4;
const WARM_UP_MS = isFullSize ? SOAK_MS / 3 : Number.POSITIVE_INFINITY;
const SAMPLES = 120;

/** How much memory may grow from the end of the warm-up (a third of the time) to the end, by the slope of all samples. */
const MOST_HEAP_GROWTH = 8 * MIB;
const MOST_RESIDENT_GROWTH = 64 * MIB;
/** Open files of a kind above those at the end of the warm-up. */
const MOST_FILES_MORE = 8;
/** Reader and writer of captures, and the log's readers in the front and in the recorder, each keep so many open at most (defaults). */
const KEPT_OPEN = 64;

/** Made while the stored bytes are read. If retention removes these, a download breaks off or must be asked again. */
const MADE_FORMATS: ReadonlySet<Format> = new Set(["raw.ply", "ply", "csv"]);
const BROKEN_OFF = 0;

interface Answer {
  status: number;
  body: Buffer;
}

class Soak {
  readonly service: ServiceProcess;
  readonly producer: ProducerClient;
  readonly ended: KnownRun[] = [];
  created = 0;
  reads = 0;
  gone = 0;
  cut = 0;
  readonly wrong: string[] = [];
  /** Right answers by format. */
  readonly right = new Map<Format, number>();
  /** Serial numbers of all runs that were begun, by run id. */
  readonly #serials = new Map<string, string>();
  isOver = false;
  readonly #random: Random;
  /** Node's agent obeys the service's `Keep-Alive: timeout=5` only if it has a timeout too. */
  readonly #agent = new Agent({ keepAlive: true, maxSockets: READERS, timeout: 60_000 });

  constructor(service: ServiceProcess, random: Random) {
    this.service = service;
    this.#random = random;
    this.producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "soak" });
  }

  get(path: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = get({ host: "127.0.0.1", port: this.service.port, path, agent: this.#agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }));
        response.on("error", reject);
      });
      request.on("error", reject);
    });
  }

  async json(path: string): Promise<Record<string, unknown>> {
    return JSON.parse((await this.get(path)).body.toString()) as Record<string, unknown>;
  }

  /** One run from begin to end, waited for as a reader sees it. */
  async run(): Promise<void> {
    const { producer } = this;
    const id = producer.nextRunId();
    const frameId = id.replace(/.{8}$/, this.created.toString(16).padStart(8, "0"));
    const [fill, width] = [this.created % 251, this.created % LARGE_EVERY === 1 ? LARGE_WIDTH : WIDTH];
    const known = { id, frameId, serial: `SN ${this.created}`, fill, width, report: Buffer.from(`report of ${id}`) };
    this.created++;
    this.#serials.set(id, known.serial);
    await producer.send({ type: "run.create", id, program_id: PROGRAM_ID, serial_number: known.serial });
    await producer.send({ type: "run.start", id });
    await producer.send({ ...frameBegin(frameId, id), width });
    for (let line = 0; line < LINES; line += LINES / 4) {
      await producer.send(frameLines(frameId, line, LINES / 4), linesOf(known, LINES / 4));
    }
    await producer.send({ type: "frame.end", id: frameId });
    const rows = seriesRows(known) / 2;
    for (const firstRow of [0, rows]) {
      const first_timestamp = formatTimeUs(SERIES_START_US + firstRow * SERIES_PERIOD_US);
      const append = { ...seriesAppend(id, SERIES_STEP, SERIES_CHANNELS), first_timestamp };
      await producer.send(append, new Uint8Array(seriesOf(known, firstRow, rows).buffer));
    }
    for (let event = 0; event < EVENTS; event++) {
      const data = { text: EVENT_TEXT, event };
      await producer.send({ type: "event.add", run_id: id, event_type: "note", data });
    }
    const file = { type: "file.put", run_id: id, name: "report.pdf", content_type: "application/pdf" };
    await producer.send(file, known.report);
    await producer.deliver({ type: "run.finish", id });
    while ((await this.json(`/runs/${id}`)).status !== "completed") await pause(20);
    this.ended.push(known);
  }

  /** One question whose answer is known. */
  async read(): Promise<void> {
    const known = this.ended[this.#random.integer(0, this.ended.length - 1)];
    if (known === undefined) return void (await pause(20));
    this.reads++;
    const kind = this.#random.integer(0, 5);
    if (kind === 0) {
      const run = await this.json(`/runs/${known.id}`);
      const { frame_ids } = (run.results ?? {}) as { frame_ids?: string[] };
      const events = run.event_log as { event_type: string; data: { text: string; event: number } }[] | undefined;
      const isRight =
        run.status === "completed" && run.serial_number === known.serial && frame_ids?.[0] === known.frameId;
      const texts = events?.filter(
        ({ event_type, data }, nth) => event_type === "note" && data.event === nth && data.text === EVENT_TEXT,
      );
      if (!isRight || events?.length !== EVENTS || texts?.length !== EVENTS)
        this.wrong.push(`run ${known.id}: ${JSON.stringify(run).slice(0, 300)}`);
    } else if (kind === 1) {
      const least = this.ended.length;
      const page = await this.json(`/runs?status=completed&limit=20&offset=${this.#random.integer(0, 20)}`);
      const rows = page.runs as { id: string; status: string; serial_number: string }[];
      const isRight =
        (page.total as number) >= least &&
        (page.total as number) <= this.created &&
        rows.every(
          ({ id, status, serial_number }) => status === "completed" && serial_number === this.#serials.get(id),
        ) &&
        new Set(rows.map(({ id }) => id)).size === rows.length;
      if (!isRight) this.wrong.push(`total ${String(page.total)} with ${least} to ${this.created} runs`);
    } else if (kind === 2) {
      const page = await this.json(`/runs?serial_number=${encodeURIComponent(known.serial)}`);
      const [run] = page.runs as { id: string }[];
      if (page.total !== 1 || run?.id !== known.id)
        this.wrong.push(`serial ${known.serial}: ${JSON.stringify(page).slice(0, 300)}`);
    } else if (kind === 3) {
      const { status, body } = await this.get(`/runs/${known.id}/files/report.pdf`);
      if (status !== 200 || !body.equals(known.report)) this.wrong.push(`report of ${known.id}: ${status}`);
    } else {
      const newest = this.ended.at(-this.#random.integer(1, NEWEST_RUNS));
      await this.#readCaptures(kind === 4 ? known : (newest ?? known));
    }
  }

  /** A format of the frame, or the series, as it was sent; or none once the manifest says that retention removed it. */
  async #readCaptures(known: KnownRun): Promise<void> {
    const format = this.#random.pick(FORMATS);
    const name = format === "csv" ? `step-${SERIES_STEP}-cl_sweep.csv` : `frame-${known.frameId}.${format}`;
    const own =
      format === "csv"
        ? `/runs/${known.id}/steps/${SERIES_STEP}/cl_sweep.csv`
        : `/sensor/frames/${known.frameId}/file.${format}`;
    const isByName = this.#random.chance(0.5);
    const answer = await this.#download(isByName ? `/runs/${known.id}/files/${name}` : own);
    if (answer?.status === 200) {
      if (await isRight(known, format, answer.body)) this.right.set(format, (this.right.get(format) ?? 0) + 1);
      else this.wrong.push(`${name} of ${known.id}: other bytes`);
      return;
    }
    // The manifest tells of a removal before a client can see anything else of it.
    const files = JSON.parse((await this.get(`/runs/${known.id}/files`)).body.toString()) as {
      name: string;
      deleted_at: string | null;
    }[];
    const file = files.find((one) => one.name === name);
    const status = answer?.status ?? BROKEN_OFF;
    const isGone = status === (isByName ? 410 : 404);
    const isCut = MADE_FORMATS.has(format) && (status === BROKEN_OFF || status === 503);
    if (typeof file?.deleted_at !== "string" || !(isGone || isCut))
      this.wrong.push(`${name} of ${known.id}: ${status}, ${file?.deleted_at}`);
    if (isCut) this.cut++;
    else this.gone++;
  }

  /** Undefined where the body was broken off. */
  async #download(path: string): Promise<Answer | undefined> {
    try {
      return await this.get(path);
    } catch (error) {
      if ((error as Error).message !== "aborted") throw error;
      return undefined;
    }
  }

  /** Bytes that each of the service's threads holds after a collection, the front first. */
  async heapBytes(): Promise<number[]> {
    const reports = () => [...this.service.stderr.matchAll(/^\{"heap_report":(\[.*\])\}$/gm)];
    const before = reports().length;
    process.kill(this.service.pid, "SIGUSR2");
    while (reports().length === before) await pause(20);
    return JSON.parse(reports().at(-1)?.[1] ?? "[]") as number[];
  }

  close(): void {
    this.isOver = true;
    this.#agent.destroy();
    this.producer.destroy();
  }
}

function logLines(service: ServiceProcess): Record<string, unknown>[] {
  const lines = service.stderr.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

function folderBytes(folder: string): { files: number; bytes: number } {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return {
    files: files.length,
    bytes: files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0),
  };
}

t.test(`everything at once, seed ${seed}`, async (t) => {
  const reporter = resolve("dist/test/helpers/process/heap-reporter.js");
  const service = await ServiceProcess.start({
    args: ["serve", "--retain-bytes", String(RETAIN_BYTES)],
    environment: { NODE_OPTIONS: `--import=file://${reporter}` },
  });
  const soak = new Soak(service, createRandom(seed));
  t.teardown(async () => {
    soak.close();
    await service.dispose();
  });
  await soak.producer.welcomed();
  await soak.producer.deliver(programPut());

  const startMs = performance.now();
  const elapsedMs = () => performance.now() - startMs;
  const isDone = () => elapsedMs() >= SOAK_MS && soak.ended.length >= LEAST_RUNS;
  const producing = Array.from({ length: RUNS_AT_ONCE }, async () => {
    while (!isDone()) {
      if (soak.created < runsDue(elapsedMs())) await soak.run();
      else await pause(20);
    }
  });
  const reading = Array.from({ length: READERS }, async () => {
    while (!soak.isOver) await soak.read();
  });

  const samples: Sample[] = [];
  const sampling = (async () => {
    while (!isDone()) {
      samples.push(await sampleOf(soak, elapsedMs));
      await pause(SOAK_MS / SAMPLES);
    }
  })();
  await Promise.all(producing);
  await sampling;
  soak.isOver = true;
  await Promise.all(reading);

  t.comment(
    `${Math.round(elapsedMs() / 1000)} s: ${soak.ended.length} runs, ${soak.reads} reads, ${soak.wrong.length} wrong, ` +
      `${soak.gone} files that retention had removed, ${soak.cut} while they were read; right ones: ${FORMATS.map((format) => `${format} ${soak.right.get(format) ?? 0}`).join(", ")}`,
  );
  t.strictSame(soak.wrong.slice(0, 3), []);
  for (const format of FORMATS) t.ok((soak.right.get(format) ?? 0) > 0, `${format} was read`);
  staysFlat(t, samples);
  tellsOfItself(t, service);
  soak.close();
  t.match(await service.end(), { code: 0 });
  const check = await runCommand(["check", "--data", service.dataDirectory]);
  t.equal(check.code, 0, check.stdout);
  t.comment(`check: ${check.stdout.trim().split("\n").at(-2)}`);
});

type Sample = Awaited<ReturnType<typeof sampleOf>>;

async function sampleOf(soak: Soak, elapsedMs: () => number) {
  const threads = await soak.heapBytes();
  const heap = threads.reduce((sum, bytes) => sum + bytes, 0);
  const { pid } = soak.service;
  const [resident, files] = [residentBytes(pid), openFilesByKind(pid)];
  return { x: elapsedMs(), ended: soak.ended.length, resident, heap, threads, files };
}

/** Memory and open files, from the end of the warm-up to the end. */
function staysFlat(t: Test, samples: readonly Sample[]): void {
  // The first third is the warm-up, in which the caches fill and memory grows.
  const after = samples.slice(Math.floor(samples.length / 3));
  const [warm, last] = [after[0], after.at(-1)] as [Sample, Sample];
  const growth = (value: "heap" | "resident") =>
    slopeOf(after.map((sample) => ({ x: sample.x, y: sample[value] }))) * (last.x - warm.x);
  const files = [...new Set([...warm.files.keys(), ...last.files.keys()])];
  const more = files.map((kind) => [kind, (last.files.get(kind) ?? 0) - (warm.files.get(kind) ?? 0)] as const);
  const text = (kinds: Map<string, number>) => [...kinds].map(([kind, count]) => `${kind} ${count}`).join(" ");
  t.comment(
    `heap after GC ${mib(warm.heap)} → ${mib(last.heap)} MiB, by slope ${mib(growth("heap"))}; resident ${mib(warm.resident)} → ` +
      `${mib(last.resident)} MiB, by slope ${mib(growth("resident"))}; most resident ${mib(Math.max(...samples.map((one) => one.resident)))}`,
  );
  const some = samples.filter((_, at) => at % Math.ceil(samples.length / 12) === 0);
  t.comment(
    `heap by thread: ${some.map((one) => one.threads.map((bytes) => Math.round(bytes / MIB)).join("+")).join(" ")}`,
  );
  if (isFullSize) {
    const runs = last.ended - warm.ended;
    const aRun = (value: "heap" | "resident") => Math.round(growth(value) / runs);
    t.comment(
      `of each of ${runs} runs after the warm-up: heap ${aRun("heap")} bytes, resident ${aRun("resident")} bytes`,
    );
  }
  t.comment(`open files: ${text(warm.files)} → ${text(last.files)}`);
  if (isFullSize) {
    t.ok(growth("heap") < MOST_HEAP_GROWTH, "the heaps stay flat");
    t.ok(growth("resident") < MOST_RESIDENT_GROWTH, "the process stays flat");
  }
  const isKept = (kind: string) => kind === "cap" || kind === "rep" || kind === "seg";
  t.same(
    more.filter(([kind, count]) => !isKept(kind) && count > MOST_FILES_MORE),
    [],
    "no leak of handles",
  );
  const count = (kind: string) => last.files.get(kind) ?? 0;
  t.ok(count("cap") + count("rep") <= 2 * KEPT_OPEN + READERS, "captures are kept open up to their limits");
  t.ok(count("seg") <= 2 * KEPT_OPEN + READERS, "segments too");
  t.ok(count("deleted") <= READERS, "nobody keeps what was removed");
}

/** What the service wrote into its log, and left on the disk. */
function tellsOfItself(t: Test, service: ServiceProcess): void {
  const removed = logLines(service).filter(({ msg }) => msg === "retention removed captures");
  t.ok(removed.length > 0, "retention was at work");
  const messages = new Map<string, number>();
  for (const { msg, level } of logLines(service)) {
    if (typeof msg === "string") messages.set(msg, (messages.get(msg) ?? 0) + 1);
    if (typeof level === "number" && level >= 50) t.fail(`an error in the log: ${String(msg)}`);
  }
  const sum = (field: string) => removed.reduce((total, line) => total + Number(line[field]), 0);
  const folder = (name: string) => folderBytes(join(service.dataDirectory, name));
  t.comment(
    `retention removed ${sum("runs")} runs' captures, ${sum("bytes")} bytes; log ${folder("meta").files} files, ` +
      `${mib(folder("meta").bytes)} MiB; captures ${mib(folder("captures").bytes)} MiB`,
  );
  const own = [...messages].filter(([message]) => /hint file/.test(message));
  for (const [message, count] of own) t.comment(`log: ${count} times "${message}"`);
  if (isFullSize) {
    t.ok((messages.get("wrote a hint file") ?? 0) > 0, "hint files were written meanwhile");
  }
}

function runsDue(elapsedMs: number): number {
  const warmMs = Math.min(elapsedMs, WARM_UP_MS);
  return (warmMs * WARM_RUNS_A_SECOND + (elapsedMs - warmMs) * RUNS_A_SECOND) / 1000;
}

function mib(bytes: number): number {
  return Math.round((bytes / MIB) * 10) / 10;
}
