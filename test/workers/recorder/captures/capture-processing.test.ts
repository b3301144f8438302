import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import t, { type Test } from "tap";
import { cloudOf, csvOf, pictureOf } from "../../../../core/capture/artefact.js";
import type { Extent, FrameState } from "../../../../core/capture/capture.js";
import { formatsOf, manifestOf, storedEnd } from "../../../../core/run/run-files.js";
import { reportOfRun } from "../../../../core/run/run-response.js";
import type { RunState } from "../../../../core/run/run-state.js";
import { capturePath } from "../../../../storage/captures/capture-path.js";
import { NearMaker } from "../../../helpers/captures/near-maker.js";
import { readGreyPng, readPalettePng } from "../../../helpers/captures/png-reader.js";
import { GatedFileSystem } from "../../../helpers/disk/gated-file-system.js";
import { RoomFileSystem } from "../../../helpers/disk/room-file-system.js";
import {
  frameBegin,
  frameLines,
  nextId,
  PROGRAM_ID,
  programPut,
  seriesAppend,
} from "../../../helpers/link/link-messages.js";
import type { RawProducer } from "../../../helpers/link/raw-producer.js";
import { listOf } from "../../../helpers/list-of.js";
import { RecorderHarness, temporaryDirectory } from "../../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../../helpers/store/checked-directory.js";

const WIDTH = 40;
const LINES = 30;
const ALL = ["npy", "raw.ply", "png", "luminance.png", "ply"];

async function start(t: Test, options: Parameters<typeof RecorderHarness.start>[2] = {}) {
  const maker = new NearMaker();
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), { artefacts: maker, ...options });
  const raw = await recorder.connect("controller");
  await raw.accept(programPut());
  return { maker, recorder, raw };
}

async function startRun(raw: RawProducer): Promise<string> {
  const runId = nextId();
  await raw.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  await raw.accept({ type: "run.start", id: runId });
  await raw.accept({ type: "step.start", run_id: runId, index: 1 });
  return runId;
}

/** A surface with one point far above it, u16 height and u16 luminance. */
function surface(): Buffer {
  const height = new Uint16Array(WIDTH * LINES).map((_, at) => 20_000 + (at % WIDTH) * 3 + Math.floor(at / WIDTH));
  height[5 * WIDTH + 7] = 60_000;
  height[0] = 0;
  const luminance = new Uint16Array(WIDTH * LINES).map((_, at) => at % 1024);
  return Buffer.concat([Buffer.from(height.buffer), Buffer.from(luminance.buffer)]);
}

async function sendFrame(raw: RawProducer, runId: string, bytes = surface()): Promise<string> {
  const frameId = nextId();
  await raw.accept({ ...frameBegin(frameId, runId), width: WIDTH });
  if (bytes.length > 0) await raw.accept(frameLines(frameId, 0, LINES), bytes);
  await raw.accept({ type: "frame.end", id: frameId });
  return frameId;
}

function frameOf(run: RunState, frameId: string): FrameState {
  return run.frames.find(({ id }) => id === frameId) as FrameState;
}

function pathOf(recorder: RecorderHarness, runId: string): string {
  return join(recorder.directory, "captures", capturePath(runId, "capture"));
}

function stored(recorder: RecorderHarness, runId: string, { offset, lengthBytes, crc32: wanted }: Extent): Buffer {
  const bytes = readFileSync(pathOf(recorder, runId)).subarray(offset, offset + lengthBytes);
  if (crc32(bytes) !== wanted) throw new Error("other bytes than the extent's");
  return bytes;
}

