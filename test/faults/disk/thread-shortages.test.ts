/** The table of workers/recorder/README.md for the start of a thread. No timer runs out here: what waits longer than it must never ends. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t, { type Test } from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { LargeDocuments } from "../../../http/documents/large-documents.js";
import { ArtefactWork } from "../../../http/downloads/artefact-work.js";
import type { IncomingRequest } from "../../../http/requests/incoming-request.js";
import { RequestPipeline } from "../../../http/requests/request-pipeline.js";
import { SeenShortage } from "../../../http/service/seen-shortage.js";
import { ArtefactPool, type TaskError } from "../../../workers/artefacts/pool/artefact-pool.js";
import { PROCESSED_RUN, processedCell, SURFACE } from "../../helpers/captures/processed-cell.js";
import { RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { newWork, PATIENT } from "../../helpers/http/patient-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { PROGRAM_ID } from "../../helpers/link/link-messages.js";
import { shortOfThreads } from "../../helpers/process/thread-shortage.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";

const BASE_URL = "http://cell:8000";
const WAYS = ["EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "ENOBUFS"].map((missing, nth) => ({
  missing,
  isLate: nth % 2 === 0,
}));

/** An ended run whose documents are large. */
function endedRun(cell: RecordedCell, timeUs: number): string {
  const runId = generateUuidV7(timeUs / 1000, new Uint8Array(10), null);
  const fields = { programId: PROGRAM_ID, programName: "Seam", robotId: null, serialNumber: "A", revision: 1 };
  cell.apply(timeUs, { kind: "run_created", runId, ...fields, metadata: {}, traceId: null, steps: [] });
  for (let nth = 0; nth < 20; nth++) {
    const defect = { type: "scratch" as const, description: "x".repeat(10_000), metadata: {} };
    cell.apply(++timeUs, { kind: "defect_added", runId, defect });
  }
  cell.end(++timeUs, runId, { status: "cancelled", errorMessage: null, notes: [] });
  return runId;
}

/** The time limits of tasks, which run out when the test says so. */
function heldLimits(t: Test): AbortController[] {
  const limits: AbortController[] = [];
  const { timeout } = AbortSignal;
  AbortSignal.timeout = () => {
    const limit = new AbortController();
    limits.push(limit);
    return limit.signal;
  };
  t.teardown(() => {
    AbortSignal.timeout = timeout;
  });
  return limits;
}

t.test("a thread for large documents: all who wait are refused at once, and the next are answered", async (t) => {
  const cell = new RecordedCell();
  const firstUs = 1_780_000_000_000_000;
  const ids = [endedRun(cell, firstUs), endedRun(cell, firstUs + 1_000_000)];
  const limits = heldLimits(t);
  const short = shortOfThreads(t);
  for (const way of WAYS) {
    Object.assign(short, way);
    const { work } = newWork();
    const stray: Error[] = [];
    const kept = { keptBytes: 1, keptRunBytes: 1 };
    const large = new LargeDocuments({ view: cell.view, work, ...kept, onStrayError: (error) => stray.push(error) });
    const ask = () =>
      Promise.allSettled([
        ...ids.map((id) => large.get("defects", id, BASE_URL, PATIENT)),
        ...ids.map((id) => large.run(id, PATIENT)),
      ]);
    const seen = new SeenShortage(() => firstUs);
    const log = { isLevelEnabled: () => false } as never;
    const onShortage = (error: unknown) => seen.note(error);
    const pipeline = new RequestPipeline({ routes: [], baseUrl: undefined, log, onShortage });
    for (const answer of await ask()) {
      t.equal(answer.status, "rejected");
      const { reason } = answer as PromiseRejectedResult;
      const { status, headers } = pipeline.failure(reason, {} as IncomingRequest, "t");
      t.same([status, headers?.[0]], [503, ["Retry-After", "1"]]);
    }
    t.match(seen.detail, new RegExp(`^since 2026-.*no thread can be started \\(.*${way.missing}\\)`));
    for (const limit of limits.splice(0)) limit.abort();
    short.missing = null;
    for (const answer of await ask()) t.equal(answer.status, "fulfilled");
    t.same(stray, []);
    await large.close();
  }
});

