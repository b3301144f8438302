import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { formatsOf, manifestOf } from "../../../../core/run/run-files.js";
import { GatedFileSystem } from "../../../helpers/disk/gated-file-system.js";
import { RoomFileSystem } from "../../../helpers/disk/room-file-system.js";
import { frameBegin, frameLines, nextId } from "../../../helpers/link/link-messages.js";
import {
  ALL_FORMATS,
  frameOf,
  hasFormats,
  LINES,
  sendFrame,
  startProcessing,
  startRun,
  surface,
  WIDTH,
} from "../../../helpers/recorder/processing-recorder.js";
import { checkDirectory } from "../../../helpers/store/checked-directory.js";

/** What a descriptor is open on; empty for one that is closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

t.test("retention removes what is being processed: what comes back is dropped", async (t) => {
  const { maker, recorder, raw } = await startProcessing(t, { retention: { days: null, bytes: 1 } });
  maker.hold();
  const runId = await startRun(raw);
  await sendFrame(raw, runId);
  await recorder.until(() => maker.held === 3);
  await raw.accept({ type: "run.fail", id: runId, error_message: "e" });
  await recorder.until(() => recorder.run(runId).capturesRemovedAtUs !== null);
  await recorder.until(() => recorder.lines.some(({ message }) => message === "retention removed captures"));
  const records = recorder.recordTimesUs.length;
  maker.allow();
  // After what comes back, and after whatever would be recorded for it.
  await maker.make("indexSeries", { path: "nowhere", channels: 1, appends: [] });
  const next = await startRun(raw);
  await sendFrame(raw, next);
  await raw.accept({ type: "run.fail", id: next, error_message: "e" });
  await recorder.until(() => recorder.run(next).capturesRemovedAtUs !== null);
  t.equal(recorder.run(runId).frames[0]?.artefacts, undefined);
  t.ok(recorder.recordTimesUs.length > records);
  t.same(
    recorder.lines.filter(({ level }) => level === "error"),
    [],
  );
  if (existsSync("/proc/self/fd")) {
    const open = () => readdirSync("/proc/self/fd").map((fd) => linkOf(`/proc/self/fd/${fd}`));
    while (open().some((path) => path.includes(runId))) await eventLoopTurn();
  }
  await recorder.stop();
  t.match(await checkDirectory(recorder.directory), {
    ok: true,
    findings: { length: 0 },
    summary: { captureFiles: 0 },
  });
});

t.test("what retention removes right after a late artefact keeps it in the manifest", async (t) => {
  const { maker, recorder, raw } = await startProcessing(t, { retention: { days: null, bytes: 100_000 } });
  maker.hold();
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  await recorder.until(() => maker.held === 3);
  await raw.accept({ type: "run.fail", id: runId, error_message: "e" });
  maker.allow();
  await recorder.until(hasFormats(recorder, runId, frameId, ALL_FORMATS));
  // One that is larger than all that may stay, so that both go.
  const large = await startRun(raw);
  await raw.accept(
    { type: "file.put", run_id: large, name: "a.png", content_type: "image/png" },
    Buffer.alloc(200_000),
  );
  await raw.accept({ type: "run.fail", id: large, error_message: "e" });
  await recorder.until(() => recorder.run(runId).capturesRemovedAtUs !== null);
  t.equal(manifestOf(recorder.run(runId)).length, ALL_FORMATS.length);
  for (const { deletedAtUs } of manifestOf(recorder.run(runId))) t.ok(deletedAtUs);
});

t.test("at low water nothing is made; with room again it goes on", async (t) => {
  const disk = new RoomFileSystem();
  const { maker, recorder, raw } = await startProcessing(t, { fileSystem: disk.fileSystem });
  const runId = await startRun(raw);
  maker.hold();
  const frameId = await sendFrame(raw, runId);
  await recorder.until(() => maker.held === 3);
  disk.freeBytes = 900 * 1024 * 1024;
  recorder.timers.advance(5_000);
  await recorder.until(() => recorder.row("disk").status === "degraded");
  maker.allow();
  await recorder.until(hasFormats(recorder, runId, frameId, ["raw.ply", "png"]));
  await raw.accept({ type: "event.add", run_id: runId, event_type: "note", data: {} });
  t.equal(maker.asked.length, 3, "what was under way is stored, with its preview, and nothing else begun");
  disk.freeBytes = 90_000 * 1024 * 1024;
  recorder.timers.advance(5_000);
  await recorder.until(hasFormats(recorder, runId, frameId, ALL_FORMATS));
});

t.test("nothing is made of what is not written yet, also of a run that ends right after its frame", async (t) => {
  const disk = new GatedFileSystem();
  const { maker, recorder, raw } = await startProcessing(t, { fileSystem: disk.fileSystem });
  maker.hold();
  const [before, runId] = [await startRun(raw), await startRun(raw)];
  const first = await sendFrame(raw, before);
  await recorder.until(() => maker.held === 3);
  const frameId = nextId();
  await raw.accept({ ...frameBegin(frameId, runId), width: WIDTH });
  disk.hold("write", runId);
  raw.message(frameLines(frameId, 0, LINES), surface());
  raw.message({ type: "frame.end", id: frameId });
  raw.message({ type: "run.fail", id: runId, error_message: "e" });
  await disk.waiting();
  await raw.untilPong();
  maker.allow();
  // The log waits for the frame's bytes, and says nothing meanwhile.
  while (maker.answered < 5) await eventLoopTurn();
  for (let nth = 0; nth < 50; nth++) await eventLoopTurn();
  t.equal(maker.asked.length, 5, "those of the frame before it");
  disk.release();
  await recorder.until(() => recorder.runs.get(runId)?.frames[0]?.artefacts?.ply !== undefined);
  t.same(formatsOf(frameOf(recorder.run(runId), frameId)), ALL_FORMATS);
  t.same(formatsOf(frameOf(recorder.run(before), first)), ALL_FORMATS);
});

t.test("the bytes are durable before the record that names them, while the run goes on and later", async (t) => {
  const disk = new GatedFileSystem();
  const { maker, recorder, raw } = await startProcessing(t, { fileSystem: disk.fileSystem });
  for (const isEnded of [false, true]) {
    maker.hold();
    const runId = await startRun(raw);
    const frameId = await sendFrame(raw, runId);
    if (isEnded) await raw.accept({ type: "run.fail", id: runId, error_message: "e" });
    await recorder.until(() => maker.held === 3);
    disk.hold("datasync", ".cap");
    maker.allow();
    await disk.waiting();
    // Whatever is in the log is given to the front in order: no record of what is made comes before this.
    for (let turn = 0; turn < 50; turn++) await eventLoopTurn();
    t.same(formatsOf(frameOf(recorder.run(runId), frameId)), ["npy"]);
    disk.release();
    await recorder.until(hasFormats(recorder, runId, frameId, ALL_FORMATS));
  }
});

t.test(
  "captures wait when the documents of ended runs gather that are not processed, and all else goes on",
  async (t) => {
    const { maker, recorder, raw } = await startProcessing(t);
    maker.hold();
    const runs: string[] = [];
    const text = "x".repeat(1_000_000);
    while (!recorder.lines.some(({ message }) => message === "processing is behind: captures wait")) {
      const runId = await startRun(raw);
      runs.push(runId);
      await sendFrame(raw, runId);
      for (let nth = 0; nth < 14; nth++) {
        await raw.accept({ type: "event.add", run_id: runId, event_type: "note", data: { text } });
      }
      await raw.accept({ type: "run.fail", id: runId, error_message: "e" });
    }
    t.equal(runs.length, 5, "64 MiB of them");
    t.match(recorder.row("recorder"), { status: "degraded", detail: /captures wait/ });
    const next = await startRun(raw);
    const frameId = nextId();
    await raw.accept({ ...frameBegin(frameId, next), width: WIDTH });
    const head = await recorder.connect("head");
    head.message(frameLines(frameId, 0, LINES), surface());
    await raw.accept({ type: "event.add", run_id: next, event_type: "note", data: {} });
    t.equal(frameOf(recorder.run(next), frameId).lines, 0);
    maker.allow();
    await recorder.until(() => frameOf(recorder.run(next), frameId).lines === LINES);
    t.match(recorder.row("recorder"), { status: "healthy" });
  },
);
