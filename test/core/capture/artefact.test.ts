import t from "tap";
import {
  canCsvCome,
  canFormatCome,
  failureMessage,
  isProcessingOpen,
  openArtefacts,
} from "../../../core/capture/artefact.js";
import type { Extent } from "../../../core/capture/capture.js";
import { plyHeader } from "../../../core/capture/ply-header.js";
import type { RunChange } from "../../../core/link/change.js";
import { createRandom, type Random } from "../../../core/random.js";
import { FRAME_FORMATS } from "../../../core/run/manifest.js";
import { endRun } from "../../../core/run/run-end.js";
import {
  availableFormats,
  formatBytes,
  formatsOf,
  manifestOf,
  storedEnd,
  withoutCaptures,
} from "../../../core/run/run-files.js";
import { type ArtefactChange, foldRun, withArtefacts } from "../../../core/run/run-fold.js";
import type { RunState } from "../../../core/run/run-state.js";
import { encodeMessagePack } from "../../../storage/records/message-pack.js";
import { FRAME_ID, idOf, RUN_ID, stateWithRun } from "../../helpers/link/cell-messages.js";
import { listOf } from "../../helpers/list-of.js";

const seed = Number(process.env.TEST_SEED ?? 20261122);
t.comment(`TEST_SEED=${seed}`);

const extent = (offset: number, lengthBytes = 16): Extent => ({ offset, lengthBytes, crc32: 0xffff_fff0 + offset });
const stored = (of: ArtefactChange["of"], artefact: Extract<ArtefactChange, { kind: "artefact_stored" }>["artefact"]) =>
  ({ kind: "artefact_stored", runId: RUN_ID, of, artefact }) satisfies RunChange;
const ofFrame = <F extends string>(format: F) => ({ frameId: FRAME_ID, format });
const ALL: ArtefactChange[] = [
  stored(ofFrame("raw.ply"), { kind: "cloud", points: 9, lineCounts: extent(100), mask: null }),
  stored(ofFrame("png"), { kind: "picture", file: extent(116, 300), preview: extent(650, 40) }),
  stored(ofFrame("luminance.png"), { kind: "picture", file: extent(416, 200) }),
  stored(ofFrame("ply"), { kind: "cloud", points: 8, lineCounts: extent(618), mask: extent(616, 2) }),
  stored({ stepIndex: 2 }, { kind: "csv", totalBytes: 777, offsets: extent(634) }),
];

/** A run with a whole frame of four lines of three points with luminance, and a whole series of step 2. */
function processedRun(): RunState {
  const state = stateWithRun("running");
  state.send({ type: "frame.lines", id: FRAME_ID, first_line: 1, line_count: 3 }, 27);
  state.send({ type: "frame.end", id: FRAME_ID });
  const append = { type: "series.append", run_id: RUN_ID, step_index: 2, channels: 1, dtype: "f32" } as const;
  state.send({ ...append, first_timestamp: "2026-11-20T19:07:00Z", sample_period_us: 1 }, 4);
  state.send({ type: "step.finish", run_id: RUN_ID, index: 2, status: "skipped" });
  return structuredClone(state.runs.get(RUN_ID)) as RunState;
}

function folded(run: RunState, ...changes: RunChange[]): RunState {
  const copy = structuredClone(run);
  let timeUs = 1_000;
  for (const change of changes) foldRun(copy, change, timeUs++);
  return copy;
}

t.test("formats appear one by one, in the order of their names in the interface, with their sizes", async (t) => {
  const run = processedRun();
  const [frame] = run.frames as [RunState["frames"][0]];
  t.strictSame(formatsOf(frame), ["npy"]);
  for (const format of FRAME_FORMATS) if (format !== "npy") t.equal(formatBytes(frame, format), null, format);
  const after = folded(run, ...ALL);
  const [made] = after.frames as [RunState["frames"][0]];
  t.strictSame(availableFormats(after, made), ["npy", "raw.ply", "png", "luminance.png", "ply", "preview.png"]);
  t.equal(formatBytes(made, "raw.ply"), plyHeader(made, 9, false).length + 9 * 13);
  t.equal(formatBytes(made, "ply"), plyHeader(made, 8, true).length + 8 * 13);
  t.equal(formatBytes(made, "png"), 300);
  t.equal(formatBytes(made, "luminance.png"), 200);
  t.equal(storedEnd(after, "captures"), 690, "the preview is the last");
  t.equal(after.updatedAtUs, 1_004, "updated_at moves with the files");
});

