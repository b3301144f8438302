import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { lineBytes } from "../../../core/capture/capture.js";
import type { JsonObject } from "../../../core/json/json.js";
import { parseCellMessage } from "../../../core/link/parse-cell-message.js";
import { FILE_TYPES } from "../../../core/run/manifest.js";
import { STEP_TYPES } from "../../../core/run/program.js";
import { qualityReportResponse } from "../../../core/run/run-response.js";
import type { RunState } from "../../../core/run/run-state.js";
import { runDemoCell } from "../../../workers/demo-cell/demo-cell.js";
import type { DemoCellOptions, DemoCellReport } from "../../../workers/demo-cell/demo-cell-messages.js";
import { startDemoCell } from "../../../workers/demo-cell/demo-cell-process.js";
import { demoPrograms } from "../../../workers/demo-cell/demo-programs.js";
import { readNpy } from "../../../workers/demo-cell/part/npy-reader.js";
import { batchOf, FURTHER_SCENES, SCENES, sceneOf } from "../../../workers/demo-cell/scenes.js";
import { FakeLinkServer, type LinkMessage } from "../../helpers/link/fake-link-server.js";
import { listOf } from "../../helpers/list-of.js";
import { PlainState } from "../../helpers/recorder/plain-state.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const HEIGHTMAPS = "../shared/data/heightmaps";
const readFile = async (path: string): Promise<Uint8Array> => readFileSync(path);
const ALL_SCENES = [...SCENES, ...FURTHER_SCENES];
const isRunEnded = (report: DemoCellReport) => report.kind === "run_ended";

async function startLink(t: Test) {
  const socketPath = join(temporaryDirectory(t), "cell.sock");
  const link = new PlainState();
  const server = new FakeLinkServer({
    decide({ body, payload }) {
      const decision = link.send(parseCellMessage(body), payload.length);
      if (link.runs.get(String(body.id))?.status === "finalizing") link.complete(String(body.id));
      return "refusal" in decision ? decision.refusal : undefined;
    },
  });
  await server.listenFor(t, socketPath);
  return { link, server, socketPath };
}

async function produce(t: Test, options: Omit<DemoCellOptions, "socketPath">, only = "") {
  const { link, server, socketPath } = await startLink(t);
  const reports: DemoCellReport[] = [];
  const programs = (await demoPrograms(options.capturesDirectory, readFile)).filter(({ document }) =>
    document.name.includes(only),
  );
  const { signal } = new AbortController();
  const runs = await runDemoCell({ speed: 0, ...options, socketPath }, programs, signal, (report) => {
    reports.push(report);
  });
  return { link, server, reports, runs };
}

/** Contents of the messages, without ids and times: what the same seed must repeat. */
function contentOf(messages: readonly LinkMessage[]): JsonObject[] {
  const text = JSON.stringify(
    messages.map(({ body, payload }) => ({
      ...body,
      payload: Buffer.from(payload).toString("base64").slice(0, 200),
    })),
  );
  const ids = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;
  const times = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/g;
  const traces = /"trace_id":"[0-9a-f]{32}"/g;
  return JSON.parse(text.replace(ids, "id").replace(times, "time").replace(traces, '"trace_id":"t"'));
}

const seed = Number(process.env.TEST_SEED ?? 20261125);
t.comment(`TEST_SEED=${seed}`);
const shown = await produce(t, { seed, runs: ALL_SCENES.length });

