import { readFileSync, writeFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import t from "tap";
import { cloudOf, csvOf, pictureOf } from "../../../../core/capture/artefact.js";
import type { Extent } from "../../../../core/capture/capture.js";
import { formatsOf, manifestOf, storedEnd } from "../../../../core/run/run-files.js";
import { qualityReportResponse } from "../../../../core/run/run-response.js";
import { NearMaker } from "../../../helpers/captures/near-maker.js";
import { readGreyPng, readPalettePng } from "../../../helpers/captures/png-reader.js";
import { frameBegin, nextId, seriesAppend } from "../../../helpers/link/link-messages.js";
import { listOf } from "../../../helpers/list-of.js";
import {
  ALL_FORMATS,
  captureFileOf,
  frameOf,
  hasEnded,
  hasFormats,
  LINES,
  sendFrame,
  startProcessing,
  startRun,
  WIDTH,
} from "../../../helpers/recorder/processing-recorder.js";
import { RecorderHarness } from "../../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../../helpers/store/checked-directory.js";

function stored(recorder: RecorderHarness, runId: string, { offset, lengthBytes, crc32: expected }: Extent): Buffer {
  const bytes = readFileSync(captureFileOf(recorder, runId)).subarray(offset, offset + lengthBytes);
  if (crc32(bytes) !== expected) throw new Error("other bytes than the extent's");
  return bytes;
}

t.test(
  "of a whole frame all formats are made, in their order, while the run goes on; what is stored is right",
  async (t) => {
    const { maker, recorder, raw } = await startProcessing(t);
    const runId = await startRun(raw);
    const frameId = await sendFrame(raw, runId);
    await recorder.until(hasFormats(recorder, runId, frameId, ALL_FORMATS));
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
    t.equal(storedEnd(run, "captures"), readFileSync(captureFileOf(recorder, runId)).length, "nothing lies between");
    await raw.accept({ type: "run.finish", id: runId });
    await recorder.until(hasEnded(recorder, runId));
    t.equal(manifestOf(recorder.run(runId)).length, ALL_FORMATS.length);
    t.same(recorder.run(runId).eventLog, []);
    await recorder.stop();
    t.match(await checkDirectory(recorder.directory), { ok: true, findings: { length: 0 } });
    const bytes = readFileSync(captureFileOf(recorder, runId));
    for (const { offset } of [height.file, cloud.mask as Extent, rawCloud.lineCounts]) {
      const damaged = Buffer.from(bytes);
      damaged.writeUInt8(damaged.readUInt8(offset) ^ 1, offset);
      writeFileSync(captureFileOf(recorder, runId), damaged);
      t.match(await checkDirectory(recorder.directory), {
        ok: false,
        findings: listOf({ code: "capture_damaged", offset }),
      });
    }
  },
);

t.test(
  "a preview is asked for together with its height map: a filter that takes minutes cannot come between",
  async (t) => {
    const { maker, recorder, raw } = await startProcessing(t);
    maker.hold();
    const runId = await startRun(raw);
    const frameId = await sendFrame(raw, runId);
    await recorder.until(() => maker.held >= 2);
    t.same(maker.asked, ["countPoints", "heightMap", "preview"]);
    maker.allow();
    await recorder.until(hasFormats(recorder, runId, frameId, ALL_FORMATS));
  },
);

t.test("a series has its CSV once it is whole: at the step's end, or at the run's", async (t) => {
  const { maker, recorder, raw } = await startProcessing(t);
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
  await recorder.until(hasEnded(recorder, runId));
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
  const { maker, recorder, raw } = await startProcessing(t);
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
  await recorder.until(hasEnded(recorder, runId));
  t.match(recorder.run(runId), { status: "completed" });
  t.same(formatsOf(frameOf(recorder.run(runId), frameId)), ALL_FORMATS);
});

t.test(
  "after the time-out a run completes, with a note of what was open; that is made later, and decides nothing anew",
  async (t) => {
    const { maker, recorder, raw } = await startProcessing(t, { finalizeTimeoutMs: 5_000 });
    maker.hold();
    const runId = await startRun(raw);
    const frameId = await sendFrame(raw, runId);
    await raw.accept({ type: "check.add", run_id: runId, check: { name: "gap", status: "passed" } });
    await raw.accept(seriesAppend(runId), Buffer.alloc(8));
    await recorder.until(() => maker.held === 3);
    maker.allow(1);
    await recorder.until(hasFormats(recorder, runId, frameId, ["raw.ply"]));
    await raw.accept({ type: "run.finish", id: runId });
    recorder.timers.advance(5_000);
    await recorder.until(hasEnded(recorder, runId));
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
    await recorder.until(hasFormats(recorder, runId, frameId, ALL_FORMATS));
    const after = recorder.run(runId);
    t.equal(recorder.recordTimesUs.length, records + 1, "one record tells of all");
    t.ok(csvOf(after.series[0] as never));
    t.equal(after.updatedAtUs, recorder.recordTimesUs.at(-1), "updated_at moves with the files");
    t.same(qualityReportResponse(after).quality_report, qualityReportResponse(before).quality_report);
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
  const { maker, recorder, raw } = await startProcessing(t);
  for (const type of ["run.fail", "run.cancel"] as const) {
    maker.hold();
    const runId = await startRun(raw);
    const frames = [await sendFrame(raw, runId), await sendFrame(raw, runId)];
    const open = nextId();
    await raw.accept({ ...frameBegin(open, runId), width: WIDTH });
    await raw.accept({ type, id: runId, error_message: "stopped" });
    await recorder.until(hasEnded(recorder, runId));
    const before = recorder.recordTimesUs.length;
    maker.allow();
    for (const frameId of frames) await recorder.until(hasFormats(recorder, runId, frameId, ALL_FORMATS));
    t.equal(recorder.recordTimesUs.length, before + 2, "one record for four artefacts");
    t.same(formatsOf(frameOf(recorder.run(runId), open)), [], "a frame that was not whole has no formats");
  }
});

t.test("the next start makes each artefact that a stop left unmade once, also those of ended runs", async (t) => {
  const { maker, recorder, raw } = await startProcessing(t);
  maker.hold();
  const [running, failed, finalizing] = [await startRun(raw), await startRun(raw), await startRun(raw)];
  const frames = new Map<string, string>();
  for (const runId of [running, failed, finalizing]) frames.set(runId, await sendFrame(raw, runId));
  await raw.accept({ type: "run.fail", id: failed, error_message: "e" });
  await raw.accept({ type: "run.finish", id: finalizing });
  await recorder.until(() => maker.held === 3);
  maker.allow(1);
  await recorder.until(hasFormats(recorder, running, frames.get(running) as string, ["raw.ply"]));
  await recorder.stop();
  maker.allow();
  const again = new NearMaker();
  const second = await RecorderHarness.start(t, recorder.directory, { artefacts: again });
  for (const [runId, frameId] of frames) await second.until(hasFormats(second, runId, frameId, ALL_FORMATS));
  await second.until(hasEnded(second, finalizing));
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

t.test("frames without a point, and without a line", async (t) => {
  const { recorder, raw } = await startProcessing(t);
  const runId = await startRun(raw);
  const blind = await sendFrame(raw, runId, Buffer.alloc(WIDTH * LINES * 4));
  const empty = await sendFrame(raw, runId, Buffer.alloc(0));
  await raw.accept({ type: "run.finish", id: runId });
  await recorder.until(hasEnded(recorder, runId));
  const run = recorder.run(runId);
  t.same(formatsOf(frameOf(run, blind)), ALL_FORMATS);
  t.equal(cloudOf(frameOf(run, blind), "ply")?.points, 0);
  t.same(formatsOf(frameOf(run, empty)), ["npy", "raw.ply", "ply"]);
  t.match(cloudOf(frameOf(run, empty), "ply"), { points: 0, mask: { lengthBytes: 0 }, lineCounts: { lengthBytes: 0 } });
  t.same(run.eventLog, []);
  await recorder.stop();
  t.match(await checkDirectory(recorder.directory), { ok: true, findings: { length: 0 } });
});
