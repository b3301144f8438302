import { copyFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { capturePath } from "../../../storage/capture-path.js";
import { FileSystemError, nodeFileSystem } from "../../../storage/file-system.js";
import { LOOK_INTERVAL_MS } from "../../../workers/recorder/store-watch.js";
import { frameBegin, frameLines, LINE_BYTES, nextId, PROGRAM_ID, programPut } from "../../helpers/link-messages.js";
import { until } from "../../helpers/log-harness.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder-harness.js";

async function capturing(t: Test) {
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory);
  const controller = await recorder.connect("controller");
  const [runId, frameId] = [nextId(), nextId()];
  for (const body of [
    programPut(),
    { type: "run.create", id: runId, program_id: PROGRAM_ID },
    { type: "run.start", id: runId },
    { type: "step.start", run_id: runId, index: 1 },
    frameBegin(frameId, runId),
  ]) {
    await controller.accept(body);
  }
  await controller.accept(frameLines(frameId, 0, 2), new Uint8Array(2 * LINE_BYTES).fill(1));
  return { directory, recorder, controller, runId };
}

/** Has every look come due, and waits for its end, where the next one is set. */
async function look({ timers }: RecorderHarness): Promise<void> {
  const looks = timers.armedFor(LOOK_INTERVAL_MS);
  timers.advance(LOOK_INTERVAL_MS);
  await until(() => timers.armedFor(LOOK_INTERVAL_MS) >= looks, "the end of the look");
}

t.test("health says that the file of the lock was removed, and since when", async (t) => {
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory);
  t.match(recorder.row("log"), { status: "healthy" });
  rmSync(join(directory, "lock"), { recursive: true });
  await look(recorder);
  t.match(recorder.row("log"), {
    status: "degraded",
    detail: /^since \d{4}-.*: the file of the lock in .* was removed/,
  });
  t.match(recorder.row("recorder"), { status: "healthy" });
});

const removals = {
  unlinked: (path: string) => rmSync(path),
  replaced: (path: string) => {
    copyFileSync(path, `${path}.copy`);
    renameSync(`${path}.copy`, path);
  },
  "gone with its folder": (path: string) => rmSync(join(path, ".."), { recursive: true }),
};

for (const [how, remove] of Object.entries(removals)) {
  for (const which of ["the newest segment", "the capture file that is being written"]) {
    t.test(`${which}, ${how} while the service runs, ends the acknowledgements`, async (t) => {
      const { directory, recorder, controller, runId } = await capturing(t);
      const isSegment = which === "the newest segment";
      const segment = readdirSync(join(directory, "meta")).at(-1) as string;
      const path = isSegment
        ? join(directory, "meta", segment)
        : join(directory, "captures", capturePath(runId, "capture"));
      // What is as it should be is no matter.
      await look(recorder);
      await controller.accept(runEvent(runId));
      remove(path);
      // It is the last look.
      recorder.timers.advance(LOOK_INTERVAL_MS);
      await until(() => recorder.row("recorder").status === "down", "the end of the recording");
      const reason = new RegExp(`^since \\d{4}-.*${path} was removed or replaced`);
      t.match(recorder.row(isSegment ? "log" : "recorder"), { status: "down", detail: reason });
      const committed = recorder.origins.length;
      controller.message(runEvent(runId));
      for (let frame = await controller.next(); frame !== null; frame = await controller.next()) {
        t.not(frame.kind, "ack");
      }
      t.equal(recorder.origins.length, committed, "nothing was recorded any more");
    });
  }
}

for (const which of ["segment", "capture file"]) {
  t.test(`a ${which} that is gone when the service ends is told then, not by the next start`, async (t) => {
    const { directory, recorder, runId } = await capturing(t);
    const isSegment = which === "segment";
    const segment = join(directory, "meta", readdirSync(join(directory, "meta")).at(-1) as string);
    const path = isSegment ? segment : join(directory, "captures", capturePath(runId, "capture"));
    rmSync(path);
    await recorder.stop();
    const errors = recorder.lines.filter(({ level }) => level === "error").map((line) => JSON.stringify(line));
    t.ok(
      errors.some((text) => text.includes(`${path} was removed or replaced`)),
      errors.join("\n"),
    );
  });
}

t.test("a log that the disk does not give keeps its snapshot, whatever that is worth", async (t) => {
  const directory = temporaryDirectory(t);
  await (await RecorderHarness.start(t, directory)).stop();
  const snapshot = join(directory, "snapshot", "0000000000000009.snap");
  writeFileSync(snapshot, "no snapshot");
  const fileSystem: typeof nodeFileSystem = {
    ...nodeFileSystem,
    open: async (path, mode) => {
      const file = await nodeFileSystem.open(path, mode);
      if (path.endsWith(".seg")) {
        file.read = async () => {
          throw new FileSystemError("EIO", "read", path);
        };
      }
      return file;
    },
  };
  await t.rejects(RecorderHarness.start(t, directory, { fileSystem }), { code: "EIO" });
  t.same(readdirSync(join(directory, "snapshot")), ["0000000000000009.snap"]);
  const recorder = await RecorderHarness.start(t, directory);
  t.same(readdirSync(join(directory, "snapshot")), [], "it goes once the log is read");
  const [kept] = readdirSync(join(directory, "quarantine"));
  t.match(kept, /0000000000000009\.snap/, "as damage, to be looked at");
  t.match(recorder.row("log"), { status: "degraded", detail: /no answer is wrong for it/ });
  await recorder.stop();
  rmSync(join(directory, "quarantine", kept as string));
  t.match((await RecorderHarness.start(t, directory)).row("log"), { status: "healthy" });
});

function runEvent(runId: string) {
  return { type: "event.add", run_id: runId, event_type: "note", data: {} };
}