/** What a descriptor is open on; empty for one that is closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

const has = (recorder: RecorderHarness, runId: string, frameId: string, formats: readonly string[]) => () =>
  formats.every((format) => formatsOf(frameOf(recorder.run(runId), frameId)).includes(format as never));
const ended = (recorder: RecorderHarness, runId: string) => () => recorder.run(runId).completedAtUs !== null;

t.test(
  "of a whole frame all formats are made, in their order, while the run goes on; what is stored is right",
  async (t) => {
    const { maker, recorder, raw } = await start(t);
    const runId = await startRun(raw);
    const frameId = await sendFrame(raw, runId);
    await recorder.until(has(recorder, runId, frameId, ALL));
    t.same(maker.asked, ["countPoints", "heightMap", "preview", "luminance", "filter"]);
    const run = recorder.run(runId);
    const frame = frameOf(run, frameId);
    const [rawCloud, cloud] = [cloudOf(frame, "raw.ply"), cloudOf(frame, "ply")];
    const [height, luminance] = [pictureOf(frame, "png"), pictureOf(frame, "luminance.png")];
    if (!rawCloud || !cloud || !height || !luminance) throw new Error("something is missing");
    t.match([rawCloud.points, rawCloud.mask, cloud.points], listOf(WIDTH * LINES - 1, null, WIDTH * LINES - 2));
    const mask = stored(recorder, runId, cloud.mask as Extent);
    t.equal(
      mask.reduce((sum, byte) => sum + [...byte.toString(2)].filter((bit) => bit === "1").length, 0),
      cloud.points,
    );
    const counts = stored(recorder, runId, cloud.lineCounts);
    t.equal(counts.length, 4 * LINES);
    t.same([counts.readUInt32LE(0), counts.readUInt32LE(20), counts.readUInt32LE(24)], [WIDTH - 1, WIDTH - 1, WIDTH]);
    const picture = readGreyPng(stored(recorder, runId, height.file));
    const preview = readPalettePng(stored(recorder, runId, height.preview as Extent));
    t.same([preview.width, preview.height], [WIDTH, LINES]);
    t.same([picture.width, picture.height, picture.samples[5 * WIDTH + 7]], [WIDTH, LINES, 60_000]);
    t.equal(readGreyPng(stored(recorder, runId, luminance.file)).samples[1023], 1023 >> 2);
    t.equal(storedEnd(run, "captures"), readFileSync(pathOf(recorder, runId)).length, "nothing lies between");
    await raw.accept({ type: "run.finish", id: runId });
    await recorder.until(ended(recorder, runId));
    t.equal(manifestOf(recorder.run(runId)).length, ALL.length);
    t.same(recorder.run(runId).eventLog, []);
    await recorder.stop();
    t.match(await checkDirectory(recorder.directory), { ok: true, findings: { length: 0 } });
    const bytes = readFileSync(pathOf(recorder, runId));
    for (const { offset } of [height.file, cloud.mask as Extent, rawCloud.lineCounts]) {
      const damaged = Buffer.from(bytes);
      damaged.writeUInt8(damaged.readUInt8(offset) ^ 1, offset);
      writeFileSync(pathOf(recorder, runId), damaged);
      t.match(await checkDirectory(recorder.directory), {
        ok: false,
        findings: listOf({ code: "capture_damaged", offset }),
      });
    }
  },
);

t.test("a series has its CSV once it is whole: at the step's end, or at the run's", async (t) => {
  const { maker, recorder, raw } = await start(t);
  const runId = await startRun(raw);
  const values = Buffer.from(Float32Array.of(1, 2.5, Number.NaN, 4).buffer);
  await raw.accept(seriesAppend(runId), values);
  await raw.accept(seriesAppend(runId), values);
  await raw.accept(seriesAppend(runId, 2), values);
  t.same(maker.asked, []);
  await raw.accept({ type: "step.finish", run_id: runId, index: 1, status: "completed" });
  await recorder.until(() => recorder.run(runId).series[0]?.csv !== undefined);
  t.equal(recorder.run(runId).series[1]?.csv, undefined);
  await raw.accept({ type: "run.finish", id: runId });
  await recorder.until(ended(recorder, runId));
  const [first, second] = recorder.run(runId).series.map(csvOf);
  if (!first || !second) throw new Error("a series has no CSV");
  const row = "2026-11-20T10:00:00.000000Z,".length;
  const header = "timestamp,channel_1,channel_2\n".length;
  t.equal(first.totalBytes, header + 2 * (row + "1,2.5\n".length + row + ",4\n".length));
  t.equal(second.totalBytes, header + row + "1,2.5\n".length + row + ",4\n".length);
  const offsets = stored(recorder, runId, first.offsets);
  t.same([offsets.readDoubleLE(0), offsets.readDoubleLE(8)], [header, first.totalBytes]);
  t.match(
    manifestOf(recorder.run(runId)).map(({ name }) => name),
    listOf("step-1-cl_sweep.csv", "step-2-cl_sweep.csv"),
  );
});

t.test("finalizing waits for what is made of the captures; the end's event lists it all", async (t) => {
  const { maker, recorder, raw } = await start(t);
  maker.hold();
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  await raw.accept({ type: "run.finish", id: runId });
  for (let nth = 0; nth < 5; nth++) {
    await recorder.until(() => maker.held > 0);
    await raw.accept({ type: "event.add", run_id: runId, event_type: "note", data: {} });
    t.equal(recorder.run(runId).status, "finalizing");
    maker.allow(1);
  }
  await recorder.until(ended(recorder, runId));
  t.match(recorder.run(runId), { status: "completed" });
  t.same(formatsOf(frameOf(recorder.run(runId), frameId)), ALL);
});

t.test(
  "after the time-out a run completes, with a note of what was open; that is made later, and decides nothing anew",
  async (t) => {
    const { maker, recorder, raw } = await start(t, { finalizeTimeoutMs: 5_000 });
    maker.hold();
    const runId = await startRun(raw);
    const frameId = await sendFrame(raw, runId);
    await raw.accept({ type: "check.add", run_id: runId, check: { name: "gap", status: "passed" } });
    await raw.accept(seriesAppend(runId), Buffer.alloc(8));
    await recorder.until(() => maker.held === 2);
    maker.allow(1);
    await recorder.until(has(recorder, runId, frameId, ["raw.ply"]));
    await raw.accept({ type: "run.finish", id: runId });
    recorder.timers.advance(5_000);
    await recorder.until(ended(recorder, runId));
    const before = structuredClone(recorder.run(runId));
    const files = [
      ...["png", "luminance.png", "ply"].map((format) => `frame-${frameId}.${format}`),
      "step-1-cl_sweep.csv",
    ];
    t.match(
      before.eventLog,
      listOf({
        eventType: "finalize_timeout",
        data: { open_jobs: { length: 0 }, open_frames: { length: 0 }, open_files: files },
      }),
    );
    const records = recorder.recordTimesUs.length;
    maker.allow();
    await recorder.until(has(recorder, runId, frameId, ALL));
    const after = recorder.run(runId);
    t.equal(recorder.recordTimesUs.length, records + 1, "one record tells of all");
    t.ok(csvOf(after.series[0] as never));
    t.equal(after.updatedAtUs, recorder.recordTimesUs.at(-1), "updated_at moves with the files");
    t.same(reportOfRun(after), reportOfRun(before));
    t.same({ ...after, frames: [], series: [], updatedAtUs: 0 }, { ...before, frames: [], series: [], updatedAtUs: 0 });
    await recorder.stop();
    t.match(await checkDirectory(recorder.directory), {
      ok: true,
      findings: { length: 0 },
      summary: { captureFiles: 1 },
    });
  },
);

t.test("a run that failed or was cancelled ends at once; its whole frames are processed all the same", async (t) => {
  const { maker, recorder, raw } = await start(t);
  for (const type of ["run.fail", "run.cancel"] as const) {
    maker.hold();
    const runId = await startRun(raw);
    const frames = [await sendFrame(raw, runId), await sendFrame(raw, runId)];
    const open = nextId();
    await raw.accept({ ...frameBegin(open, runId), width: WIDTH });
    await raw.accept({ type, id: runId, error_message: "stopped" });
    await recorder.until(ended(recorder, runId));
    const before = recorder.recordTimesUs.length;
    maker.allow();
    for (const frameId of frames) await recorder.until(has(recorder, runId, frameId, ALL));
    t.equal(recorder.recordTimesUs.length, before + 2, "one record for four artefacts");
    t.same(formatsOf(frameOf(recorder.run(runId), open)), [], "a frame that was not whole has no formats");
  }
});

t.test("what is open at a stop is made at the next start, once, of runs that go on and of ended ones", async (t) => {
  const { maker, recorder, raw } = await start(t);
  maker.hold();
  const [running, failed, finalizing] = [await startRun(raw), await startRun(raw), await startRun(raw)];
  const frames = new Map<string, string>();
  for (const runId of [running, failed, finalizing]) frames.set(runId, await sendFrame(raw, runId));
  await raw.accept({ type: "run.fail", id: failed, error_message: "e" });
  await raw.accept({ type: "run.finish", id: finalizing });
  await recorder.until(() => maker.held === 2);
  maker.allow(1);
  await recorder.until(has(recorder, running, frames.get(running) as string, ["raw.ply"]));
  await recorder.stop();
  maker.allow();
  const again = new NearMaker();
  const second = await RecorderHarness.start(t, recorder.directory, { artefacts: again });
  for (const [runId, frameId] of frames) await second.until(has(second, runId, frameId, ALL));
  await second.until(ended(second, finalizing));
  t.same(
    again.asked.sort(),
    [
      ...Array(3).fill("luminance"),
      ...Array(2).fill("countPoints"),
      ...Array(3).fill("heightMap"),
      ...Array(3).fill("preview"),
      ...Array(3).fill("filter"),
    ].sort(),
  );
  await second.stop();
  t.match(await checkDirectory(second.directory), { ok: true, findings: { length: 0 } });
  const idle = new NearMaker();
  const third = await RecorderHarness.start(t, recorder.directory, { artefacts: idle });
  await third.connect("somebody");
  t.same(idle.asked, [], "nothing is made twice");
});

t.test("a damaged capture fails what is made of it, says so in the event log, and holds nothing up", async (t) => {
  const { maker, recorder, raw } = await start(t);
  maker.hold();
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  const good = await sendFrame(raw, runId);
  const bytes = readFileSync(pathOf(recorder, runId));
  bytes.writeUInt8(bytes.readUInt8(100) ^ 1, 100);
  writeFileSync(pathOf(recorder, runId), bytes);
  await raw.accept({ type: "run.finish", id: runId });
  maker.allow();
  await recorder.until(ended(recorder, runId));
  const run = recorder.run(runId);
  t.same(
    formatsOf(frameOf(run, frameId)),
    ["luminance.png"],
    "of the heights, which are damaged, there is no NPY either",
  );
  t.same(formatsOf(frameOf(run, good)), ALL);
  t.match(
    run.eventLog.map(({ eventType, data }) => [eventType, data.format, data.frame_id, data.code]),
    ["raw.ply", "png", "ply"].map((format) => ["artefact_failed", format, frameId, "capture_damaged"]),
  );
  const place = `captures/${capturePath(runId, "capture")}, offset ${frameOf(run, frameId).batches[0]?.offset}`;
  t.equal(
    run.eventLog[0]?.data.message,
    `${place}: the plane does not match its CRC`,
    "no folder of the machine in what users read",
  );
  t.equal(manifestOf(run).length, 1 + ALL.length);
  const idle = new NearMaker();
  await recorder.stop();
  const second = await RecorderHarness.start(t, recorder.directory, { artefacts: idle });
  await second.connect("somebody");
  t.same(idle.asked, [], "what failed is not tried again");
});

t.test("damaged luminance fails what shows it, and leaves what is of the heights alone", async (t) => {
  const { maker, recorder, raw } = await start(t);
  maker.hold();
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  const bytes = readFileSync(pathOf(recorder, runId));
  const { offset, lengthBytes } = frameOf(recorder.run(runId), frameId).batches.at(-1) as Extent;
  bytes.writeUInt8(bytes.readUInt8(offset + lengthBytes - 5) ^ 1, offset + lengthBytes - 5);
  writeFileSync(pathOf(recorder, runId), bytes);
  await raw.accept({ type: "run.finish", id: runId });
  maker.allow();
  await recorder.until(ended(recorder, runId));
  const run = recorder.run(runId);
  t.same(formatsOf(frameOf(run, frameId)), ["npy", "png"]);
  t.match(
    run.eventLog.map(({ eventType, data }) => [eventType, data.format, data.code, data.message]),
    ["raw.ply", "luminance.png", "ply"].map((format) => [
      "artefact_failed",
      format,
      "capture_damaged",
      /: the luminance does not match its CRC$/,
    ]),
  );
});

t.test(
  "what the disk does not give is asked for again, at growing distances, and given up after a minute",
  async (t) => {
    const { maker, recorder, raw } = await start(t);
    let refusals = 2;
    maker.answersWith = (name) =>
      name === "filter" && refusals-- > 0 ? { code: "file_system_failed", message: "EIO: i/o error, read" } : undefined;
    const asks = () => maker.asked.filter((name) => name === "filter").length;
    const said = () =>
      recorder.lines.filter(({ message }) => message.includes("put off")).map(({ message }) => message);
    const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
    // Beside the link's own.
    const isPutOff = () => recorder.timers.armedFor(1_000) === 2;
    /** Each time it was refused it is asked for again after so many seconds, and not before. */
    const assertRetries = async (...waitsSeconds: number[]): Promise<void> => {
      for (const seconds of waitsSeconds) {
        while (!isPutOff()) await turn();
        const before = asks();
        recorder.timers.advance(seconds * 1_000 - 1);
        await turn();
        t.equal(asks(), before, `not before ${seconds} s`);
        recorder.timers.advance(1);
      }
    };
    const runId = await startRun(raw);
    const frame = sendFrame(raw, runId);
    await assertRetries(1, 2);
    const frameId = await frame;
    await recorder.until(has(recorder, runId, frameId, ALL));
    t.equal(asks(), 3);
    t.notOk(recorder.run(runId).eventLog.some(({ eventType }) => eventType === "artefact_failed"));
    const both = ["artefacts are put off", "artefacts that were put off are made"];
    t.same(said(), both, "one line when it begins, one when it is over");
    refusals = Number.POSITIVE_INFINITY;
    const other = await sendFrame(raw, runId);
    await assertRetries(1, 2, 4, 8, 16, 32);
    await recorder.until(() => recorder.run(runId).eventLog.some(({ eventType }) => eventType === "artefact_failed"));
    t.equal(asks(), 3 + 7);
    t.same(said(), [...both, ...both], "however often it was tried");
    t.same(
      formatsOf(frameOf(recorder.run(runId), other)),
      ALL.filter((format) => format !== "ply"),
    );
  },
);

