import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { generateUuidV7 } from "../../../../core/identifiers.js";
import { manifestOf } from "../../../../core/run/run-files.js";
import { wallClockUs } from "../../../../core/service-clock.js";
import { type CaptureKind, capturePath } from "../../../../storage/captures/capture-path.js";
import { nodeFileSystem } from "../../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../../storage/disk/file-system-error.js";
import {
  CAPTURED_BYTES,
  IMAGE,
  isRemoved,
  type KeptRun,
  REPORT,
  runWithCaptures,
} from "../../../helpers/captures/kept-captures.js";
import { PROGRAM_ID } from "../../../helpers/link/link-messages.js";
import type { RawProducer } from "../../../helpers/link/raw-producer.js";
import { listOf } from "../../../helpers/list-of.js";
import { RecorderHarness, temporaryDirectory } from "../../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../../helpers/store/checked-directory.js";

const DAY_US = 86_400_000_000;
const MINUTE_MS = 60_000;

function pathOf(recorder: RecorderHarness, runId: string, kind: CaptureKind = "capture"): string {
  return join(recorder.directory, "captures", capturePath(runId, kind));
}

async function endedRun(recorder: RecorderHarness, raw: RawProducer, fill: number, id?: string): Promise<KeptRun> {
  const run = await runWithCaptures(raw, fill, id);
  await raw.accept({ type: "run.finish", id: run.id });
  await recorder.until(() => recorder.run(run.id).status === "completed");
  return run;
}

const removals = (recorder: RecorderHarness) =>
  recorder.lines.filter(({ message }) => message === "retention removed captures").map(({ fields }) => fields);

/** Lets time pass, which ends silent connections, and then a message through: what was due has begun by then. */
async function pass(recorder: RecorderHarness, ms: number): Promise<void> {
  recorder.timers.advance(ms);
  const raw = await recorder.connect("clock");
  await raw.accept({ type: "cell.put" });
  raw.socket.destroy();
}

t.test(
  "by bytes: the oldest ended runs go, at once; an active run never; records, manifest and reports stay",
  async (t) => {
    const recorder = await RecorderHarness.start(t, temporaryDirectory(t), {
      retention: { days: null, bytes: 2 * CAPTURED_BYTES },
    });
    const raw = await recorder.connect("controller");
    const active = await runWithCaptures(raw, 1);
    const [first, second] = [await endedRun(recorder, raw, 2), await endedRun(recorder, raw, 3)];
    t.equal(removals(recorder).length, 0);
    const before = structuredClone(recorder.run(first.id));
    const third = await endedRun(recorder, raw, 4);
    await recorder.until(() => removals(recorder).length === 1);
    t.match(removals(recorder)[0], { runs: 1, bytes: CAPTURED_BYTES, kept_runs: 2, kept_bytes: 2 * CAPTURED_BYTES });
    t.same(
      [active, first, second, third].map(({ id }) => existsSync(pathOf(recorder, id))),
      [true, false, true, true],
    );
    const after = recorder.run(first.id);
    const removedAtUs = after.capturesRemovedAtUs as number;
    t.same(after, { ...before, capturesRemovedAtUs: removedAtUs, updatedAtUs: removedAtUs }, "all else stays");
    t.ok(removedAtUs > recorder.run(third.id).updatedAtUs, "one clock: above everything before");
    const manifest = manifestOf(after);
    t.same(
      manifest.map(({ name, deletedAtUs, updatedAtUs }) => [name, deletedAtUs, updatedAtUs === removedAtUs]),
      [
        [`frame-${first.frameId}.npy`, removedAtUs, true],
        ["report.pdf", null, false],
        ["marked.png", removedAtUs, true],
      ],
      "what was made from the captures goes with them, by its type; the report stays",
    );
    t.same(readFileSync(pathOf(recorder, first.id, "report")), REPORT);
    t.same(readFileSync(pathOf(recorder, second.id)).subarray(-IMAGE.length), IMAGE);
    // The active one is the oldest, and its turn comes when it has ended.
    await raw.accept({ type: "run.finish", id: active.id });
    await recorder.until(() => removals(recorder).length === 2);
    t.ok(isRemoved(recorder.run(active.id)));
    t.notOk(existsSync(pathOf(recorder, active.id)));
    t.same(recorder.figures?.retention, { runs: 2, files: 2, bytes: 2 * CAPTURED_BYTES });
    t.match(recorder.row("recorder").detail, `retention has removed captures of 2 runs, ${2 * CAPTURED_BYTES} bytes`);
    t.equal(isRemoved(recorder.run(second.id)), false);
    await raw.accept({ type: "cell.put" });
    await recorder.stop();
    t.match(await checkDirectory(recorder.directory), { ok: true, findings: { length: 0 } });
  },
);

