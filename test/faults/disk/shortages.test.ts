/** The tables of workers/recorder/README.md: what becomes of each call that fails for want of descriptors or memory. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { lockDirectory } from "../../../storage/disk/directory-lock.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { Log } from "../../../storage/log/log.js";
import { LOOK_INTERVAL_MS } from "../../../workers/recorder/upkeep/store-watch.js";
import { CALLS, type Call, ShortFileSystem } from "../../helpers/disk/short-file-system.js";
import { MarkdownPage } from "../../helpers/documents/markdown-page.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
} from "../../helpers/link/link-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { type HarnessOptions, RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { outOfMemory, ShortMemory } from "../../helpers/short-memory.js";

const CODES = ["EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "ENOBUFS"];
/** Calls that recording needs: they wait, and so does what was taken with them. The other calls delay nobody. */
const WAITS: ReadonlySet<Call> = new Set(["open", "mkdir", "rename", "write", "ftruncate", "fstat"]);
const EVENTS = 12;

type Recording = Awaited<ReturnType<typeof recording>>;

async function recording(t: Test, more: HarnessOptions = {}) {
  const short = new ShortFileSystem();
  const directory = temporaryDirectory(t);
  const options = { fileSystem: short.fileSystem, segmentBytes: 1_500, ...more };
  const recorder = await RecorderHarness.start(t, directory, options);
  const producer = await recorder.connect("controller");
  await producer.accept(programPut());
  return { short, directory, options, recorder, producer };
}

/** A run with a frame that has begun. */
async function beginRun({ producer }: Recording): Promise<{ runId: string; frameId: string }> {
  const [runId, frameId] = [nextId(), nextId()];
  for (const body of [
    { type: "run.create", id: runId, program_id: PROGRAM_ID },
    { type: "run.start", id: runId },
    { type: "step.start", run_id: runId, index: 1 },
    frameBegin(frameId, runId),
  ]) {
    await producer.accept(body);
  }
  return { runId, frameId };
}

/** Starts the same store once more, with nothing missing. */
function restarted(t: Test, { directory, options }: Recording): Promise<RecorderHarness> {
  return RecorderHarness.start(t, directory, { ...options, fileSystem: nodeFileSystem });
}

/** Sends a capture, for which a folder and a file are made, and events enough for some segments. */
function work({ producer }: Recording, { runId, frameId }: { runId: string; frameId: string }): void {
  producer.message(frameLines(frameId, 0, 2), new Uint8Array(2 * LINE_BYTES).fill(7));
  for (let at = 1; at <= EVENTS; at++) producer.message(runEvent(runId, at));
}

function notes(recorder: RecorderHarness, runId: string): number {
  return recorder.run(runId).eventLog.filter(({ eventType }) => eventType === "note").length;
}

/** Health tells of the months that a test removes, and of nothing else. */
function isWell(recorder: RecorderHarness, key: string): boolean {
  const { status, detail } = recorder.row(key);
  return status === "healthy" || /^since [^;]*folders in [^;]*captures were removed [^;]*$/.test(detail ?? "");
}

function runEvent(runId: string, at: number, length = 400) {
  return { type: "event.add", run_id: runId, event_type: "note", data: { at, text: "x".repeat(length) } };
}

/** Lets what waits be tried again until the condition holds; gives the sequence numbers that were acknowledged meanwhile. */
async function drive({ recorder, producer }: Recording, condition: () => boolean): Promise<number[]> {
  const acknowledged: number[] = [];
  while (!condition()) {
    recorder.timers.advance(500);
    // The ping keeps the connection open, and what was begun gets its turn.
    for (const { kind, sequence } of await producer.untilPong()) if (kind === "ack") acknowledged.push(sequence);
  }
  return acknowledged;
}

function removeMonths(directory: string): void {
  const captures = join(directory, "captures");
  for (const month of readdirSync(captures)) rmSync(join(captures, month), { recursive: true });
}

t.test("the table of the page names every call", async (t) => {
  const section = new MarkdownPage("workers/recorder/README.md").section(
    "## When descriptors, memory or threads run out",
  );
  const named = [...section.matchAll(/^\| ([a-z, ]+) \|/gm)].flatMap(([, calls = ""]) => calls.split(", "));
  t.same(
    [...CALLS, "fdatasync", "fsync"].filter((call) => !named.includes(call)),
    [],
  );
});