t.test("what the service has nothing left for is asked for again until it is made, however long", async (t) => {
  const { maker, recorder, raw } = await start(t);
  const codes = ["resource_shortage", "no_thread", "out_of_memory"];
  let refusals = 20;
  maker.answersWith = (name) =>
    name === "filter" && refusals-- > 0
      ? { code: codes[refusals % codes.length] as string, message: "EMFILE" }
      : undefined;
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  const isMade = has(recorder, runId, frameId, ALL);
  while (!isMade()) {
    recorder.timers.advance(1_000);
    await raw.untilPong();
  }
  t.equal(maker.asked.filter((name) => name === "filter").length, 21);
  t.notOk(recorder.run(runId).eventLog.some(({ eventType }) => eventType === "artefact_failed"));
});

t.test("what there is no memory for in an hour is given up: this machine may never have it", async (t) => {
  const { maker, recorder, raw } = await start(t);
  maker.answersWith = (name) => (name === "filter" ? { code: "out_of_memory", message: "no" } : undefined);
  const runId = await startRun(raw);
  await sendFrame(raw, runId);
  const failure = () => recorder.run(runId).eventLog.find(({ eventType }) => eventType === "artefact_failed");
  const beginMs = recorder.timers.nowMs();
  while (failure() === undefined) {
    recorder.timers.advance(1_000);
    await raw.untilPong();
  }
  t.match(failure(), { data: { format: "ply", code: "out_of_memory" } });
  const minutes = (recorder.timers.nowMs() - beginMs) / 60_000;
  t.ok(minutes > 55 && minutes < 70, `${minutes} minutes`);
});