t.test("a thread for artefacts: a task fails at once where there is none, and waits for one that runs", async (t) => {
  const short = shortOfThreads(t);
  for (const way of WAYS) {
    const pool = new ArtefactPool({
      threads: 2,
      queueLimit: 9,
      taskTimeoutMs: () => 1,
      report() {},
      threadModule: new URL("../../helpers/captures/odd-tasks-thread.js", import.meta.url),
      timers: new ManualTimers(),
    });
    const folder = t.testdir();
    const run = (path: string, priority: "client" | "background") =>
      pool.run("indexSeries", { path, channels: 1, appends: [] }, { priority }).then(
        () => "done",
        ({ code }: TaskError) => code,
      );
    Object.assign(short, way);
    const refused = (["client", "background", "background"] as const).map((priority) => run("fine", priority));
    t.same(await Promise.all(refused), ["no_thread", "no_thread", "no_thread"], way.missing);
    short.missing = null;
    const file = join(folder, "one");
    const held = run(`held:${file}`, "client");
    Object.assign(short, way);
    t.equal(await run("fine", "background"), "no_thread", "background work comes again by itself");
    const before = short.refusals;
    const waiting = [run("fine", "client"), run("fine", "client")];
    while (short.refusals === before || pool.waiting("client") < 2) await eventLoopTurn();
    writeFileSync(`${file}.go`, "");
    t.same(await Promise.all([held, ...waiting]), ["done", "done", "done"]);
    short.missing = null;
    t.same(await Promise.all([run("fine", "client"), run("fine", "client"), run("fine", "background")]), [
      "done",
      "done",
      "done",
    ]);
    await pool.close();
  }
});

t.test(
  "a thread for what is made as it is downloaded: 503 at once, and health says so until there is one",
  async (t) => {
    const { cell } = await processedCell();
    t.teardown(() => cell.close());
    let nowUs = Date.UTC(2026, 0, 31) * 1_000;
    const folder = t.testdir({ [PROCESSED_RUN]: {} });
    writeFileSync(join(folder, PROCESSED_RUN, "capture"), cell.files.get(`${PROCESSED_RUN}/capture`) as Uint8Array);
    cell.folder = `${folder}/`;
    const short = shortOfThreads(t);
    const paths = ["file.raw.ply", "overview.npy"].map((name) => `/sensor/frames/${SURFACE}/${name}`);
    paths.push(`/runs/${PROCESSED_RUN}/steps/2/cl_sweep.csv`);
    for (const way of WAYS) {
      const work = new ArtefactWork({
        threads: 1,
        timers: new ManualTimers(),
        report() {},
        onReadDamage() {},
        nowUs: () => nowUs,
      });
      cell.make = work.makeForClient;
      const port = await cell.listen();
      const get = (path: string) => rawRequest(port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      Object.assign(short, way);
      nowUs = Date.UTC(2026, 0, 31) * 1_000;
      for (const path of paths) {
        const refused = await get(path);
        t.same([refused?.status, refused?.headers["retry-after"]], [503, "1"], path);
        nowUs += 1_000_000;
      }
      const detail = new RegExp(
        `^since 2026-01-31T00:00:00.000000Z a task failed, last .*${way.missing}.*\\(no_thread\\)$`,
      );
      t.match(work.row(), { status: "degraded", detail });
      short.missing = null;
      t.equal((await get(paths.at(-1) as string))?.status, 200);
      t.match(work.row(), { status: "healthy", detail: null });
      for (const path of paths) t.equal((await get(path))?.status, 200, path);
      await work.close();
    }
  },
);