t.test("manifest entries have the time of their record, and stay listed when retention has removed them", async (t) => {
  const run = folded(processedRun(), ...ALL);
  t.match(
    manifestOf(run).map(({ name, type, contentType, sizeBytes, stepIndex, frameId, createdAtUs }) => [
      ...[name, type, contentType, sizeBytes, stepIndex, frameId],
      createdAtUs < 2_000 ? createdAtUs : "earlier",
    ]),
    listOf(
      listOf(`frame-${FRAME_ID}.raw.ply`, "pointcloud", "application/x-ply", Number, 1, FRAME_ID, 1_000),
      listOf(`frame-${FRAME_ID}.png`, "image", "image/png", 300, 1, FRAME_ID, 1_001),
      listOf(`frame-${FRAME_ID}.luminance.png`, "image", "image/png", 200, 1, FRAME_ID, 1_002),
      listOf(`frame-${FRAME_ID}.ply`, "pointcloud", "application/x-ply", Number, 1, FRAME_ID, 1_003),
      listOf("step-2-cl_sweep.csv", "measurement", "text/csv", 777, 2, null, 1_004),
      listOf(`frame-${FRAME_ID}.npy`, "array", "application/octet-stream", Number, 1, FRAME_ID, "earlier"),
    ),
  );
  const removed = withoutCaptures(run, 5_000_000);
  t.equal(manifestOf(removed).length, 6);
  for (const entry of manifestOf(removed)) t.match(entry, { deletedAtUs: 5_000_000, updatedAtUs: 5_000_000 });
  t.strictSame(availableFormats(removed, removed.frames[0] as never), []);
});

t.test("a failure is never offered, and stands in the event log", async (t) => {
  const [, ...others] = ALL;
  const failed: RunChange = { kind: "artefact_failed", runId: RUN_ID, of: ofFrame("raw.ply"), code: "c", message: "m" };
  const series: RunChange = { ...failed, of: { stepIndex: 2 } };
  const run = folded(processedRun(), failed, ...others.slice(0, -1), series);
  t.strictSame(formatsOf(run.frames[0] as never), ["npy", "png", "luminance.png", "ply"]);
  t.notOk(manifestOf(run).some(({ name }) => /raw|csv/.test(name)));
  t.strictSame(run.eventLog, [
    {
      timestampUs: 1_000,
      eventType: "artefact_failed",
      data: { ...{ frame_id: FRAME_ID, format: "raw.ply" }, code: "c", message: "m" },
    },
    { timestampUs: 1_004, eventType: "artefact_failed", data: { step_index: 2, code: "c", message: "m" } },
  ]);
  t.notOk(isProcessingOpen(run), "it is not tried again");
  t.equal(failureMessage("é".repeat(160)), "é".repeat(160));
  t.equal(failureMessage(`${"a".repeat(41)}${"b".repeat(120)}`), `${"a".repeat(40)}…${"b".repeat(119)}`);
  t.ok(failureMessage(`${"x".repeat(39)}😀${"y".repeat(200)}`).isWellFormed());
  t.ok(failureMessage(`${"x".repeat(200)}😀${"y".repeat(118)}`).isWellFormed());
  const reason = "offset 20: the plane does not match its CRC";
  const long = failureMessage(`${"folder/".repeat(50)}x.cap, ${reason}`);
  t.equal(long.length, 160);
  t.ok(long.endsWith(reason), "the reason survives");
});

t.test("what is open: whole frames and series only, pictures only of what there is", async (t) => {
  const formats = (run: RunState) => openArtefacts(run).map((of) => ("format" in of ? of.format : of.stepIndex));
  t.strictSame(formats(stateWithRun("running").runs.get(RUN_ID) as RunState), [], "the frame takes lines");
  t.strictSame(formats(processedRun()), ["raw.ply", "png", "luminance.png", "ply", 2]);
  const dark = processedRun();
  dark.frames = dark.frames.map((frame) => ({ ...frame, planes: { height: frame.planes.height } }));
  t.strictSame(formats(dark), ["raw.ply", "png", "ply", 2]);
  const empty = processedRun();
  empty.frames = empty.frames.map((frame) => ({ ...frame, lines: 0, batches: [] }));
  t.strictSame(formats(empty), ["raw.ply", "ply", 2], "a PNG has a line at least");
  let run = processedRun();
  for (const [at, change] of ALL.entries()) {
    t.ok(isProcessingOpen(run));
    run = folded(run, change);
    t.equal(openArtefacts(run).length, ALL.length - at - 1);
  }
  t.notOk(isProcessingOpen(run));
  t.strictSame(openArtefacts(withoutCaptures(processedRun(), 1)), [], "removed captures are not processed");
  t.notOk(isProcessingOpen(withoutCaptures(processedRun(), 1)));
});

