import { existsSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";
import t, { type Test } from "tap";
import { createRandom } from "../../../../core/random.js";
import { countLineBits } from "../../../../workers/artefacts/cloud/line-counts.js";
import { FilterStages, newFilterTeam, partsOf } from "../../../../workers/artefacts/filter/filter-parts.js";
import { filterOutliers } from "../../../../workers/artefacts/filter/outlier-filter.js";
import { SplitFilter } from "../../../../workers/artefacts/filter/split-filter.js";
import {
  joinMemory,
  KernelMemory,
  MemoryLimitError,
  newSharedMemory,
  type SharedMemory,
  typeScriptKernels,
} from "../../../../workers/artefacts/kernel-memory.js";
import { ArtefactPool, type RunOptions } from "../../../../workers/artefacts/pool/artefact-pool.js";
import {
  artefactTasks,
  type TaskInput,
  type TaskName,
  type TaskOutput,
} from "../../../../workers/artefacts/pool/artefact-tasks.js";
import { doubtfulFrames } from "../../../helpers/captures/doubtful-frames.js";
import { loadFrame, type MadeFrame, noiseFrame, surfaceFrame } from "../../../helpers/captures/made-frames.js";
import { storedFrame } from "../../../helpers/captures/stored-frame.js";
import { longOnly } from "../../../helpers/test-size.js";

const background = { priority: "background" } as const;
const faultFolder = t.testdir();
process.env.FAULTS = faultFolder;
const FAULTY_THREAD = new URL("../../../helpers/captures/faulty-artefact-thread.js", import.meta.url);

/** A pool that tells which tasks it was given. */
class ToldPool {
  readonly names: TaskName[] = [];
  readonly reports: unknown[] = [];
  readonly pool: ArtefactPool;

  constructor(t: Test, threads: number, taskTimeoutMs = 60_000) {
    this.pool = new ArtefactPool({
      threads,
      queueLimit: 1,
      taskTimeoutMs: () => taskTimeoutMs,
      report: (_message, { code }) => this.reports.push(code),
      threadModule: FAULTY_THREAD,
    });
    t.teardown(() => this.pool.close());
  }

  get threads(): number {
    return this.pool.threads;
  }

  run<N extends TaskName>(name: N, input: TaskInput<N>, options: RunOptions): Promise<TaskOutput<N>> {
    this.names.push(name);
    return this.pool.run(name, input, options);
  }

  /** Once no thread has a task. */
  async quiet(): Promise<void> {
    while (this.pool.running > 0) await new Promise((resolve) => setImmediate(resolve));
  }

  count(wanted: TaskName): number {
    return this.names.filter((name) => name === wanted).length;
  }
}

/** By the reference, in one thread. */
async function filtered(frame: MadeFrame) {
  const memory = typeScriptKernels();
  const mask = filterOutliers(memory, await loadFrame(memory, frame));
  return { ...mask, lineCounts: countLineBits(mask.bits, frame.geometry.width, frame.geometry.lines) };
}

t.test("several threads give the bits of one, whatever the frame and however many they are", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_122);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  const path = join(t.testdir(), "run.cap");
  for (const threads of [2, 3]) {
    const pool = new ToldPool(t, threads);
    const filter = new SplitFilter(pool, 1);
    for (let nth = 0; nth < 12; nth++) {
      const [width, lines] = [random.integer(1, 150), random.integer(2, 90)];
      const made = random.chance(0.3) ? noiseFrame : surfaceFrame;
      const { source, frame } = storedFrame(path, made(random.integer(1, 1_000), width, lines));
      t.same(await filter.run(source, background), await filtered(frame), `${threads} threads, ${frame.name}`);
    }
    t.ok(pool.count("filterTogether") >= 12 * threads);
    t.equal(pool.count("filter"), 0);
  }
});

t.test("each stage of lines is shared by the threads", async (t) => {
  const pool = new ToldPool(t, 2);
  const { source, frame } = storedFrame(join(t.testdir(), "run.cap"), surfaceFrame(3, 120, 90));
  const wanted = await filtered(frame);
  for (const kind of ["load", "measure", "mark"]) {
    const meetings = [1, 2].map((nth) => join(faultFolder, `meet-at-${kind}-${nth}`));
    for (const meeting of meetings) writeFileSync(meeting, "");
    t.same(await new SplitFilter(pool, 1).run(source, background), wanted, kind);
    for (const meeting of meetings) {
      t.ok(existsSync(`${meeting}-taken`), meeting);
      unlinkSync(`${meeting}-taken`);
    }
  }
  t.equal(pool.count("filter"), 0);
  t.same(pool.reports, []);
});

