import { readFileSync, writeFileSync } from "node:fs";
import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import type { Extent } from "../../../../core/capture/capture.js";
import { formatsOf, manifestOf } from "../../../../core/run/run-files.js";
import { capturePath } from "../../../../storage/captures/capture-path.js";
import { NearMaker } from "../../../helpers/captures/near-maker.js";
import {
  ALL_FORMATS,
  captureFileOf,
  frameOf,
  hasEnded,
  hasFormats,
  sendFrame,
  startProcessing,
  startRun,
} from "../../../helpers/recorder/processing-recorder.js";
import { RecorderHarness } from "../../../helpers/recorder/recorder-harness.js";

t.test("a damaged capture fails what is made of it, says so in the event log, and holds nothing up", async (t) => {
  const { maker, recorder, raw } = await startProcessing(t);
  maker.hold();
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  const good = await sendFrame(raw, runId);
  const bytes = readFileSync(captureFileOf(recorder, runId));
  bytes.writeUInt8(bytes.readUInt8(100) ^ 1, 100);
  writeFileSync(captureFileOf(recorder, runId), bytes);
  await raw.accept({ type: "run.finish", id: runId });
  maker.allow();
  await recorder.until(hasEnded(recorder, runId));
  const run = recorder.run(runId);
  t.same(
    formatsOf(frameOf(run, frameId)),
    ["luminance.png"],
    "of the heights, which are damaged, there is no NPY either",
  );
  t.same(formatsOf(frameOf(run, good)), ALL_FORMATS);
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
  t.equal(manifestOf(run).length, 1 + ALL_FORMATS.length);
  const idle = new NearMaker();
  await recorder.stop();
  const second = await RecorderHarness.start(t, recorder.directory, { artefacts: idle });
  await second.connect("somebody");
  t.same(idle.asked, [], "what failed is not tried again");
});

t.test("damaged luminance fails what shows it, and leaves what is of the heights alone", async (t) => {
  const { maker, recorder, raw } = await startProcessing(t);
  maker.hold();
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  const bytes = readFileSync(captureFileOf(recorder, runId));
  const { offset, lengthBytes } = frameOf(recorder.run(runId), frameId).batches.at(-1) as Extent;
  bytes.writeUInt8(bytes.readUInt8(offset + lengthBytes - 5) ^ 1, offset + lengthBytes - 5);
  writeFileSync(captureFileOf(recorder, runId), bytes);
  await raw.accept({ type: "run.finish", id: runId });
  maker.allow();
  await recorder.until(hasEnded(recorder, runId));
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
    const { maker, recorder, raw } = await startProcessing(t);
    let refusals = 2;
    maker.answersWith = (name) =>
      name === "filter" && refusals-- > 0 ? { code: "file_system_failed", message: "EIO: i/o error, read" } : undefined;
    const asks = () => maker.asked.filter((name) => name === "filter").length;
    const said = () =>
      recorder.lines.filter(({ message }) => message.includes("put off")).map(({ message }) => message);
    // The link has a timer of this length too.
    const isPutOff = () => recorder.timers.armedFor(1_000) === 2;
    /** Each time it was refused it is asked for again after so many seconds, and not before. */
    const assertRetries = async (...waitsSeconds: number[]): Promise<void> => {
      for (const seconds of waitsSeconds) {
        while (!isPutOff()) await eventLoopTurn();
        const before = asks();
        recorder.timers.advance(seconds * 1_000 - 1);
        await eventLoopTurn();
        t.equal(asks(), before, `not before ${seconds} s`);
        recorder.timers.advance(1);
      }
    };
    const runId = await startRun(raw);
    const frame = sendFrame(raw, runId);
    await assertRetries(1, 2);
    const frameId = await frame;
    await recorder.until(hasFormats(recorder, runId, frameId, ALL_FORMATS));
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
      ALL_FORMATS.filter((format) => format !== "ply"),
    );
  },
);

t.test("what the service has nothing left for is asked for again until it is made, however long", async (t) => {
  const { maker, recorder, raw } = await startProcessing(t);
  const codes = ["resource_shortage", "no_thread", "out_of_memory"];
  let refusals = 20;
  maker.answersWith = (name) =>
    name === "filter" && refusals-- > 0
      ? { code: codes[refusals % codes.length] as string, message: "EMFILE" }
      : undefined;
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  const isMade = hasFormats(recorder, runId, frameId, ALL_FORMATS);
  while (!isMade()) {
    recorder.timers.advance(1_000);
    await raw.untilPong();
  }
  t.equal(maker.asked.filter((name) => name === "filter").length, 21);
  t.notOk(recorder.run(runId).eventLog.some(({ eventType }) => eventType === "artefact_failed"));
});

t.test("what there is no memory for in an hour is given up: this machine may never have it", async (t) => {
  const { maker, recorder, raw } = await startProcessing(t);
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
  // The clock goes on while the recorder writes: on a busy machine it shows some minutes more.
  const minutes = (recorder.timers.nowMs() - beginMs) / 60_000;
  t.ok(minutes > 55 && minutes < 110, `${minutes} minutes`);
});

t.test("a maker that ends is no failure: the next start makes it", async (t) => {
  const { maker, recorder, raw } = await startProcessing(t, { finalizeTimeoutMs: 5_000 });
  maker.answersWith = (name) => ({
    code: name === "filter" ? "cancelled" : "closed",
    message: "the service is ending",
  });
  const runId = await startRun(raw);
  const frameId = await sendFrame(raw, runId);
  await recorder.until(() => maker.asked.length === 5);
  await raw.accept({ type: "run.finish", id: runId });
  t.equal(recorder.run(runId).status, "finalizing");
  recorder.timers.advance(5_000);
  await recorder.until(hasEnded(recorder, runId));
  t.same(formatsOf(frameOf(recorder.run(runId), frameId)), ["npy"]);
  await recorder.stop();
  const second = await RecorderHarness.start(t, recorder.directory, { artefacts: new NearMaker() });
  await second.until(hasFormats(second, runId, frameId, ALL_FORMATS));
});