t.test(
  "by age: what ended so many days ago goes, seen once a minute; a run of before is removed after a restart too",
  async (t) => {
    const directory = temporaryDirectory(t);
    let wallUs = wallClockUs();
    const options = { retention: { days: 3, bytes: null }, wallUs: () => wallUs };
    const recorder = await RecorderHarness.start(t, directory, options);
    const raw = await recorder.connect("controller");
    const first = await endedRun(recorder, raw, 1);
    const firstEndUs = recorder.run(first.id).completedAtUs as number;
    wallUs += DAY_US;
    const second = await endedRun(recorder, raw, 2);
    wallUs = firstEndUs + 3 * DAY_US - 1;
    await pass(recorder, MINUTE_MS);
    t.notOk(isRemoved(recorder.run(first.id)), "not a microsecond too early");
    wallUs++;
    await pass(recorder, MINUTE_MS - 1);
    t.notOk(isRemoved(recorder.run(first.id)));
    recorder.timers.advance(1);
    await recorder.until(() => removals(recorder).length === 1);
    t.ok(isRemoved(recorder.run(first.id)));
    t.notOk(existsSync(pathOf(recorder, first.id)));
    t.notOk(isRemoved(recorder.run(second.id)));
    await recorder.stop();
    wallUs += DAY_US;
    const again = await RecorderHarness.start(t, directory, options);
    await again.until(() => removals(again).length === 1);
    t.ok(isRemoved(again.run(second.id)));
    t.notOk(existsSync(pathOf(again, second.id)));
    t.equal(removals(again)[0]?.oldest_kept, null);
  },
);

t.test(
  "by age: a clock that is set back removes nothing too early, and what was due when it has come round",
  async (t) => {
    let wallUs = wallClockUs();
    const options = { retention: { days: 3, bytes: null }, wallUs: () => wallUs };
    const recorder = await RecorderHarness.start(t, temporaryDirectory(t), options);
    const raw = await recorder.connect("controller");
    const first = await endedRun(recorder, raw, 1);
    const firstEndUs = recorder.run(first.id).completedAtUs as number;
    wallUs -= 30 * DAY_US;
    const second = await endedRun(recorder, raw, 2);
    const secondEndUs = recorder.run(second.id).completedAtUs as number;
    t.ok(secondEndUs > firstEndUs, "runs end by the service's clock, which never goes back");
    await pass(recorder, MINUTE_MS);
    wallUs = firstEndUs + 3 * DAY_US - 1;
    await pass(recorder, MINUTE_MS);
    t.same(
      [first, second].map(({ id }) => isRemoved(recorder.run(id))),
      [false, false],
    );
    wallUs = secondEndUs + 3 * DAY_US;
    await pass(recorder, MINUTE_MS);
    await recorder.until(() => isRemoved(recorder.run(second.id)));
    t.ok(isRemoved(recorder.run(first.id)), "the older one went before it");
  },
);

