import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import t, { type Test } from "tap";
import { capturePath } from "../../../../storage/captures/capture-path.js";
import { lockDirectory } from "../../../../storage/disk/directory-lock.js";
import { nodeFileSystem } from "../../../../storage/disk/file-system.js";
import { LOOK_INTERVAL_MS } from "../../../../workers/recorder/upkeep/store-watch.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
} from "../../../helpers/link/link-messages.js";
import { RecorderHarness, temporaryDirectory } from "../../../helpers/recorder/recorder-harness.js";
import { until } from "../../../helpers/store/log-harness.js";

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

t.test("a lock that was removed is made again; health says when another process has the directory", async (t) => {
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory);
  rmSync(join(directory, "lock"), { recursive: true });
  await look(recorder);
  t.equal(readdirSync(join(directory, "lock")).length, 1);
  t.match(recorder.row("log"), { status: "healthy" });
  rmSync(join(directory, "lock"), { recursive: true });
  const other = await lockDirectory(nodeFileSystem, join(directory, "lock"));
  await look(recorder);
  t.match(recorder.row("log"), { status: "degraded", detail: /^since \d{4}-.*: the lock in .* was removed/ });
  t.match(recorder.row("recorder"), { status: "healthy" });
  await other.release();
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
      // A look while all is as it should be changes nothing.
      await look(recorder);
      await controller.accept(runEvent(runId));
      remove(path);
      // It is the last look.
      recorder.timers.advance(LOOK_INTERVAL_MS);
      await until(() => recorder.row("recorder").status === "down", "the end of the recording");
      const reason = new RegExp(`^since \\d{4}-.*somebody removed or replaced ${path}`);
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
      errors.some((text) => text.includes(`somebody removed or replaced ${path}`)),
      errors.join("\n"),
    );
  });
}

t.test("the socket is listened on anew when its file is removed, or left by somebody; connections stay", async (t) => {
  const { recorder, controller, runId } = await capturing(t);
  const { path } = recorder.address;
  const removals = {
    removed: () => rmSync(path),
    "replaced by a dead one": () => {
      rmSync(path);
      execFileSync(
        process.execPath,
        [
          "-e",
          `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`,
        ],
        {
          stdio: "ignore",
        },
      );
    },
  };
  for (const [how, remove] of Object.entries(removals)) {
    try {
      remove();
    } catch {
      // It kills itself, so that its socket's file stays.
    }
    await look(recorder);
    const other = await recorder.connect(`another-${how.replaceAll(" ", "-")}`);
    await other.accept(programPut(nextId()));
    await other.close();
    t.equal(statSync(path).mode & 0o777, 0o600, how);
    t.match(recorder.row("recorder"), { status: "healthy" }, how);
  }
  await controller.accept(runEvent(runId));
  await recorder.stop();
  t.notOk(existsSync(path), "a stop removes it");
});

t.test("a stop removes the socket's file only while it is ours", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const { path } = recorder.address;
  rmSync(path);
  const foreign = createServer();
  await new Promise<void>((resolve) => foreign.listen(path, resolve));
  t.teardown(() => foreign.close());
  const { ino } = statSync(path);
  await recorder.stop();
  t.equal(statSync(path).ino, ino);
  t.same(
    readdirSync(recorder.directory).filter((name) => name.startsWith("cell")),
    ["cell.sock"],
  );
});

t.test("something else in place of the socket shows in health, until it is gone", async (t) => {
  const { recorder } = await capturing(t);
  const { path } = recorder.address;
  rmSync(path);
  writeFileSync(path, "a file");
  await look(recorder);
  t.match(recorder.row("recorder"), {
    status: "degraded",
    detail: /^since \d{4}-.*producers cannot connect: .*cell\.sock: something that is not a socket/,
  });
  t.equal(readFileSync(path, "utf8"), "a file");
  rmSync(path);
  await look(recorder);
  t.match(recorder.row("recorder"), { status: "healthy" });
  await (await recorder.connect("another")).close();
});

t.test("the file that names the format is written again, so that the next start finds it", async (t) => {
  const { recorder, directory } = await capturing(t);
  const path = join(directory, "format.json");
  const text = readFileSync(path, "utf8");
  rmSync(path);
  await look(recorder);
  t.equal(readFileSync(path, "utf8"), text);
  t.match(recorder.lines.at(-1), { level: "warn", message: /removed: it was made again/, fields: { path } });
  t.match(recorder.row("recorder"), { status: "healthy" });
  rmSync(path);
  mkdirSync(path);
  await look(recorder);
  t.match(recorder.row("recorder"), {
    status: "degraded",
    detail: /a part of the data directory cannot be looked at, or made again: rename/,
  });
  rmdirSync(path);
  await look(recorder);
  t.equal(readFileSync(path, "utf8"), text);
  await recorder.stop();
  await (await RecorderHarness.start(t, directory)).stop();
});