t.test("parts are all lines once, large ones first, as small in the end as is worth beginning", async (t) => {
  const seed = Number(process.env.SEED ?? 20_261_125);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  for (let nth = 0; nth < 300; nth++) {
    const members = random.integer(2, 16);
    const [width, lines] = random.chance(0.5)
      ? [random.integer(1, 16_384), random.integer(2, 20_000)]
      : [random.integer(1, 200), random.integer(2, 200)];
    for (const [kind, parts] of Object.entries(partsOf({ width, lines }, members))) {
      const what = `${kind} of ${width} x ${lines} by ${members}`;
      const taken = parts.map(({ firstLine, endLine }) => endLine - firstLine);
      const isWhole = parts.every(({ firstLine }, at) => firstLine === (parts[at - 1]?.endLine ?? 0));
      if (!isWhole || parts.at(-1)?.endLine !== lines) t.fail(`${what}: not all lines once`);
      if (parts.some(({ firstLine }) => firstLine % 8 !== 0)) t.fail(`${what}: a part begins within a tile`);
      if (taken.some((count, at) => count > (taken[at - 1] ?? count))) t.fail(`${what}: a larger one follows`);
      // The first is an eighth at most, two threads being the fewest, or a tile; the last but one half a tile more than the least at most.
      if ((taken[0] as number) > lines / 8 + 4 && (taken[0] as number) > 8) t.fail(`${what}: ${taken[0]} lines first`);
      const leastLines = ({ loaded: 16_000, measured: 4_000, marked: 16_000 }[kind] as number) / width;
      const isLarge = lines / 128 > leastLines;
      if (!isLarge && (taken.at(-2) ?? 0) > leastLines + 8) t.fail(`${what}: ${taken.at(-2)} lines last`);
      if (parts.length > 128 + 64 * members) t.fail(`${what}: ${parts.length} parts`);
    }
    const { measured, marked } = partsOf({ width, lines }, members);
    // What marking has found of a part is kept where measuring has found something.
    if (marked.length > measured.length) t.fail(`${width} x ${lines} by ${members}: more are marked than measured`);
  }
  const ofChip = partsOf({ width: 500, lines: 500 }, 2).measured.map(({ firstLine, endLine }) => endLine - firstLine);
  t.same(ofChip.slice(0, 3), [32, 32, 32], "of 16,000 positions at most");
  t.same(ofChip.slice(-4, -1), [8, 8, 8], "of 4,000 at least");
});

t.test("a thread has one instance of the kernels for a memory, however often that is handed to it", async (t) => {
  const shared = newSharedMemory();
  const { port1, port2 } = new MessageChannel();
  const handed = (memory: unknown): SharedMemory => {
    port1.postMessage(memory);
    return receiveMessageOnPort(port2)?.message;
  };
  const first = await joinMemory(handed(shared));
  const at = first.allocate(100);
  first.bytes(at, 1)[0] = 7;
  const again = handed(shared);
  t.not(again, shared);
  t.equal(await joinMemory(again), first);
  t.equal(first.allocate(100), at, "with nothing laid out");
  t.equal(first.bytes(at, 1)[0], 7, "on the same bytes");
  const other = await joinMemory(handed(newSharedMemory()));
  t.not(other, first);
  t.equal(other.bytes(at, 1)[0], 0);
  for (let nth = 0; nth < 40; nth++) await joinMemory(newSharedMemory());
  t.equal((await joinMemory(handed(shared))).bytes(at, 1)[0], 7, "also after many others");
  port1.close();
});

t.test("one thread, and a frame that is small, have it in one piece", async (t) => {
  const path = join(t.testdir(), "run.cap");
  const { source, frame } = storedFrame(path, surfaceFrame(1, 60, 40));
  const wanted = await filtered(frame);
  for (const [threads, least] of [
    [1, 1],
    [2, 100_000],
  ] as const) {
    const pool = new ToldPool(t, threads);
    t.same(await new SplitFilter(pool, least).run(source, background), wanted);
    t.same(pool.names, ["filter"]);
  }
});

t.test("filters at the same time keep their memories apart, with more of them than threads", async (t) => {
  const folder = t.testdir();
  const filter = new SplitFilter(new ToldPool(t, 2), 1);
  const frames = [1, 2, 3, 4, 5].map((seed) => storedFrame(join(folder, `${seed}.cap`), surfaceFrame(seed, 90, 70)));
  const clouds = frames.map(({ source }) => filter.run(source, { ...background, isContinued: true }));
  for (const [nth, { frame }] of frames.entries()) t.same(await clouds[nth], await filtered(frame), frame.name);
});

