import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { crc32 } from "node:zlib";
import t, { type Test } from "tap";
import { failureMessage } from "../../../../core/capture/artefact.js";
import { vertexBytes } from "../../../../core/capture/ply-header.js";
import { nodeFileSystem } from "../../../../storage/disk/file-system.js";
import { filterOutliers } from "../../../../workers/artefacts/filter/outlier-filter.js";
import { newKernelMemory } from "../../../../workers/artefacts/kernel-memory.js";
import {
  ArtefactPool,
  type ArtefactPoolOptions,
  poolSize,
  type TaskError,
} from "../../../../workers/artefacts/pool/artefact-pool.js";
import type { TaskName } from "../../../../workers/artefacts/pool/artefact-tasks.js";
import { indexSeries, writeRowBlock } from "../../../../workers/artefacts/series/series-source.js";
import { loadFrame, surfaceFrame } from "../../../helpers/captures/made-frames.js";
import { readGreyPng } from "../../../helpers/captures/png-reader.js";
import { storedFrame } from "../../../helpers/captures/stored-frame.js";
import { plainBuffersIn } from "../../../helpers/plain-buffers.js";
import { ArmedTimers } from "../../../helpers/recorder/armed-timers.js";

const ODD_TASKS = new URL("../../../helpers/captures/odd-tasks-thread.js", import.meta.url);

const TASK_TIMEOUT_MS = 59_000;

function startPool(t: Test, options: Partial<ArtefactPoolOptions> = {}) {
  const reports: unknown[] = [];
  const outcomes: string[] = [];
  const pool = new ArtefactPool({
    threads: 1,
    queueLimit: 100,
    taskTimeoutMs: () => TASK_TIMEOUT_MS,
    report: (_message, fields) => reports.push(fields.code ?? fields.message),
    onOutcome: ({ error }) => outcomes.push(error?.code ?? "done"),
    ...options,
  });
  t.teardown(() => pool.close());
  return { pool, reports, outcomes };
}

const odd = (path: string) => ({ path, channels: 1, appends: [] });
const background = { priority: "background" } as const;
const client = { priority: "client" } as const;
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "done",
    (error: TaskError) => error.code,
  );

/** A file of four-byte values, and the series that it holds, with so many rows in each append. */
function storedSeries(path: string, values: Float32Array | Int32Array, channels: number, rows: readonly number[]) {
  const bytes = Buffer.from(values.buffer);
  writeFileSync(path, bytes);
  let offset = 0;
  const appends = rows.map((count) => {
    const lengthBytes = 4 * channels * count;
    const extent = { offset, lengthBytes, crc32: crc32(bytes.subarray(offset, offset + lengthBytes)) };
    offset += lengthBytes;
    return {
      ...{ ...extent, rows: count, firstTimestampUs: 1_700_000_000_000_000 + offset, samplePeriodUs: 10 },
      ...{ dtype: values instanceof Int32Array ? ("i32" as const) : ("f32" as const) },
      ...{ valueScale: null, valueOffset: null, invalid: [] },
    };
  });
  return { bytes, series: { path, channels, appends } };
}