t.test("something else in place of the lock shows in health, until it is gone", async (t) => {
  const { recorder, directory } = await capturing(t);
  const lock = join(directory, "lock");
  rmSync(lock, { recursive: true });
  writeFileSync(lock, "a file");
  for (let nth = 0; nth < 2; nth++) await look(recorder);
  t.match(recorder.row("recorder"), {
    status: "degraded",
    detail: /^since \d{4}-.*: the lock in .*\/lock cannot be looked at, or made again: mkdir .*lock: ENOTDIR/,
  });
  const told = recorder.lines.filter(({ level }) => level === "error");
  t.equal(told.length, 1, "one line however long it lasts");
  t.equal(readFileSync(lock, "utf8"), "a file");
  rmSync(lock);
  await look(recorder);
  t.match(recorder.row("recorder"), { status: "healthy" });
  t.match(recorder.row("log"), { status: "healthy" });
  t.equal(readdirSync(lock).length, 1);
});

t.test("months of captures and full segments that are removed show in health, until they are back", async (t) => {
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory, { segmentBytes: 1_000 });
  const controller = await recorder.connect("controller");
  for (let nth = 0; nth < 8; nth++) await controller.accept(programPut(nextId()));
  const [captures, meta] = [join(directory, "captures"), join(directory, "meta")];
  for (const month of ["202609", "202610"]) mkdirSync(join(captures, month));
  await look(recorder);
  t.match(recorder.row("recorder"), { status: "healthy" });
  const away = (folder: string, name: string) => renameSync(join(folder, name), join(directory, `${name}.away`));
  const back = (folder: string, name: string) => renameSync(join(directory, `${name}.away`), join(folder, name));
  const segments = readdirSync(meta).filter((name) => name.endsWith(".seg"));
  t.ok(segments.length > 2);
  away(captures, "202610");
  away(meta, segments[1] as string);
  await look(recorder);
  t.match(recorder.row("recorder"), {
    status: "degraded",
    detail: /^since \d{4}-.*: folders in .*captures were removed or replaced \(202610\): the captures that were there/,
  });
  // Another folder of that name does not hold them.
  mkdirSync(join(captures, "202610"));
  away(captures, "202609");
  await look(recorder);
  t.match(recorder.row("recorder").detail, /folders in .*captures were removed or replaced \(202609, 202610\)/);
  t.match(recorder.row("log"), {
    status: "degraded",
    detail: new RegExp(
      `^since \\d{4}-.*: segments of the log were removed \\(1, first ${segments[1]}\\): what was recorded there`,
    ),
  });
  rmdirSync(join(captures, "202610"));
  for (const month of ["202609", "202610"]) back(captures, month);
  back(meta, segments[1] as string);
  await look(recorder);
  t.match(recorder.row("recorder"), { status: "healthy" });
  t.match(recorder.row("log"), { status: "healthy" });
});

t.test("the ballast file is made again", async (t) => {
  const { recorder, directory } = await capturing(t);
  const path = join(directory, "ballast.bin");
  const startedMs = performance.now();
  const untilThere = async (): Promise<void> => {
    while (!existsSync(path)) {
      if (performance.now() - startedMs > 60_000) throw new Error("there is none");
      await look(recorder);
    }
  };
  // A start does not wait for it.
  await untilThere();
  const { size } = statSync(path);
  rmSync(path);
  await untilThere();
  t.equal(statSync(path).size, size);
  t.match(recorder.row("disk"), { status: "healthy" });
});

t.test(
  "folders that are removed are made anew; of captures that are gone health tells until they are back",
  async (t) => {
    const directory = temporaryDirectory(t);
    const recorder = await RecorderHarness.start(t, directory);
    const controller = await recorder.connect("controller");
    await controller.accept(programPut());
    const fileOfNewRun = async (): Promise<void> => {
      const run_id = nextId();
      await controller.accept({ type: "run.create", id: run_id, program_id: PROGRAM_ID });
      await controller.accept({ type: "run.start", id: run_id });
      const put = { type: "file.put", run_id, name: "r.pdf", file_type: "report", content_type: "application/pdf" };
      await controller.accept(put, Buffer.from("%PDF"));
      t.ok(existsSync(join(directory, "captures", capturePath(run_id, "report"))));
      await controller.accept({ type: "run.fail", id: run_id, error_message: "enough" });
    };
    await fileOfNewRun();
    const captures = join(directory, "captures");
    renameSync(captures, `${captures}.away`);
    rmSync(join(directory, "quarantine"), { recursive: true });
    // Also before anybody has looked.
    await fileOfNewRun();
    await look(recorder);
    t.match(recorder.row("recorder"), {
      status: "degraded",
      detail: /^since \d{4}-.*the folder .*captures was removed or replaced/,
    });
    for (const name of ["captures", "quarantine"]) t.ok(existsSync(join(directory, name)), name);
    await fileOfNewRun();
    rmSync(captures, { recursive: true });
    renameSync(`${captures}.away`, captures);
    await look(recorder);
    t.match(recorder.row("recorder"), { status: "healthy" });
    writeFileSync(join(directory, "file.txt"), "");
    rmSync(join(directory, "quarantine"), { recursive: true });
    renameSync(join(directory, "file.txt"), join(directory, "quarantine"));
    await look(recorder);
    t.match(recorder.row("recorder"), {
      status: "degraded",
      detail: /a part of the data directory cannot be looked at, or made again: mkdir .*quarantine/,
    });
    rmSync(join(directory, "quarantine"));
    await look(recorder);
    t.match(recorder.row("recorder"), { status: "healthy" });
  },
);

function runEvent(runId: string) {
  return { type: "event.add", run_id: runId, event_type: "note", data: {} };
}