/** What the stages do, in this thread. */
function toldStages(t: Test): string[] {
  const kinds: string[] = [];
  const { run, next } = FilterStages.prototype;
  FilterStages.prototype.run = async function (stage, piece) {
    kinds.push(stage.kind);
    await run.call(this, stage, piece);
  };
  FilterStages.prototype.next = function (stage) {
    const following = next.call(this, stage);
    if ("alone" in following) kinds.push("alone");
    return following;
  };
  t.teardown(() => Object.assign(FilterStages.prototype, { run, next }));
  return kinds;
}

t.test("parts measure again where a point lies in the threshold's doubt", async (t) => {
  const path = join(t.testdir(), "run.cap");
  const pool = new ToldPool(t, 2);
  const kinds = toldStages(t);
  const tasks = artefactTasks();
  for (const made of await doubtfulFrames(17)) {
    const { source, frame } = storedFrame(path, made);
    const wanted = await filtered(frame);
    t.same(await new SplitFilter(pool, 1).run(source, background), wanted, frame.name);
    kinds.splice(0);
    // By one of two threads, whose other one never comes.
    const team = newFilterTeam(newSharedMemory(), source, 2);
    for (let turn = 1; ; turn++) {
      const { ended, ...cloud } = await tasks.filterTogether({ ...team, member: 1, turn });
      if (ended === "more") continue;
      t.match(cloud, wanted);
      break;
    }
    const parts = Object.fromEntries(
      ["layOut", "load", "measure", "mark", "alone"].map((kind) => [kind, kinds.filter((one) => one === kind).length]),
    );
    // Beside the parts: the tables, and the verification.
    t.same(
      parts,
      { layOut: 1, load: 1 + 7, measure: 1 + 7 + 1 + 7, mark: 14, alone: 1 },
      "53 lines in seven parts, twice",
    );
  }
});

t.test("a thread that crashes at any part, or between two, costs nothing but time", longOnly, async (t) => {
  const path = join(t.testdir(), "run.cap");
  const stages = ["layOut", "load", "measure", "mark"];
  const faults = stages.flatMap((kind) => [`crash-at-${kind}`, `crash-after-${kind}`]);
  for (const fault of [...faults, "crash-alone", "crash"]) {
    const pool = new ToldPool(t, 2);
    const filter = new SplitFilter(pool, 1);
    const { source, frame } = storedFrame(path, surfaceFrame(3, 120, 90));
    const crash = join(faultFolder, `${fault}-1`);
    writeFileSync(crash, "");
    t.same(await filter.run(source, background), await filtered(frame), fault);
    t.ok(existsSync(`${crash}-taken`), fault);
    unlinkSync(`${crash}-taken`);
    // A thread that was lost before it began has left nothing half done: the other one goes on, or it goes again.
    t.same(pool.count("filter"), fault === "crash" ? 0 : 1, `${fault}: one thread has it in the end`);
    await pool.quiet();
    t.same(pool.reports, ["worker_crashed"], fault);
    t.same(await filter.run(source, background), await filtered(frame), `after ${fault}`);
    // A turn that nobody wants any more would take the next fault.
    await pool.quiet();
  }
});

t.test(
  "a thread that gets stuck at a part is ended, and the other one does not wait for it for good",
  longOnly,
  async (t) => {
    const pool = new ToldPool(t, 2, 3_000);
    const filter = new SplitFilter(pool, 1);
    const { source, frame } = storedFrame(join(t.testdir(), "run.cap"), surfaceFrame(3, 120, 90));
    const spin = join(faultFolder, "spin-at-measure-1");
    writeFileSync(spin, "");
    t.same(await filter.run(source, background), await filtered(frame));
    t.ok(existsSync(`${spin}-taken`));
    unlinkSync(`${spin}-taken`);
    t.same(pool.reports, ["worker_stuck"]);
    t.equal(pool.count("filter"), 1);
  },
);

t.test("a large frame is filtered in turns, between which others have the threads", async (t) => {
  const pool = new ToldPool(t, 2);
  const folder = t.testdir();
  const { source, frame } = storedFrame(join(folder, "run.cap"), surfaceFrame(3, 1_600, 1_600));
  const small = storedFrame(join(folder, "small.cap"), surfaceFrame(4, 60, 40));
  const order: string[] = [];
  const large = new SplitFilter(pool, 1).run(source, background).then((cloud) => {
    order.push("large");
    return cloud;
  });
  while (pool.pool.running < 2) await new Promise((resolve) => setImmediate(resolve));
  await pool.run("countPoints", small.source, { priority: "client" });
  order.push("client");
  t.same(await large, await filtered(frame));
  t.same(order, ["client", "large"]);
  t.ok(pool.count("filterTogether") > 2, `${pool.count("filterTogether")} turns`);
});