t.test("produces runs that the domain accepts whole, of every kind it has", async (t) => {
  const { link, server, reports, runs } = shown;
  t.equal(runs, 12);
  t.same(
    reports.filter(({ kind }) => kind === "refused"),
    [],
    "nothing is refused",
  );
  t.same(server.faults, []);
  t.equal(link.runs.size, 12);
  t.equal(link.programs.size, 5);
  const all = [...link.runs.values()];
  t.ok(
    all.every((run) => run.completedAtUs !== null),
    "every run ends",
  );
  const completed = all.filter((run) => run.status === "completed");
  t.ok(completed.length >= 9, `${completed.length} of 12 completed`);
  for (const run of completed) {
    t.ok(
      qualityReportResponse(run).quality_report !== null && run.files.length === 2 && run.eventLog.length >= 2,
      run.programName,
    );
    t.ok(run.steps.every((step) => step.status === "completed"));
    t.ok(run.frames.every((frame) => frame.status === "complete"));
    for (const { value, nominal, delta, threshold, status, name } of qualityReportResponse(run).quality_report
      ?.checks ?? []) {
      if (typeof value !== "number" || typeof nominal !== "number" || typeof delta !== "number") continue;
      t.ok(Math.abs(value - nominal - delta) < 1e-9, `${name}: delta is value - nominal`);
      t.equal(status === "failed", Math.abs(delta) > (threshold ?? 0), `${name}: ${status} by its threshold`);
    }
  }
  const types = new Set(all.flatMap((run) => run.steps.map((step) => step.definition.type)));
  t.same([...STEP_TYPES].filter((type) => !types.has(type)).sort(), ["end_session", "start_session"]);
  const dtypes = new Set(all.flatMap((run) => run.frames.map((frame) => frame.planes.height.dtype)));
  t.same([...dtypes].sort(), ["f32", "i32", "u16"]);
  const series = new Set(all.flatMap((run) => run.series.flatMap((one) => one.appends.map((append) => append.dtype))));
  t.same([...series].sort(), ["f32", "i32"]);
  t.ok(all.some((run) => run.series.some(({ channels }) => channels >= 3)));
  t.ok(all.some((run) => run.frames.some((frame) => frame.width === 3200 && frame.lines >= 300)));
  t.ok(all.some((run) => run.defects.some((defect) => defect.region_2d && defect.region_3d)));
  t.ok(all.every((run) => run.files.every((file) => FILE_TYPES.includes(file.type))));
});

t.test("whatever the seed, the first runs show every scene in the same order, on made parts", async (t) => {
  const { link, reports } = shown;
  const runs = [...link.runs.values()];
  t.strictSame(
    runs.map((run) => qualityReportResponse(run).quality_report?.status ?? run.status),
    ALL_SCENES.map(({ ending, outcome }) => ending ?? outcome),
  );
  const outcomes = reports.filter(isRunEnded).map((report) => report.kind === "run_ended" && report.outcome);
  t.strictSame(
    outcomes,
    ALL_SCENES.map(({ outcome }) => outcome ?? null),
  );
  for (const [at, { isAgain, isFlawed, isUnseen }] of ALL_SCENES.entries()) {
    const [before, run] = [runs[at - 1], runs[at]];
    t.equal(run?.revision, isAgain ? (before?.revision ?? 0) + 1 : 1, `run ${at + 1}`);
    if (isUnseen)
      t.match(
        qualityReportResponse(run as RunState).quality_report?.checks.find(({ name }) => name === "valid_share"),
        { value: 0 },
      );
    if (isAgain) t.equal(run?.serialNumber, before?.serialNumber);
    if (isFlawed) t.ok(run?.defects.some((defect) => defect.region_2d && defect.region_3d));
  }
  const checks = runs.flatMap((run) => qualityReportResponse(run).quality_report?.checks ?? []);
  const unmeasured = checks.filter(({ status }) => status === "not_evaluated");
  const names = ["bead_height_1", "groove_depth", "land_height"];
  t.match(unmeasured, listOf(...names.map((name) => ({ name, message: /no valid points/ }))));
  const [unseen] = runs[ALL_SCENES.findIndex(({ isUnseen }) => isUnseen)]?.frames ?? [];
  t.equal(unseen?.planes.luminance, undefined, "a frame of heights alone, none of them measured");
  t.equal(runs.at(-1)?.revision, 3, "three inspections of one part");
});