t.test(
  "by age: a clock that jumps years ahead removes nothing within a day, also with a restart, and health says so",
  async (t) => {
    const directory = temporaryDirectory(t);
    let wallUs = wallClockUs();
    const options = { retention: { days: 3, bytes: null }, wallUs: () => wallUs };
    let recorder = await RecorderHarness.start(t, directory, options);
    const first = await endedRun(recorder, await recorder.connect("controller"), 1);
    wallUs += 3_650 * DAY_US;
    await pass(recorder, MINUTE_MS);
    await recorder.until(() => recorder.row("recorder").status === "degraded");
    t.match(
      recorder.row("recorder").detail,
      / 36(49|50) days ahead of the last run .* for a day, and then removed; correct the clock/,
    );
    const second = await endedRun(recorder, await recorder.connect("other"), 2);
    await recorder.stop();
    recorder = await RecorderHarness.start(t, directory, options);
    await recorder.until(() => recorder.row("recorder").status === "degraded");
    wallUs += DAY_US - 1;
    await pass(recorder, MINUTE_MS);
    t.notOk(isRemoved(recorder.run(first.id)));
    // Until then the older run was kept. After a whole day the clock counts as right.
    wallUs = recorder.run(second.id).completedAtUs as number;
    wallUs += DAY_US;
    await pass(recorder, MINUTE_MS);
    await recorder.until(() => isRemoved(recorder.run(first.id)) && recorder.row("recorder").status === "healthy");
    t.notOk(isRemoved(recorder.run(second.id)));
  },
);

t.test("off by default: nothing goes, whatever the time", async (t) => {
  let wallUs = wallClockUs();
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), { wallUs: () => wallUs });
  const raw = await recorder.connect("controller");
  const run = await endedRun(recorder, raw, 1);
  wallUs += 3_650 * DAY_US;
  await pass(recorder, 10 * MINUTE_MS);
  t.ok(existsSync(pathOf(recorder, run.id)));
  t.same(recorder.askedToLetGo, []);
});

t.test(
  "the file goes only when the readers have let go; what a stop leaves is taken up at the next start, also with retention off",
  async (t) => {
    const directory = temporaryDirectory(t);
    const recorder = await RecorderHarness.start(t, directory, { retention: { days: null, bytes: 1 } });
    recorder.letsGo = false;
    const raw = await recorder.connect("controller");
    const run = await endedRun(recorder, raw, 1);
    await recorder.until(() => recorder.askedToLetGo.length === 1);
    t.same(recorder.askedToLetGo, [[run.id]]);
    t.ok(isRemoved(recorder.run(run.id)), "the tombstone was sent before");
    const other = await endedRun(recorder, raw, 2);
    await raw.accept({ type: "cell.put" });
    t.ok(existsSync(pathOf(recorder, run.id)), "nobody has answered yet, and messages go on");
    t.notOk(isRemoved(recorder.run(other.id)), "the next batch waits for this one");
    await recorder.stop();
    t.ok(existsSync(pathOf(recorder, run.id)));
    t.match(await checkDirectory(directory), { ok: true, findings: listOf({ code: "capture_left" }) });
    const again = await RecorderHarness.start(t, directory);
    await again.until(() => again.askedToLetGo.length === 2);
    t.notOk(existsSync(pathOf(again, run.id)));
    t.ok(existsSync(pathOf(again, other.id)));
    await again.stop();
    t.match(await checkDirectory(directory), { ok: true, findings: { length: 0 } });
  },
);

t.test("a file that cannot be unlinked holds up no other, health says so, and it is tried again", async (t) => {
  let stuck = "";
  const fileSystem = {
    ...nodeFileSystem,
    unlink: (path: string) =>
      path === stuck ? Promise.reject(new FileSystemError("EPERM", "unlink", path)) : nodeFileSystem.unlink(path),
  };
  const directory = temporaryDirectory(t);
  const options = { fileSystem, retention: { days: null, bytes: CAPTURED_BYTES } };
  const recorder = await RecorderHarness.start(t, directory, options);
  const raw = await recorder.connect("controller");
  const first = await endedRun(recorder, raw, 1);
  stuck = pathOf(recorder, first.id);
  const second = await endedRun(recorder, raw, 2);
  const third = await endedRun(recorder, raw, 3);
  const fourth = await endedRun(recorder, raw, 4);
  await recorder.until(() => recorder.figures?.retention?.files === 2);
  t.same(
    [first, second, third, fourth].map(({ id }) => existsSync(pathOf(recorder, id))),
    [true, false, false, true],
  );
  t.same(recorder.figures?.retention, { runs: 2, files: 2, bytes: 2 * CAPTURED_BYTES }, "what was freed is counted");
  const file = `captures/${capturePath(first.id, "capture")}`;
  const said = `a removed capture cannot be unlinked (unlink ${file}: EPERM); tried again once a minute`;
  t.match(recorder.row("recorder"), { status: "degraded" });
  t.match(recorder.row("recorder").detail, /^since \d{4}-\d\d-\d\dT[0-9:.]+Z: /);
  t.ok(recorder.row("recorder").detail?.endsWith(said), recorder.row("recorder").detail ?? "no detail");
  t.equal(recorder.lines.filter(({ level }) => level === "error").length, 1, "one line, however often it is tried");
  await recorder.stop();

  const again = await RecorderHarness.start(t, directory, options);
  await again.until(() => again.row("recorder").status === "degraded");
  stuck = "";
  // Health changes before the pass is over, and the next pass begins a minute after that.
  while (again.row("recorder").status !== "healthy") await pass(again, MINUTE_MS);
  t.notOk(existsSync(pathOf(again, first.id)));
  t.ok(again.lines.some(({ message }) => message === "a removed capture was unlinked after all"));
});