t.test("parts that are loaded are verified as a whole", async (t) => {
  const filter = new SplitFilter(new ToldPool(t, 2), 1);
  const path = join(t.testdir(), "run.cap");
  const { source, frame } = storedFrame(path, surfaceFrame(3, 120, 90));
  const bytes = readFileSync(path);
  const { offset } = source.batches[1] as (typeof source.batches)[number];
  for (const at of [source.batches[0]?.offset as number, offset + 1_000, offset + 40 * 240 - 1, bytes.length - 1]) {
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] as number) ^ 4;
    writeFileSync(path, flipped);
    await t.rejects(filter.run(source, background), { code: "capture_damaged", message: /does not match its CRC/ });
  }
  writeFileSync(path, bytes.subarray(0, offset + 5_000));
  await t.rejects(filter.run(source, background), { code: "capture_damaged", message: /ends within/ });
  writeFileSync(path, bytes);
  t.same(await filter.run(source, background), await filtered(frame));
});

t.test("damaged heights that more memory is wanted for are told as damage", async (t) => {
  const path = join(t.testdir(), "run.cap");
  const { source } = storedFrame(path, surfaceFrame(3, 120, 90));
  const { allocate } = KernelMemory.prototype;
  t.teardown(() => Object.assign(KernelMemory.prototype, { allocate }));
  KernelMemory.prototype.allocate = function (lengthBytes) {
    if (lengthBytes === 4 * 120 * 90) throw new MemoryLimitError("no room for distances");
    return allocate.call(this, lengthBytes);
  };
  const tasks = artefactTasks();
  const turn = () => tasks.filterTogether({ ...newFilterTeam(newSharedMemory(), source, 2), member: 0, turn: 1 });
  await t.rejects(turn(), { message: "no room for distances" });
  const bytes = readFileSync(path);
  const at = (source.batches[0]?.offset as number) + 100;
  bytes[at] = (bytes[at] as number) ^ 4;
  writeFileSync(path, bytes);
  await t.rejects(turn(), { code: "capture_damaged" });
});

t.test("a frame that is too large for the memory is told so by parts too", async (t) => {
  const filter = new SplitFilter(new ToldPool(t, 2), 1);
  const { source } = storedFrame(join(t.testdir(), "run.cap"), surfaceFrame(3, 120, 90));
  const vast = { ...source, geometry: { ...source.geometry, width: 16_384, lines: 65_536 } };
  await t.rejects(filter.run(vast, background), {
    code: "too_large",
    message: /^the frame has 1073741824 positions: the filter's 2 GiB of memory fit about 255 million,/,
  });
});

t.test("what fails for good fails the whole, drops the other parts, and leaves the next filter alone", async (t) => {
  const pool = new ToldPool(t, 2);
  const filter = new SplitFilter(pool, 1);
  const folder = t.testdir();
  const { source, frame } = storedFrame(join(folder, "run.cap"), surfaceFrame(3, 120, 90));
  const crash = join(faultFolder, "crash-at-measure-1");
  writeFileSync(crash, "");
  // And the thread that has it in one piece, twice: not one that has only now its turn at the parts.
  for (const nth of [1, 2]) writeFileSync(join(faultFolder, `crash-filter-${nth}`), "");
  await t.rejects(filter.run(source, background), { code: "worker_crashed" });
  for (const nth of [1, 2]) unlinkSync(join(faultFolder, `crash-filter-${nth}-taken`));
  unlinkSync(`${crash}-taken`);
  await pool.quiet();
  t.equal(pool.pool.waiting("background"), 0);
  t.same(await filter.run(source, background), await filtered(frame));
  const missing = { ...source, path: `${source.path}-gone` };
  await t.rejects(filter.run(missing, background), { code: "capture_missing" });
  const gone = AbortSignal.abort();
  await t.rejects(filter.run(source, { ...background, signal: gone }), { code: "cancelled" });
  const leaving = new AbortController();
  const { source: large } = storedFrame(join(folder, "large.cap"), surfaceFrame(3, 1_600, 1_600));
  const left = filter.run(large, { ...background, signal: leaving.signal });
  while (pool.pool.running < 2) await new Promise((resolve) => setImmediate(resolve));
  leaving.abort();
  await t.rejects(left, { code: "cancelled" });
  await pool.quiet();
  t.same(await filter.run(source, background), await filtered(frame));
});