t.test("a maker that ends is no failure: the next start makes it", async (t) => {
  const { maker, recorder, raw } = await start(t, { finalizeTimeoutMs: 5_000 });
  maker.answersWith = (name) => ({
    code: name === "filter" ? "cancelled" : "closed",
    message: "the service is ending",
  });
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  await recorder.until(() => maker.asked.length === 4);
  await raw.accept({ type: "run.finish", id: runId });
  t.equal(recorder.run(runId).status, "finalizing");
  recorder.timers.advance(5_000);
  await recorder.until(ended(recorder, runId));
  t.same(formatsOf(frameOf(recorder.run(runId), frameId)), ["npy"]);
  await recorder.stop();
  const second = await RecorderHarness.start(t, recorder.directory, { artefacts: new NearMaker() });
  await second.until(has(second, runId, frameId, ALL));
});

t.test("frames without a point, and without a line", async (t) => {
  const { recorder, raw } = await start(t);
  const runId = await startRun(raw);
  const blind = await sendFrame(raw, runId, Buffer.alloc(WIDTH * LINES * 4));
  const empty = await sendFrame(raw, runId, Buffer.alloc(0));
  await raw.accept({ type: "run.finish", id: runId });
  await recorder.until(ended(recorder, runId));
  const run = recorder.run(runId);
  t.same(formatsOf(frameOf(run, blind)), ALL);
  t.equal(cloudOf(frameOf(run, blind), "ply")?.points, 0);
  t.same(formatsOf(frameOf(run, empty)), ["npy", "raw.ply", "ply"]);
  t.match(cloudOf(frameOf(run, empty), "ply"), { points: 0, mask: { lengthBytes: 0 }, lineCounts: { lengthBytes: 0 } });
  t.same(run.eventLog, []);
  await recorder.stop();
  t.match(await checkDirectory(recorder.directory), { ok: true, findings: { length: 0 } });
});