t.test("every task gives what its function gives, from the stored bytes", async (t) => {
  const { pool, reports } = startPool(t);
  const folder = t.testdir();
  const path = join(folder, "run.cap");
  const { source, frame } = storedFrame(path, surfaceFrame(4, 181, 120));
  const memory = await newKernelMemory();
  const { lineCounts, ...mask } = await pool.run("filter", source, background);
  t.same(mask, filterOutliers(memory, await loadFrame(memory, frame)));
  const picture = readGreyPng(await pool.run("heightMap", source, background));
  t.ok(Buffer.from(picture.samples.buffer).equals(frame.height), "heights");
  t.same([...readGreyPng(await pool.run("luminance", source, client)).samples], [...(frame.luminance ?? [])]);

  const maskExtent = { offset: readFileSync(path).length, lengthBytes: mask.bits.length, crc32: crc32(mask.bits) };
  writeFileSync(path, Buffer.concat([readFileSync(path), mask.bits]));
  for (const [extent, points] of [
    [null, mask.points],
    [maskExtent, mask.inliers],
  ] as const) {
    const cloud = { frame: source, mask: extent };
    const counts = extent === null ? await pool.run("countPoints", source, client) : lineCounts;
    t.equal(
      counts.reduce((sum, count) => sum + count, 0),
      points,
    );
    const pack = (firstLine: number, endLine: number) =>
      pool.run("packPoints", { ...cloud, firstLine, endLine }, client);
    const packed = Buffer.from(await pack(0, 120));
    t.equal(packed.length, points * vertexBytes(frame.planes));
    t.ok(Buffer.concat(await Promise.all([pack(0, 77), pack(77, 120)])).equals(packed), "parts joined are the whole");
  }

  const values = Float32Array.from({ length: 30_000 }, (_, at) => Math.sin(at));
  const { series } = storedSeries(join(folder, "series.cap"), values, 2, [4_500, 10_500]);
  const index = await pool.run("indexSeries", series, background);
  t.same(index, await indexSeries(nodeFileSystem, series));
  for (let rowBlock = 0; rowBlock < index.offsets.length - 1; rowBlock++) {
    const rows = await pool.run("writeSeries", { ...series, rowBlock }, client);
    t.equal(rows.length, (index.offsets[rowBlock + 1] as number) - (index.offsets[rowBlock] as number));
    t.same(rows, await writeRowBlock(nodeFileSystem, series, rowBlock));
  }
  t.same(reports, []);
});

t.test(
  "between threads bytes are moved or shared, never copied: of every task, in what goes in and in what comes back",
  async (t) => {
    const { pool, reports } = startPool(t, {
      threadModule: new URL("../../../helpers/captures/watched-artefact-thread.js", import.meta.url),
    });
    const folder = t.testdir();
    const path = join(folder, "run.cap");
    // Large enough for parts.
    const { source, frame } = storedFrame(path, surfaceFrame(4, 800, 520));
    /** Tasks with the bytes that they answered. */
    const answered = new Map<TaskName, number>();
    const run: ArtefactPool["run"] = async (name, input, options) => {
      t.same(plainBuffersIn(input), [], `${name}: what goes in`);
      const output = await pool.run(name, input, options);
      const { verifiedBytes } = await pool.run("verify", { path, extents: [] }, background);
      t.equal(verifiedBytes, 0, `${name}: the thread has nothing left of what it answered`);
      const lengthBytes = plainBuffersIn(output).reduce((sum, { byteLength }) => sum + byteLength, 0);
      answered.set(name, (answered.get(name) ?? 0) + lengthBytes);
      return output;
    };
    await run("filter", source, background);
    await run("heightMap", source, background);
    await run("luminance", source, background);
    await run("countPoints", source, background);
    const piece = await run("packPoints", { frame: source, mask: null, firstLine: 0, endLine: 400 }, client);
    t.ok(piece.length > 3_000_000);

    const values = Float32Array.from({ length: 40_000 }, (_, at) => Math.sin(at));
    const { series } = storedSeries(join(folder, "series.cap"), values, 1, [40_000]);
    await run("indexSeries", series, background);
    await run("writeSeries", { ...series, rowBlock: 0 }, client);
    const least: [TaskName, number][] = [
      ["filter", frame.height.length / 16],
      ["heightMap", 10_000],
      ["luminance", 10_000],
      ["countPoints", 4 * 400],
      ["packPoints", 3_000_000],
      ["indexSeries", 8 * 3],
      ["writeSeries", 100_000],
    ];
    for (const [name, lengthBytes] of least) t.ok((answered.get(name) ?? 0) >= lengthBytes, `${name} answered bytes`);
    t.same(reports, []);
  },
);

