import t, { type Test } from "tap";
import { encodeFrame } from "../../../../workers/cell-link/frame-codec.js";
import { GatedFileSystem } from "../../../helpers/disk/gated-file-system.js";
import { RoomFileSystem } from "../../../helpers/disk/room-file-system.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
  seriesAppend,
} from "../../../helpers/link/link-messages.js";
import type { RawProducer } from "../../../helpers/link/raw-producer.js";
import { listOf } from "../../../helpers/list-of.js";
import {
  type HarnessOptions,
  RecorderHarness,
  temporaryDirectory,
} from "../../../helpers/recorder/recorder-harness.js";

const MIB = 1024 * 1024;

/** A recorder with a run whose first step captures a frame. */
async function startRun(t: Test, disk: RoomFileSystem, options: HarnessOptions = {}) {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), { fileSystem: disk.fileSystem, ...options });
  const controller = await recorder.connect("controller");
  await controller.accept(programPut());
  const runId = nextId();
  const frameId = nextId();
  for (const body of [
    { type: "run.create", id: runId, program_id: PROGRAM_ID },
    { type: "run.start", id: runId },
    { type: "step.start", run_id: runId, index: 1 },
    frameBegin(frameId, runId),
  ]) {
    await controller.accept(body);
  }
  return { recorder, controller, runId, frameId };
}

/** Lets the recorder look at the disk. */
async function look(recorder: RecorderHarness, level: string): Promise<void> {
  recorder.timers.advance(5_000);
  await recorder.until(() => recorder.row("disk").status === level);
}