t.test("a removal whose sync fails ends the recorder's work at once, as any failed sync does", async (t) => {
  let failsIn = "";
  const fileSystem = {
    ...nodeFileSystem,
    syncDirectory: (path: string) =>
      path === failsIn ? Promise.reject(new FileSystemError("EIO", "fsync", path)) : nodeFileSystem.syncDirectory(path),
  };
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), {
    fileSystem,
    retention: { days: null, bytes: CAPTURED_BYTES },
  });
  const raw = await recorder.connect("controller");
  const first = await endedRun(recorder, raw, 1);
  const { id } = await runWithCaptures(raw, 2);
  failsIn = join(pathOf(recorder, first.id), "..");
  raw.message({ type: "run.finish", id });
  await recorder.until(() => recorder.lines.some(({ level }) => level === "error"));
  t.equal(recorder.row("recorder").status, "down");
  t.match(
    recorder.row("recorder").detail,
    /no captures are stored any more, because a write or sync failed: fsync .*EIO/,
  );
  t.match(await recorder.stop(), /fsync .*EIO/);
});

t.test("folders of past months go when they are empty, and come back when they are needed", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), {
    retention: { days: null, bytes: CAPTURED_BYTES },
  });
  const raw = await recorder.connect("controller");
  const months = () => readdirSync(join(recorder.directory, "captures")).sort();
  const idIn = (month: number, n: number) => generateUuidV7(Date.UTC(2031, month, 3), new Uint8Array(10).fill(n));
  // This run has only captures, so that the folder of its month becomes empty.
  const bare = idIn(0, 1);
  const open = await runWithCaptures(raw, 9);
  await raw.accept({ type: "run.cancel", id: open.id });
  await raw.accept({ type: "run.create", id: bare, program_id: PROGRAM_ID });
  await raw.accept({ type: "run.start", id: bare });
  await raw.accept(
    { type: "file.put", run_id: bare, name: "a.png", content_type: "image/png" },
    Buffer.alloc(CAPTURED_BYTES),
  );
  const late = idIn(0, 2);
  await raw.accept({ type: "run.create", id: late, program_id: PROGRAM_ID });
  await raw.accept({ type: "run.finish", id: bare });
  await recorder.until(() => recorder.run(bare).status === "completed");
  t.ok(months().includes("203101"));
  await raw.accept({ type: "run.create", id: idIn(1, 1), program_id: PROGRAM_ID });
  const next = await endedRun(recorder, raw, 3, idIn(1, 2));
  await recorder.until(() => isRemoved(recorder.run(bare)) && !months().includes("203101"));
  t.ok(existsSync(pathOf(recorder, next.id)));
  t.ok(existsSync(join(recorder.directory, "captures", capturePath(open.id, "report"))), "a month with a report stays");
  // A run of the removed month, created before, stores its first bytes only now.
  await raw.accept({ type: "run.start", id: late });
  await raw.accept({ type: "file.put", run_id: late, name: "r.pdf", content_type: "application/pdf" }, REPORT);
  t.same(readFileSync(pathOf(recorder, late, "report")), REPORT);
});