t.test("captures that are missing or damaged are errors by code, and the thread goes on", async (t) => {
  const { pool, reports } = startPool(t);
  const path = join(t.testdir(), "run.cap");
  const { source } = storedFrame(path, surfaceFrame(4, 180, 120));
  t.equal(await codeOf(pool.run("filter", { ...source, path: `${path}.gone` }, background)), "capture_missing");
  const bytes = readFileSync(path);
  bytes[20] = (bytes[20] as number) ^ 1;
  writeFileSync(path, bytes);
  t.equal(await codeOf(pool.run("filter", source, background)), "capture_damaged", "a flipped bit");
  writeFileSync(path, bytes.subarray(0, 1000));
  t.equal(await codeOf(pool.run("luminance", source, background)), "capture_damaged", "an early end");
  const vast = { ...source, geometry: { ...source.geometry, width: 16_384, lines: 262_144 } };
  const message = "the frame's 16384 x 262144 positions do not fit into 2 GiB of memory";
  for (const name of ["filter", "heightMap", "luminance"] as const) {
    await t.rejects(pool.run(name, vast, background), { code: "too_large", message });
  }
  t.equal(failureMessage(message), message, "an event log has room for it");
  storedFrame(path, surfaceFrame(4, 180, 120));
  t.equal(await codeOf(pool.run("filter", source, background)), "done");
  t.same(reports, []);
});

t.test("each task fails on damage in a plane that its format is of, and on no other", async (t) => {
  const { pool } = startPool(t);
  const path = join(t.testdir(), "run.cap");
  const { source, frame } = storedFrame(path, surfaceFrame(4, 181, 120));
  const bytes = readFileSync(path);
  const lineBytes = 181 * 2;
  const { offset, lineCount } = source.batches[1] as (typeof source.batches)[number];
  const lights = offset + lineCount * lineBytes;
  t.equal(frame.luminance?.length, 181 * 120);
  for (const [at, heights, luminance] of [
    [offset, "capture_damaged", "done"],
    [lights - 1, "capture_damaged", "done"],
    [lights, "done", "capture_damaged"],
    [lights + lineCount * 181 - 1, "done", "capture_damaged"],
    [bytes.length - 1, "done", "capture_damaged"],
  ] as const) {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] as number) ^ 8;
    writeFileSync(path, damaged);
    t.equal(await codeOf(pool.run("heightMap", source, background)), heights, `height map, byte ${at}`);
    t.equal(await codeOf(pool.run("luminance", source, background)), luminance, `luminance, byte ${at}`);
    for (const name of ["countPoints", "filter"] as const) {
      t.equal(await codeOf(pool.run(name, source, background)), "capture_damaged", `${name}, byte ${at}`);
    }
  }
});

t.test("an index is of rows that match their CRC, however many rowBlocks an append has", async (t) => {
  const { pool } = startPool(t);
  const path = join(t.testdir(), "series.cap");
  const values = Int32Array.from({ length: 20_000 }, (_, at) => at);
  // A long one between short ones, which begins and ends within row blocks, and one that ends with its row block.
  const { series, bytes } = storedSeries(path, values, 1, [1_000, 12_000, 40, 3_344, 2_000]);
  const whole = await pool.run("indexSeries", series, background);
  t.equal(whole.offsets.length, 6);
  for (const at of [0, 3_999, 4_000, 4 * 9_000, 51_999, 52_000, 4 * 16_384 - 1, 4 * 16_384, 73_535]) {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] as number) ^ 1;
    writeFileSync(path, damaged);
    t.equal(await codeOf(pool.run("indexSeries", series, background)), "capture_damaged", `byte ${at}`);
  }
  writeFileSync(path, bytes);
  t.same(await pool.run("indexSeries", series, background), whole);
});

t.test("a task whose thread crashes goes again once, then fails; the next is served", async (t) => {
  const { pool, reports } = startPool(t, { threadModule: ODD_TASKS });
  const folder = t.testdir();
  const room = new ArrayBuffer(8);
  const once = pool.run("indexSeries", odd(`crash-once:${join(folder, "once")}`), { ...background, room });
  t.equal(await codeOf(once), "done");
  t.equal(room.byteLength, 0, "the first attempt took the memory, the second one had none");
  t.equal(readFileSync(join(folder, "once"), "utf8"), "xx", "two attempts");
  t.equal(await codeOf(pool.run("indexSeries", odd(`crash:${join(folder, "always")}`), background)), "worker_crashed");
  t.equal(readFileSync(join(folder, "always"), "utf8"), "xx");
  t.equal(await codeOf(pool.run("indexSeries", odd("fine"), background)), "done");
  t.same(reports, ["worker_crashed", "worker_crashed", "worker_crashed"]);
  t.equal(pool.running, 0);
});