for (const call of CALLS) {
  t.test(
    `nothing is left for ${call}: ${WAITS.has(call) ? "it waits" : "it holds up nobody"}, and all goes on`,
    async (t) => {
      const one = await recording(t);
      const { short, recorder } = one;
      const runIds: string[] = [];
      for (const code of CODES) {
        const run = await beginRun(one);
        runIds.push(run.runId);
        const isDone = () => notes(recorder, run.runId) === EVENTS;
        // Its folder is made with the first capture of a month.
        if (call === "mkdir") removeMonths(one.directory);
        short.missing = { call, code };
        work(one, run);
        if (WAITS.has(call)) {
          const detail = new RegExp(`^since \\d{4}-.* has no .* left \\(${call} .*: ${code}\\); work waits`);
          await recorder.until(() => detail.test(recorder.row("recorder").detail ?? ""));
          const refusals = short.refusals;
          t.same(await drive(one, () => short.refusals >= refusals + 3), [], `${call} ${code}: no acknowledgement`);
          t.notOk(isDone());
        } else {
          await drive(one, isDone);
        }
        t.not(recorder.row("log").status, "down");
        short.missing = null;
        await drive(one, isDone);
        await drive(one, () => ["recorder", "log", "disk"].every((key) => isWell(recorder, key)));
        await one.producer.accept({ type: "run.fail", id: run.runId, error_message: "enough" });
      }
      t.equal(await recorder.stop(), null);
      const next = await restarted(t, one);
      for (const runId of runIds) {
        t.equal(notes(next, runId), EVENTS, "all is there");
        t.equal(next.run(runId).frames[0]?.lines, 2);
      }
      await next.stop();
    },
  );
}