/** Advances second by second until the condition holds: a write that is being tried again waits for the next second. */
async function letTimePass(recorder: RecorderHarness, condition: () => boolean): Promise<void> {
  while (!condition()) {
    recorder.timers.advance(1_000);
    for (let turn = 0; turn < 10 && !condition(); turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

async function answered(raw: RawProducer, sequence: number): Promise<string> {
  for (;;) {
    const frame = await raw.next();
    if (frame === null) return "closed";
    if (frame.kind === "refuse") return `refused: ${JSON.stringify(frame.body)}`;
    if (frame.kind === "ack" && frame.sequence >= sequence) return "acknowledged";
  }
}

t.test("at low water captures wait, each kind of them, and everything else goes on", async (t) => {
  const disk = new RoomFileSystem();
  const { recorder, controller, runId, frameId } = await startRun(t, disk);
  const heads = await Promise.all(["head", "series", "report", "large"].map((name) => recorder.connect(name)));
  const [head, series, report, large] = heads as [RawProducer, RawProducer, RawProducer, RawProducer];
  disk.freeBytes = 900 * MIB;
  await look(recorder, "degraded");
  t.match(recorder.row("disk"), { status: "degraded", detail: /since 20.*captures wait/ });
  const before = recorder.origins.length;
  // One connection's messages stay in order: what stands behind a capture waits with it.
  const event = { type: "event.add", run_id: runId, event_type: "note", data: {} };
  const first = head.message(event);
  head.message(frameLines(frameId, 0, 2), new Uint8Array(2 * LINE_BYTES).fill(1));
  const last = [head.message(event)];
  last.push(series.message(seriesAppend(runId), new Uint8Array(16)));
  last.push(report.message({ type: "file.put", run_id: runId, name: "a", content_type: "a/b" }, new Uint8Array(100)));
  last.push(
    large.message({ type: "file.put", run_id: runId, name: "b", content_type: "a/b" }, new Uint8Array(3 * MIB)),
  );
  t.equal(await answered(head, first), "acknowledged");
  for (let at = 0; at < 20; at++) await controller.accept(event);
  // A file without bytes takes no room.
  await controller.accept({ type: "file.put", run_id: runId, name: "empty", content_type: "a/b" });
  // Longer than any time limit of the link: a producer that has to wait does not count as silent.
  for (let second = 0; second < 90; second++) {
    recorder.timers.advance(1_000);
    await controller.untilPong();
  }
  t.equal(recorder.origins.length, before + 22, "no capture was taken");
  t.equal(recorder.run(runId).frames[0]?.batches.length, 0);
  disk.freeBytes = 2 ** 40;
  await look(recorder, "healthy");
  for (const [at, raw] of heads.entries()) t.equal(await answered(raw, last[at] as number), "acknowledged");
  t.equal(recorder.run(runId).frames[0]?.batches.length, 1);
  t.equal(recorder.run(runId).series.length, 1);
  t.same(
    recorder
      .run(runId)
      .files.map(({ name }) => name)
      .sort(),
    ["a", "b", "empty"],
  );
  t.equal(recorder.refusals.length, 0);
  const lines = recorder.lines.filter(({ message }) => message.startsWith("the disk"));
  t.same(
    lines.map(({ level, message }) => [level, message]),
    [
      ["warn", "the disk has little room: captures wait"],
      ["info", "the disk has room again: everything goes on"],
    ],
  );
});

t.test("a payload that is half read when low water comes is not taken before there is room", async (t) => {
  const disk = new RoomFileSystem();
  const { recorder, controller, runId } = await startRun(t, disk);
  const head = await recorder.connect("head");
  const payload = new Uint8Array(2 * MIB).fill(3);
  const body = { type: "file.put", run_id: runId, name: "a", content_type: "a/b" };
  const [start, bytes] = encodeFrame({ kind: "message", sequence: 1, body, payload }) as [Uint8Array, Uint8Array];
  head.write(start);
  head.write(bytes.subarray(0, MIB));
  await controller.untilPong();
  disk.freeBytes = 900 * MIB;
  await look(recorder, "degraded");
  head.write(bytes.subarray(MIB));
  for (let at = 0; at < 50; at++) await controller.untilPong();
  t.equal(recorder.run(runId).files.length, 0);
  disk.freeBytes = 2 ** 40;
  await look(recorder, "healthy");
  t.equal(await answered(head, 1), "acknowledged");
  t.equal(recorder.run(runId).files.length, 1);
});

t.test("at critical water everything waits, also who comes anew, and goes on without a restart", async (t) => {
  const disk = new RoomFileSystem();
  const { recorder, controller, runId } = await startRun(t, disk);
  disk.freeBytes = 100 * MIB;
  await look(recorder, "down");
  const before = recorder.origins.length;
  const last = controller.message({ type: "event.add", run_id: runId, event_type: "note", data: {} });
  const late = recorder.connect("late");
  for (let second = 0; second < 90; second++) {
    recorder.timers.advance(1_000);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  t.equal(recorder.origins.length, before);
  disk.freeBytes = 2 ** 40;
  await look(recorder, "healthy");
  t.equal(await answered(controller, last), "acknowledged");
  t.equal((await late).welcome.committed, 0);
  t.match(
    recorder.lines.filter(({ message }) => message.startsWith("the disk")),
    listOf({ level: "error", message: "the disk is full: all messages wait" }, { level: "info" }),
  );
});

for (const [what, path] of [
  ["log", "/meta/"],
  ["capture file", "/captures/"],
] as const) {
  t.test(
    `a ${what} that finds no room: what was taken waits, is written once there is some, and nothing is refused`,
    async (t) => {
      const disk = new RoomFileSystem();
      const { recorder, controller, runId, frameId } = await startRun(t, disk);
      disk.fullPaths = [path, "ballast"];
      const lines = frameLines(frameId, 0, 1);
      const sequence = controller.message(lines, new Uint8Array(LINE_BYTES).fill(9));
      await recorder.until(() => recorder.row("disk").status === "down");
      t.match(recorder.row("disk").detail, /no room \(write .*ENOSPC\), all messages wait/);
      const behind = controller.message({ type: "event.add", run_id: runId, event_type: "note", data: {} });
      for (let at = 1; at <= 3; at++) {
        const { refusedWrites } = disk;
        await letTimePass(recorder, () => disk.refusedWrites > refusedWrites);
      }
      t.equal(recorder.run(runId).frames[0]?.batches.length, 0);
      t.equal(recorder.row("log").status, "healthy");
      disk.fullPaths = [];
      await letTimePass(recorder, () => recorder.row("disk").status === "healthy");
      t.equal(await answered(controller, sequence), "acknowledged");
      t.equal(await answered(controller, behind), "acknowledged");
      t.equal(recorder.run(runId).frames[0]?.batches.length, 1);
      // The store that was written is what the next process finds.
      await recorder.stop();
      const again = await RecorderHarness.start(t, recorder.directory);
      t.equal(again.run(runId).frames[0]?.batches.length, 1);
      t.equal(again.run(runId).eventLog.filter(({ eventType }) => eventType === "note").length, 1);
      t.equal((await again.connect("controller")).welcome.committed, controller.sequence);
    },
  );
}

t.test(
  "the service can be ended while the disk is full; what was not acknowledged is the producer's to send again",
  async (t) => {
    const disk = new RoomFileSystem();
    const { recorder, controller, runId } = await startRun(t, disk);
    const committed = controller.sequence;
    disk.fullPaths = ["/meta/", "ballast"];
    controller.message({ type: "event.add", run_id: runId, event_type: "note", data: {} });
    await recorder.until(() => recorder.row("disk").status === "down");
    t.equal(await recorder.stop(), null, "a clean end: nothing acknowledged is lost");
    t.notOk((await controller.rest()).some(({ kind }) => kind === "ack"));
    const again = await RecorderHarness.start(t, recorder.directory);
    const back = await again.connect("controller");
    t.equal(back.welcome.committed, committed);
    await back.accept({ type: "event.add", run_id: runId, event_type: "note", data: {} });
  },
);

t.test(
  "a stop on a full disk is clean too while a capture waits for room, and syncs what was acknowledged",
  async (t) => {
    const disk = new RoomFileSystem();
    const { recorder, controller, frameId } = await startRun(t, disk);
    disk.fullPaths = [".cap", "ballast"];
    controller.message(frameLines(frameId, 0, 1), new Uint8Array(LINE_BYTES));
    await recorder.until(() => recorder.row("disk").status === "down");
    t.equal(await recorder.stop(), null);
    t.match(
      recorder.lines.filter(({ level }) => level === "error" || level === "warn").map(({ message }) => message),
      listOf(
        "the disk is full: all messages wait",
        "the disk had no room at the stop: messages that waited for it were not acknowledged",
      ),
    );
    const again = await RecorderHarness.start(t, recorder.directory);
    t.equal((await again.connect("controller")).welcome.committed, controller.sequence - 1);
  },
);

t.test("a sync that fails at a stop on a full disk is told: there something acknowledged is at stake", async (t) => {
  const disk = new RoomFileSystem();
  const { recorder, controller, runId } = await startRun(t, disk, { durability: "none" });
  disk.fullPaths = ["/meta/", "ballast"];
  disk.failsSyncs = true;
  controller.message({ type: "event.add", run_id: runId, event_type: "note", data: {} });
  await recorder.until(() => recorder.row("disk").status === "down");
  t.match(
    await recorder.stop(),
    /^since .*: the log takes no more records, because a write or sync failed: fdatasync .*EIO/,
  );
});

t.test("a failed sync is no full disk: it ends the recorder's work", async (t) => {
  const gate = new GatedFileSystem();
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), { fileSystem: gate.fileSystem });
  const controller = await recorder.connect("controller");
  gate.failDatasync("/meta/");
  const sequence = controller.message(programPut());
  t.match(await answered(controller, sequence), /refused: .*unavailable/);
  t.equal(recorder.row("log").status, "down");
});