t.test("fewer runs than scenes show the first of them; after the scenes everything is left to the seed", async (t) => {
  const { server } = await produce(t, { seed: 3, runs: 4 }, "label check");
  const first = server.messages;
  const { server: longer } = await produce(t, { seed: 3, runs: 9 }, "label check");
  const content = JSON.stringify(contentOf(first)).slice(0, -1);
  t.ok(JSON.stringify(contentOf(longer.messages)).startsWith(content), "the same four, and more");
  t.equal(sceneOf(ALL_SCENES.length + 1), undefined);
  const units = Array.from({ length: 24 }, (_, at) => batchOf(at + 1).unitSystem[0]).join("");
  t.equal(units, "mmmmmmiiiiiimmmmmmiiiiii");
});

t.test("the cell's display shows inches for every other batch; a guest leaves the cell as it is", async (t) => {
  const puts = async (isGuest: boolean) => {
    const { server } = await produce(t, { seed: 1, runs: 13, isGuest, firstNumber: 1 }, "label check");
    return server.messages.map(({ body }) => body as { type: string; unit_system?: string });
  };
  const own = (await puts(false)).filter(({ type }) => type === "cell.put");
  t.strictSame(
    own.map(({ unit_system }) => unit_system),
    ["metric", "metric", "imperial", "metric"],
  );
  const asGuest = (await puts(true)).filter(({ type }) => type === "cell.put" || type === "component.put");
  t.strictSame(asGuest, []);
});

t.test("the same seed gives the same content, another seed another", async (t) => {
  const contents: string[] = [];
  for (const seed of [3, 3, 4]) {
    const { server } = await produce(t, { seed, runs: 2 });
    contents.push(JSON.stringify(contentOf(server.messages)));
  }
  t.ok(contents[0] === contents[1]);
  t.ok(contents[0] !== contents[2]);
});

t.test("some runs fail or are cancelled, some parts come again, some checks fail", async (t) => {
  const { link, reports } = await produce(t, { seed: 5, runs: 300 }, "label check");
  t.same(
    reports.filter(({ kind }) => kind === "refused"),
    [],
  );
  const all = [...link.runs.values()].slice(ALL_SCENES.length);
  const share = (is: (run: (typeof all)[number]) => boolean): number => all.filter(is).length / all.length;
  t.ok(share((run) => run.status === "failed") > 0 && share((run) => run.status === "failed") < 0.1);
  t.ok(share((run) => run.status === "cancelled") > 0 && share((run) => run.status === "cancelled") < 0.1);
  t.ok(share((run) => run.revision > 1) > 0 && share((run) => run.revision > 1) < 0.2);
  const failed = share((run) => qualityReportResponse(run).quality_report?.status === "failed");
  t.ok(failed > 0 && failed < 0.3, `${failed} of the inspections fail`);
  for (const run of all) {
    for (const { status, message } of qualityReportResponse(run).quality_report?.checks ?? []) {
      if (status === "failed") t.match(message, /^the picture is too unlike .* at least 70 is needed$/);
      else t.notOk(message);
    }
  }
});