t.test("retention removes what is being processed: what comes back is dropped", async (t) => {
  const { maker, recorder, raw } = await start(t, { retention: { days: null, bytes: 1 } });
  maker.hold();
  const runId = await startRun(raw);
  await sendFrame(raw, runId);
  await recorder.until(() => maker.held === 2);
  await raw.accept({ type: "run.fail", id: runId, error_message: "e" });
  await recorder.until(() => recorder.run(runId).capturesRemovedAtUs !== null);
  await recorder.until(() => recorder.lines.some(({ message }) => message === "retention removed captures"));
  const records = recorder.recordTimesUs.length;
  maker.allow();
  // Behind what comes back, and behind whatever would be recorded for it.
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
    while (open().some((path) => path.includes(runId))) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  await recorder.stop();
  t.match(await checkDirectory(recorder.directory), {
    ok: true,
    findings: { length: 0 },
    summary: { captureFiles: 0 },
  });
});

t.test("what retention removes right behind a late artefact keeps it in the manifest", async (t) => {
  const { maker, recorder, raw } = await start(t, { retention: { days: null, bytes: 100_000 } });
  maker.hold();
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  await recorder.until(() => maker.held === 2);
  await raw.accept({ type: "run.fail", id: runId, error_message: "e" });
  maker.allow();
  await recorder.until(has(recorder, runId, frameId, ALL));
  // One that is larger than all that may stay, so that both go.
  const large = await startRun(raw);
  await raw.accept(
    { type: "file.put", run_id: large, name: "a.png", content_type: "image/png" },
    Buffer.alloc(200_000),
  );
  await raw.accept({ type: "run.fail", id: large, error_message: "e" });
  await recorder.until(() => recorder.run(runId).capturesRemovedAtUs !== null);
  t.equal(manifestOf(recorder.run(runId)).length, ALL.length);
  for (const { deletedAtUs } of manifestOf(recorder.run(runId))) t.ok(deletedAtUs);
});