t.test(
  "what may yet come: what is still to be made of what there is, and nothing that was tried or removed",
  async (t) => {
    const comes = (run: RunState) => {
      const [frame] = run.frames as [RunState["frames"][0]];
      return [...FRAME_FORMATS, "stl"].filter((format) => canFormatCome(run, frame, format)).sort();
    };
    const processed = ["luminance.png", "ply", "png", "raw.ply"];
    const open = stateWithRun("running").runs.get(RUN_ID) as RunState;
    t.strictSame(comes(open), ["luminance.png", "npy", "ply", "png", "raw.ply"]);
    const dark = structuredClone(open);
    dark.frames = dark.frames.map((frame) => ({ ...frame, lines: 0, planes: { height: frame.planes.height } }));
    t.strictSame(comes(dark), ["npy", "ply", "png", "raw.ply"]);
    t.strictSame(
      comes(endRun(open, { status: "failed", errorMessage: "e", notes: [] }, 500)),
      [],
      "it was never whole",
    );
    const whole = processedRun();
    t.strictSame(comes(whole), processed);
    const failed: RunChange = { kind: "artefact_failed", runId: RUN_ID, of: ofFrame("png"), code: "c", message: "m" };
    t.strictSame(comes(folded(whole, failed)), ["luminance.png", "ply", "raw.ply"]);
    t.strictSame(comes(endRun(whole, { status: "completed", errorMessage: null, notes: [] }, 500)), processed);
    t.strictSame(comes(withoutCaptures(whole, 1)), []);
    t.ok(canCsvCome(whole, 2), "whole, and not made");
    t.notOk(canCsvCome(withoutCaptures(whole, 1), 2));
    t.notOk(canCsvCome(folded(whole, { ...failed, of: { stepIndex: 2 } }), 2));
    for (const status of ["pending", "running", "finalizing", "completed", "failed", "cancelled"] as const) {
      for (const step of ["pending", "running", "completed", "failed", "skipped", "cancelled"] as const) {
        const run = structuredClone(open);
        run.steps = run.steps.map((one) => ({ ...one, status: step }));
        const takesRows = ["pending", "running"].includes(status) && ["pending", "running"].includes(step);
        t.equal(canCsvCome({ ...run, status }, 1), takesRows, `${status}, step ${step}`);
        t.notOk(canCsvCome({ ...run, status }, run.steps.length + 1));
      }
    }
  },
);

t.test("what is made after the end changes files and time, and nothing that was decided", async (t) => {
  const ended = endRun(processedRun(), { status: "failed", errorMessage: "e", notes: [] }, 500);
  const before = JSON.stringify(ended);
  const later = withArtefacts(ended, ALL.slice(0, 2), 900);
  t.equal(JSON.stringify(ended), before, "the run that others hold stays as it was");
  const { frames, updatedAtUs, ...rest } = later;
  t.equal(updatedAtUs, 900);
  t.strictSame(Object.keys(frames[0]?.artefacts ?? {}), ["raw.ply", "png"]);
  t.match(frames[0]?.artefacts?.png, { kind: "picture", atUs: 900 });
  const { frames: framesBefore, updatedAtUs: _, ...restBefore } = ended;
  t.strictSame(rest, restBefore);
  t.equal(framesBefore[0]?.artefacts, undefined);
});

function randomArtefact(random: Random, of: ArtefactChange["of"]): ArtefactChange {
  if (random.chance(0.2)) {
    const message = failureMessage(random.pick(["x", "é", "😀"]).repeat(random.integer(0, 400)));
    return { kind: "artefact_failed", runId: RUN_ID, of, code: "capture_damaged", message };
  }
  const most = () => extent(random.integer(2 ** 40, 2 ** 52), random.integer(0, 2 ** 31));
  if ("stepIndex" in of) return stored(of, { kind: "csv", totalBytes: 2 ** 50, offsets: most() });
  if (of.format === "png") return stored(of, { kind: "picture", file: most(), preview: most() });
  if (of.format === "luminance.png") return stored(of, { kind: "picture", file: most() });
  return stored(of, { kind: "cloud", points: 2 ** 32, lineCounts: most(), mask: of.format === "ply" ? most() : null });
}

t.test("the document's counted bytes hold everything that processing makes", async (t) => {
  const random = createRandom(seed);
  for (let round = 0; round < 100; round++) {
    const run = processedRun();
    for (let nth = 1; nth < 30; nth++) {
      const { id } = { id: idOf(100 + nth) };
      const [frame] = run.frames as [RunState["frames"][0]];
      const { lines, batches, status, completedAtUs, artefacts, ...begun } = frame;
      foldRun(run, { kind: "frame_begun", runId: RUN_ID, frame: { ...begun, id } }, nth);
      foldRun(run, { kind: "frame_ended", runId: RUN_ID, frameId: id }, nth);
      (run.frames.at(-1) as typeof frame).lines = 1;
    }
    for (const of of openArtefacts(run)) foldRun(run, randomArtefact(random, of), 2 ** 51);
    const bytes = encodeMessagePack({ run }).length;
    if (bytes > run.documentBytes) return void t.fail(`round ${round}: ${bytes} bytes, counted ${run.documentBytes}`);
    if (isProcessingOpen(run)) return void t.fail(`round ${round}: something is open`);
  }
  t.pass("100 runs");
});