t.test("a task that never ends loses its thread, goes again once, then fails; the next is served", async (t) => {
  const limits = new ArmedTimers(TASK_TIMEOUT_MS);
  const options = { threadModule: ODD_TASKS, timers: limits };
  const { pool, reports, outcomes } = startPool(t, options);
  const folder = t.testdir();
  const file = join(folder, "once");
  const once = codeOf(pool.run("indexSeries", odd(`spin-once:${file}`), background));
  // A thread that is ended before it has left its mark would spin a second time.
  while (!existsSync(file)) await eventLoopTurn();
  await limits.letOneRunOut();
  t.equal(await once, "done");
  const always = codeOf(pool.run("indexSeries", odd("spin"), background));
  await limits.letOneRunOut();
  await limits.letOneRunOut();
  t.equal(await always, "worker_stuck");
  t.equal(await codeOf(pool.run("indexSeries", odd("fine"), background)), "done");
  t.same(reports, ["worker_stuck", "worker_stuck", "worker_stuck"]);
  t.same(outcomes, ["done", "worker_stuck", "done"]);
  t.equal(limits.armed, 0, "no timer is left");
});

t.test("a thread that does not start in time is lost, and tells nothing of its task", async (t) => {
  const limits = new ArmedTimers(60_000);
  const { pool, reports } = startPool(t, { threadModule: ODD_TASKS, timers: limits });
  const code = codeOf(pool.run("indexSeries", odd("fine"), background));
  await limits.letOneRunOut();
  await limits.letOneRunOut();
  t.equal(await code, "no_thread");
  t.same(reports, ["no_thread"], "told once, not with each attempt");
});

/** A pool whose threads are up, in a process that has no descriptor left for one task, and has for the next. */
const SHORT_OF_DESCRIPTORS = `
import { closeSync, openSync } from "node:fs";
import { ArtefactPool } from ${JSON.stringify(new URL("../../../../workers/artefacts/pool/artefact-pool.js", import.meta.url).href)};
const pool = new ArtefactPool({ threads: 2, queueLimit: 9, taskTimeoutMs: () => 59_000, report() {} });
const said = (input) => pool.run("verify", input, { priority: "background" }).then(JSON.stringify, ({ code }) => code);
const input = { path: process.argv[1], extents: [] };
console.log(await said(input), await said(input));
const files = [];
try {
  for (;;) files.push(openSync("/dev/null"));
} catch (error) {
  console.log(error.code, await said(input));
}
for (const file of files) closeSync(file);
console.log(await said(input));
await pool.close();
`;

t.test("a task that finds no descriptor left says so, and can be done once there is one", async (t) => {
  const path = join(t.testdir({ stored: "" }), "stored");
  const script = [
    "-c",
    'ulimit -n 128; exec "$0" --input-type=module -e "$1" "$2"',
    process.execPath,
    SHORT_OF_DESCRIPTORS,
    path,
  ];
  const { status, stdout, stderr } = spawnSync("sh", script, { encoding: "utf8" });
  const done = '{"verifiedBytes":0}';
  t.same([stdout, stderr, status], [`${done} ${done}\nEMFILE resource_shortage\n${done}\n`, "", 0]);
});

t.test("an error that a task leaves behind costs its thread, not the process", async (t) => {
  const { pool, reports } = startPool(t, { threadModule: ODD_TASKS });
  const file = join(t.testdir(), "stray");
  t.equal(await codeOf(pool.run("indexSeries", odd(`stray:${file}`), background)), "done");
  writeFileSync(`${file}.go`, "");
  while (reports.length === 0) await eventLoopTurn();
  t.same(reports, ["left behind"]);
  t.equal(await codeOf(pool.run("indexSeries", odd("fine"), background)), "done");
});