t.test("at low water nothing is made; with room again it goes on", async (t) => {
  const disk = new RoomFileSystem();
  const { maker, recorder, raw } = await start(t, { fileSystem: disk.fileSystem });
  const runId = await startRun(raw);
  maker.hold();
  const frameId = await sendFrame(raw, runId);
  await recorder.until(() => maker.held === 2);
  disk.freeBytes = 900 * 1024 * 1024;
  recorder.timers.advance(5_000);
  await recorder.until(() => recorder.row("disk").status === "degraded");
  maker.allow();
  await recorder.until(has(recorder, runId, frameId, ["raw.ply", "png"]));
  await raw.accept({ type: "event.add", run_id: runId, event_type: "note", data: {} });
  t.equal(maker.asked.length, 3, "what was under way is stored, with its preview, and nothing else begun");
  disk.freeBytes = 90_000 * 1024 * 1024;
  recorder.timers.advance(5_000);
  await recorder.until(has(recorder, runId, frameId, ALL));
});

t.test("nothing is made of what is not written yet, also of a run that ends right behind its frame", async (t) => {
  const disk = new GatedFileSystem();
  const { maker, recorder, raw } = await start(t, { fileSystem: disk.fileSystem });
  maker.hold();
  const [before, runId] = [await startRun(raw), await startRun(raw)];
  const first = await sendFrame(raw, before);
  await recorder.until(() => maker.held === 2);
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
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  while (maker.answered < 5) await turn();
  for (let nth = 0; nth < 50; nth++) await turn();
  t.equal(maker.asked.length, 5, "those of the frame before it");
  disk.release();
  await recorder.until(() => recorder.runs.get(runId)?.frames[0]?.artefacts?.ply !== undefined);
  t.same(formatsOf(frameOf(recorder.run(runId), frameId)), ALL);
  t.same(formatsOf(frameOf(recorder.run(before), first)), ALL);
});

t.test("the bytes are durable before the record that names them, while the run goes on and later", async (t) => {
  const disk = new GatedFileSystem();
  const { maker, recorder, raw } = await start(t, { fileSystem: disk.fileSystem });
  for (const isEnded of [false, true]) {
    maker.hold();
    const runId = await startRun(raw);
    const frameId = await sendFrame(raw, runId);
    if (isEnded) await raw.accept({ type: "run.fail", id: runId, error_message: "e" });
    await recorder.until(() => maker.held === 2);
    disk.hold("datasync", ".cap");
    maker.allow();
    await disk.waiting();
    // Whatever is in the log is given to the front in order: no record of what is made comes before this.
    for (let turn = 0; turn < 50; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
    t.same(formatsOf(frameOf(recorder.run(runId), frameId)), ["npy"]);
    disk.release();
    await recorder.until(has(recorder, runId, frameId, ALL));
  }
});

t.test(
  "captures wait when the documents of ended runs gather that are not processed, and all else goes on",
  async (t) => {
    const { maker, recorder, raw } = await start(t);
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