t.test(
  "the lock is made again whatever its calls lacked before, and nobody is said to have taken the directory",
  async (t) => {
    for (const call of ["stat", "mkdir", "open", "rename", "readdir"] as const) {
      const one = await recording(t);
      const { recorder, short } = one;
      const lock = join(one.directory, "lock");
      const lookUntil = async (condition: (detail: string) => boolean): Promise<void> => {
        while (!condition(recorder.row("recorder").detail ?? "")) {
          recorder.timers.advance(LOOK_INTERVAL_MS);
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      for (const code of CODES) {
        rmSync(lock, { recursive: true });
        short.missing = { call, code };
        const fault = new RegExp(`the lock in .* cannot be .* again: ${call} [^;]*: ${code}`);
        await lookUntil((detail) => fault.test(detail));
        short.missing = null;
        await lookUntil(() => recorder.row("recorder").status === "healthy");
        t.match(recorder.row("log"), { status: "healthy" }, `${call} ${code}`);
        t.equal(readdirSync(lock).length, 1, "one entry, and none is left of the failed attempts");
      }
      await t.rejects(lockDirectory(nodeFileSystem, lock), { code: "directory_locked" });
      t.equal(await recorder.stop(), null);
      t.same(readdirSync(lock), []);
    }
  },
);

t.test("a batch that finds no memory on its way to the view waits, and is written and answered then", async (t) => {
  const memory = new ShortMemory(t);
  // The view gives no memory back.
  const one = await recording(t, { takesBatches: false });
  const { recorder, producer } = one;
  const run = await beginRun(one);
  const { batchBytes } = recorder;
  await producer.accept(runEvent(run.runId, 1, 1_000));
  // A record just above a power of two: on its way to the view it needs twice the memory that anything before needs.
  const length = 2 ** 16 + 8 - (recorder.batchBytes - batchBytes - 1_000);
  // The log's own buffers become large enough.
  for (let at = 2; at <= 4; at++) await producer.accept(runEvent(run.runId, at, length));
  const sequence = producer.message(runEvent(run.runId, 5, length));
  memory.leastRefusedBytes = 2 ** 17;
  await recorder.until(() => recorder.row("recorder").status === "degraded");
  t.match(recorder.row("recorder").detail, /no memory left \(Array buffer allocation failed\); work waits/);
  const { refusals } = memory;
  t.same(await drive(one, () => memory.refusals >= refusals + 3), [], "no acknowledgement");
  t.equal(notes(recorder, run.runId), 4);
  memory.leastRefusedBytes = Number.POSITIVE_INFINITY;
  const acknowledged = await drive(one, () => notes(recorder, run.runId) === 5);
  for (const answer of await producer.untilPong()) if (answer.kind === "ack") acknowledged.push(answer.sequence);
  t.same(acknowledged, [sequence]);
  await drive(one, () => ["recorder", "log", "disk"].every((key) => recorder.row(key).status === "healthy"));
  t.equal(await recorder.stop(), null);
});

t.test("a message that finds no memory is refused, comes again, and leaves no gap in the log", async (t) => {
  const memory = new ShortMemory(t);
  const one = await recording(t, { segmentBytes: 64 * 1024 * 1024 });
  const { recorder, producer } = one;
  const run = await beginRun(one);
  producer.message(runEvent(run.runId, 1, 200_000));
  memory.leastRefusedBytes = 100_000;
  t.match(await producer.rest(), listOf({ kind: "refuse", sequence: 0, body: { code: "unavailable" } }));
  t.match(recorder.row("recorder"), {
    status: "degraded",
    detail: /no memory left \(Array buffer allocation failed\)/,
  });
  memory.leastRefusedBytes = Number.POSITIVE_INFINITY;
  const again = await recorder.connect("controller");
  await again.accept(runEvent(run.runId, 1, 200_000));
  while (recorder.row("recorder").status !== "healthy") recorder.timers.advance(500);
  t.equal(await recorder.stop(), null);
  const next = await restarted(t, one);
  t.equal(notes(next, run.runId), 1);
  t.match(next.row("log"), { status: "healthy" });
  await next.stop();
});

t.test(
  "a payload whose record finds no memory takes its place in the capture file once, however often it comes",
  async (t) => {
    const one = await recording(t);
    const { recorder, directory } = one;
    const run = await beginRun(one);
    let { producer } = one;
    const lines = (count: number, value: number) => new Uint8Array(count * LINE_BYTES).fill(value);
    const { append } = Log.prototype;
    t.teardown(() => Object.assign(Log.prototype, { append }));
    for (const count of [6, 4, 2]) {
      Object.assign(Log.prototype, {
        append: () => {
          throw outOfMemory();
        },
      });
      producer.message(frameLines(run.frameId, 0, count), lines(count, count));
      t.match(await producer.rest(), listOf({ kind: "refuse", body: { code: "unavailable" } }));
      Object.assign(Log.prototype, { append });
      producer = await recorder.connect("controller");
    }
    await producer.accept(frameLines(run.frameId, 0, 2), lines(2, 7));
    await producer.accept(frameLines(run.frameId, 2, 1), lines(1, 8));
    t.equal(await recorder.stop(), null);
    const stored = readFileSync(join(directory, "captures", capturePath(run.runId, "capture")));
    t.same(stored.subarray(0, 3 * LINE_BYTES), Buffer.concat([lines(2, 7), lines(1, 8)]));
    t.ok(stored.length <= 6 * LINE_BYTES, `${stored.length} bytes`);
  },
);

t.test("an acknowledgement that finds no memory ends its connection; the next one is told", async (t) => {
  const one = await recording(t);
  const { recorder, producer } = one;
  const run = await beginRun(one);
  const { alloc } = Buffer;
  t.teardown(() => Object.assign(Buffer, { alloc }));
  const sequence = producer.message(runEvent(run.runId, 1));
  Object.assign(Buffer, {
    alloc: () => {
      throw outOfMemory();
    },
  });
  t.same(await producer.rest(), []);
  Object.assign(Buffer, { alloc });
  const again = await recorder.connect("controller");
  t.match(again.welcome, { committed: sequence });
  await again.accept(runEvent(run.runId, 2));
  t.not(recorder.row("recorder").status, "down");
});

t.test("a stop while something waits is a clean one, and what was acknowledged is there", async (t) => {
  for (const call of WAITS) {
    const one = await recording(t);
    const run = await beginRun(one);
    one.short.missing = { call, code: "EMFILE" };
    work(one, run);
    await one.recorder.until(() => one.recorder.row("recorder").status === "degraded");
    t.equal(await one.recorder.stop(), null, call);
    const next = await restarted(t, one);
    t.equal(next.run(run.runId).frames.length, 1);
    t.match(next.row("log"), { status: "healthy" });
    await next.stop();
  }
});

t.test("a write of webhooks is refused while records wait, and says why", async (t) => {
  const one = await recording(t);
  const { recorder, short } = one;
  const run = await beginRun(one);
  short.missing = { call: "open", code: "ENFILE" };
  work(one, run);
  await recorder.until(() => recorder.row("recorder").status === "degraded");
  const reply = await recorder.request({ op: "delete", webhookId: nextId() });
  t.match(reply, { ok: false, error: { code: "unavailable", message: /machine has no file descriptor left/ } });
  short.missing = null;
  await drive(one, () => notes(recorder, run.runId) === EVENTS);
});