t.test("a client has a thread at once, and clients leave one, whatever runs and however long", async (t) => {
  for (const threads of [1, 3]) {
    const { pool } = startPool(t, { threadModule: ODD_TASKS, threads });
    const folder = t.testdir();
    const hold = (name: string, options: Parameters<typeof pool.run>[2]) => {
      const file = join(folder, name);
      const ended = codeOf(pool.run("indexSeries", odd(`held:${file}`), options));
      return { ended, letGo: () => writeFileSync(`${file}.go`, "") };
    };
    for (const [first, second] of [
      [background, client],
      [client, background],
    ] as const) {
      const held = Array.from({ length: threads + 1 }, (_, nth) => hold(`${first.priority}-${nth}`, first));
      t.equal(pool.running, threads, "one is left");
      t.equal(pool.waiting(first.priority), 1);
      t.equal(await codeOf(pool.run("indexSeries", odd("fine"), second)), "done");
      const other = hold(second.priority, second);
      const next = codeOf(pool.run("indexSeries", odd("fine"), second));
      t.equal(pool.running, threads + 1, "no more than that");
      other.letGo();
      t.same(await Promise.all([other.ended, next]), ["done", "done"]);
      t.equal(pool.running, threads);
      for (const { letGo } of held) letGo();
      for (const { ended } of held) t.equal(await ended, "done");
    }
  }
});

t.test("clients go first, a full queue refuses, and what nobody waits for is dropped", async (t) => {
  const { pool } = startPool(t, { threadModule: ODD_TASKS, threads: 2, queueLimit: 2 });
  const folder = t.testdir();
  const file = (name: string): string => join(folder, name);
  const order: string[] = [];
  const start = (name: string, options: Parameters<typeof pool.run>[2]) =>
    codeOf(pool.run("indexSeries", odd(`task:${file(name)}`), options).finally(() => order.push(name)));
  const hold = (name: string, options: Parameters<typeof pool.run>[2]) =>
    codeOf(pool.run("indexSeries", odd(`held:${file(name)}`), options));
  const held = hold("held", background);
  const others = [hold("other", background), hold("other", client)];
  const gone = new AbortController();
  const tasks = [start("one", background), start("two", { ...background, signal: gone.signal })];
  t.equal(await start("three", background), "queue_full");
  t.equal(pool.waiting("background"), 2);
  tasks.push(start("client", client));
  gone.abort();
  t.equal(await tasks[1], "cancelled");
  tasks.push(start("four", background));
  t.equal(await start("five", background), "queue_full");
  tasks.push(start("six", { ...background, isContinued: true }));
  writeFileSync(file("held.go"), "");
  t.same(await Promise.all([held, ...tasks]), ["done", "done", "cancelled", "done", "done", "done"]);
  writeFileSync(file("other.go"), "");
  t.same(await Promise.all(others), ["done", "done"]);
  t.same(order, ["three", "two", "five", "client", "one", "four", "six"]);
  t.notOk(existsSync(file("two")), "what was dropped never ran");
  t.equal(await codeOf(pool.run("indexSeries", odd("fine"), { ...client, signal: gone.signal })), "cancelled");
  t.equal(await codeOf(pool.run("indexSeries", odd("refuse"), client)), "capture_missing", "errors are data");
});

t.test("the end of the pool ends what waits and what runs", async (t) => {
  const { pool } = startPool(t, { threadModule: ODD_TASKS });
  const tasks = [pool.run("indexSeries", odd("spin"), background), pool.run("indexSeries", odd("fine"), client)];
  const codes = Promise.all(tasks.map(codeOf));
  await pool.close();
  t.same(await codes, ["closed", "closed"]);
  t.equal(await codeOf(pool.run("indexSeries", odd("fine"), client)), "closed");
});

t.test("a core is left for front and recorder", async (t) => {
  t.same(
    [1, 2, 3, 8].map((cores) => poolSize(cores, null)),
    [1, 1, 2, 7],
  );
  t.same(
    [16, 128, 1_024].map((descriptors) => poolSize(32, descriptors)),
    [1, 4, 31],
    "threads have descriptors of their own",
  );
});