t.test(
  "replays recorded height maps bit by bit",
  { skip: !existsSync(HEIGHTMAPS) && `${HEIGHTMAPS} is absent` },
  async (t) => {
    const index = JSON.parse(readFileSync(`${HEIGHTMAPS}/index.json`, "utf8")) as Record<string, unknown>[];
    // After the scenes, each capture has its turn.
    const runs = ALL_SCENES.length + index.length;
    const { link, server, reports } = await produce(t, { seed: 1, runs, capturesDirectory: HEIGHTMAPS });
    t.same(
      reports.filter(({ kind }) => kind === "refused"),
      [],
    );
    const ended = reports.filter(isRunEnded);
    t.equal(ended.length, runs);
    const seen = new Set<string>();
    for (const run of link.runs.values()) {
      for (const frame of run.frames) {
        if (frame.status !== "complete") continue;
        const name = String(link.programs.get(run.programId)?.metadata?.capture);
        const entry = index.find((one) => one.name === name) ?? {};
        const bytes = lineBytes(frame.planes, frame.width);
        const lines = server.messages.filter(({ body }) => body.type === "frame.lines" && body.id === frame.id);
        const batches = lines.map(({ payload }) => payload);
        const heights = batches.map((batch, i) => batch.subarray(0, (frame.batches[i]?.lineCount ?? 0) * bytes.height));
        const luminances = batches.map((batch, i) => batch.subarray((frame.batches[i]?.lineCount ?? 0) * bytes.height));
        const source = readNpy(readFileSync(`${HEIGHTMAPS}/../${String(entry.height_file)}`));
        t.ok(Buffer.concat(heights).equals(source.data), `${name}: height`);
        t.equal(frame.xPitchMm, entry.x_pitch_mm);
        t.equal(frame.xOriginMm, entry.x_origin_mm);
        t.equal(frame.planes.height.scale_mm, entry.z_scale_mm_per_count);
        if (typeof entry.luminance_file === "string") {
          const luminance = readNpy(readFileSync(`${HEIGHTMAPS}/../${entry.luminance_file}`));
          t.ok(Buffer.concat(luminances).equals(luminance.data), `${name}: luminance`);
        } else t.equal(frame.planes.luminance, undefined);
        seen.add(name);
      }
    }
    const shown = [...link.runs.values()].map((run) => qualityReportResponse(run).quality_report?.status ?? run.status);
    t.strictSame(
      shown.slice(0, SCENES.length),
      SCENES.map(({ ending }) => ending ?? "passed"),
      "the scenes of made parts, but each capture is as its index says",
    );
    t.ok(seen.size >= index.length - 2, `${seen.size} of ${index.length} captures were replayed whole`);
  },
);

t.test("as a process: goes on over a restart of the service, and ends with its parent or at SIGTERM", async (t) => {
  for (const ending of ["runs", "stop", "SIGTERM", "disconnect"] as const) {
    const { link, server, socketPath } = await startLink(t);
    const reports: DemoCellReport[] = [];
    const waiting: { is: (report: DemoCellReport) => boolean; resolve: () => void }[] = [];
    const reported = (is: (report: DemoCellReport) => boolean): Promise<void> =>
      new Promise((resolve) => waiting.push({ is, resolve }));
    const runs = ending === "runs" ? 6 : 0;
    const cell = startDemoCell({ socketPath, seed: 2, runs, speed: 20 }, (report) => {
      reports.push(report);
      for (const { is, resolve } of waiting) if (is(report)) resolve();
    });
    await reported(isRunEnded);
    if (ending === "runs") {
      await server.stop();
      await reported(({ kind }) => kind === "disconnected");
      await server.listen(socketPath);
      await reported(isRunEnded);
    }
    if (ending === "stop") await cell.stop();
    if (ending === "SIGTERM") cell.child.kill("SIGTERM");
    if (ending === "disconnect") cell.child.disconnect();
    t.equal(await cell.exited, 0, ending);
    await cell.stop();
    t.same(
      reports.filter(({ kind }) => kind === "refused" || kind === "failed"),
      [],
    );
    t.ok(
      [...link.runs.values()].every((run) => run.completedAtUs !== null),
      "no run is left open",
    );
    if (ending === "runs") t.equal(link.runs.size, 6);
    if (ending !== "disconnect") t.match(reports.at(-1), { kind: "ended" });
    t.same(server.faults, []);
  }
});

t.test("a stop does not wait for a service that is not there; a wrong folder is told", async (t) => {
  const options: DemoCellOptions = { socketPath: "/nowhere/cell.sock", seed: 1, runs: 1 };
  const kinds: string[] = [];
  const waiting = startDemoCell(options, ({ kind }) => kinds.push(kind));
  await once(waiting.child, "message");
  await waiting.stop();
  t.equal(await waiting.exited, 0);
  t.equal(kinds[0], "disconnected");
  const reports: DemoCellReport[] = [];
  const wrong = startDemoCell({ ...options, capturesDirectory: "core" }, (report) => reports.push(report));
  t.equal(await wrong.exited, 1);
  t.match(reports, listOf({ kind: "failed", code: "not_a_capture_collection", message: /core.*index\.json/ }));
});
