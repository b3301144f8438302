import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import t, { type Test } from "tap";
import type { Extent, SeriesAppend, SeriesDtype } from "../../../core/capture/capture.js";
import { createRandom } from "../../../core/random.js";
import { ArtefactWork, type ArtefactWorkOptions } from "../../../http/downloads/artefact-work.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import type { FrameSource } from "../../../workers/artefacts/frame/frame-source.js";
import { SYSTEM_TIMERS } from "../../../workers/artefacts/pool/artefact-pool.js";
import type { TaskName, TaskOutput } from "../../../workers/artefacts/pool/artefact-tasks.js";
import type { TaskMessage } from "../../../workers/artefacts/pool/artefact-thread.js";
import { MemoryNeed } from "../../../workers/artefacts/pool/memory-need.js";
import { frameOf, type MadeFrame, noiseFrame, surfaceFrame } from "../../helpers/captures/made-frames.js";
import { readGreyPng } from "../../helpers/captures/png-reader.js";
import { PROCESSED_RUN, processedCell, SURFACE } from "../../helpers/captures/processed-cell.js";
import { storedFrame } from "../../helpers/captures/stored-frame.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { installationWithout } from "../../helpers/process/other-installation.js";
import { isFullSize } from "../../helpers/test-size.js";

type Work = Pick<ArtefactWork, "makeForClient" | "makeForRecorder" | "figures" | "close">;

function started(t: Test, Type: new (options: ArtefactWorkOptions) => Work): Work {
  const work = new Type({
    threads: 2,
    timers: SYSTEM_TIMERS,
    report: (message, fields) => t.fail(`${message} ${JSON.stringify(fields)}`),
    onReadDamage: (error) => t.fail(error.message),
    nowUs: () => Date.UTC(2026, 0, 31) * 1000,
  });
  t.teardown(() => work.close());
  return work;
}

/** The work of an installation whose kernels are absent or refused, beside that of this one. */
async function bothWorks(t: Test, kernels: "absent" | "refused", folder: string): Promise<{ plain: Work; wasm: Work }> {
  const urlOf = installationWithout(kernels, folder);
  const other = (await import(urlOf("http/downloads/artefact-work.js"))) as { ArtefactWork: typeof ArtefactWork };
  return { plain: started(t, other.ArtefactWork), wasm: started(t, ArtefactWork) };
}

/** As the recorder has it made. */
async function made<N extends TaskName>(work: Work, name: N, input: TaskMessage["input"]): Promise<TaskOutput<N>> {
  const answer = await work.makeForRecorder({ name, input });
  if ("error" in answer) throw new Error(`${name}: ${answer.error.code}: ${answer.error.message}`);
  return answer.value as TaskOutput<N>;
}

/** Frames with every kind of plane; the first is large enough for a filter in parts. */
function frames(): MadeFrame[] {
  const random = createRandom(3);
  const deep = surfaceFrame(6, 71, 50);
  deep.planes.luminance = { dtype: "u16", bits: 10 };
  deep.luminance = new Uint8Array(Uint16Array.from({ length: 71 * 50 }, () => random.integer(0, 1_100)).buffer);
  const size = { width: 61, lines: 43 };
  const heights = Array.from({ length: 61 * 43 }, (_, at) =>
    random.chance(0.1) ? -99 : 100 * Math.sin(at / 300) + random.normal(),
  );
  return [
    surfaceFrame(4, 800, 520),
    deep,
    noiseFrame(5, 60, 50),
    frameOf("i32", "i32", size, heights, { scale_mm: 0.01, offset_mm: -3, invalid: [-99] }),
    frameOf("i16", "i16", size, heights, { scale_mm: 0.01, offset_mm: -3, invalid: [-99] }),
    frameOf("no point", "u16", size, new Uint16Array(61 * 43), { invalid: [0] }),
  ];
}

/** Appends of every type, those that kernels of WebAssembly write and those that none do. */
function storedAppends(path: string): { path: string; channels: number; appends: SeriesAppend[] } {
  const random = createRandom(4);
  const arrays = { f32: Float32Array, f64: Float64Array, i32: Int32Array };
  const parts: Buffer[] = [];
  let offset = 0;
  const appends = (["f32", "i32", "f64", "f32"] as SeriesDtype[]).map((dtype, nth): SeriesAppend => {
    const rows = 3_000 + nth;
    const values = Array.from({ length: 3 * rows }, () =>
      random.chance(0.05) ? random.pick([0, 7, Number.NaN, 1e-7, 3e30]) : random.normal() * 10 ** random.integer(0, 5),
    );
    const bytes = Buffer.from(arrays[dtype].from(values).buffer);
    parts.push(bytes);
    const extent: Extent = { offset, lengthBytes: bytes.length, crc32: crc32(bytes) };
    offset += bytes.length;
    const times = { firstTimestampUs: 1_700_000_000_000_000 + nth, samplePeriodUs: 7.7 };
    return {
      ...extent,
      rows,
      ...times,
      dtype,
      valueScale: dtype === "i32" ? 0.001 : null,
      valueOffset: null,
      invalid: [7],
    };
  });
  writeFileSync(path, Buffer.concat(parts));
  return { path, channels: 3, appends };
}

/** The filter's mask, stored behind the frame. */
function storedMask(path: string, bits: Uint8Array): Extent {
  const before = readFileSync(path);
  writeFileSync(path, Buffer.concat([before, bits]));
  return { offset: before.length, lengthBytes: bits.length, crc32: crc32(bits) };
}

for (const kernels of isFullSize ? (["absent", "refused"] as const) : (["absent"] as const)) {
  t.test(`where the kernels in WebAssembly are ${kernels}, every task gives the same`, async (t) => {
    const folder = t.testdir({ captures: {}, other: {} });
    const { plain, wasm } = await bothWorks(t, kernels, join(folder, "other"));
    const both = async <N extends TaskName>(name: N, input: TaskMessage["input"]) =>
      [await made(plain, name, input), await made(wasm, name, input)] as const;
    for (const [nth, frame] of frames().entries()) {
      const path = join(folder, "captures", `${nth}`);
      const { source } = storedFrame(path, frame);
      const [mask, wantedMask] = await both("filter", source);
      t.ok(Buffer.from(mask.bits).equals(wantedMask.bits), `${frame.name}: the filter's mask`);
      t.same(
        [mask.points, mask.inliers, [...mask.lineCounts]],
        [wantedMask.points, wantedMask.inliers, [...wantedMask.lineCounts]],
      );
      t.same(...(await both("countPoints", source)), `${frame.name}: points of every line`);
      for (const name of frame.luminance === null ? (["heightMap"] as const) : (["heightMap", "luminance"] as const)) {
        const [picture, wanted] = await both(name, source);
        // The encoders are others, the pictures are not.
        t.same(...([picture, wanted].map(plainPicture) as [object, object]), `${frame.name}: ${name}`);
        if (nth === 0) t.notOk(Buffer.from(picture).equals(wanted), `${name} is coded by zlib`);
      }
      await comparePieces(t, plain, wasm, source, null);
      await comparePieces(t, plain, wasm, source, storedMask(path, wantedMask.bits));
    }
    const series = storedAppends(join(folder, "captures", "series"));
    const [index, wantedIndex] = await both("indexSeries", series);
    t.same(index, wantedIndex, "offsets of the CSV");
    for (let rowBlock = 0; rowBlock < index.offsets.length - 1; rowBlock++) {
      const [rows, wanted] = await both("writeSeries", { ...series, rowBlock });
      t.ok(Buffer.from(rows).equals(wanted), `rows from ${4_096 * rowBlock} on`);
    }
    t.same(...(await both("verify", { path: series.path, extents: series.appends })), "verified bytes");

    const tasksOf = (work: Work): Set<string> => new Set([...work.figures().tasks].map(({ labels }) => labels.task));
    t.ok(tasksOf(wasm).has("filterTogether"), "a filter goes over two threads");
    t.notOk(tasksOf(plain).has("filterTogether"), "where threads share no memory it does not");
  });
}

/** What a picture shows, as a comparison takes it that is quick. */
function plainPicture(png: Uint8Array): object {
  const { samples, ...about } = readGreyPng(png);
  return { ...about, crc32: crc32(new Uint8Array(samples.buffer)), length: samples.length };
}

/** The points of a frame in three pieces, as clients have them made. */
async function comparePieces(t: Test, plain: Work, wasm: Work, frame: FrameSource, mask: Extent | null): Promise<void> {
  const { lines } = frame.geometry;
  for (const [firstLine, endLine] of [
    [0, 17],
    [17, 18],
    [18, lines],
  ] as const) {
    const task = { frame, mask, firstLine, endLine };
    const request = { signal: undefined, isContinued: false };
    const piece = await plain.makeForClient("packPoints", task, request);
    const wanted = await wasm.makeForClient("packPoints", task, request);
    t.ok(Buffer.from(piece).equals(wanted), `${wanted.length} bytes of points`);
  }
}

t.test("downloads are the same, whole and in part", async (t) => {
  const folder = t.testdir({ [PROCESSED_RUN]: {}, other: {} });
  const { plain, wasm } = await bothWorks(t, "absent", join(folder, "other"));
  const { cell } = await processedCell();
  t.teardown(() => cell.close());
  writeFileSync(join(folder, PROCESSED_RUN, "capture"), cell.files.get(`${PROCESSED_RUN}/capture`) as Uint8Array);
  cell.folder = `${folder}/`;
  const port = await cell.listen();
  const get = (path: string, headers = "") => rawRequest(port, `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
  for (const path of [
    `/sensor/frames/${SURFACE}/file.raw.ply`,
    `/sensor/frames/${SURFACE}/file.ply`,
    `/runs/${PROCESSED_RUN}/steps/2/cl_sweep.csv`,
  ]) {
    cell.make = wasm.makeForClient;
    const wanted = (await get(path))?.body as Buffer;
    cell.make = plain.makeForClient;
    const found = await get(path);
    t.equal(found?.status, 200, path);
    t.equal(found?.headers["content-length"], String(wanted.length));
    t.ok(wanted.length > 0 && found?.body.equals(wanted), path);
    const part = await get(path, "Range: bytes=260000-600000\r\n");
    t.ok(part?.body.equals(wanted.subarray(260_000, 600_001)), `a part of ${path}`);
  }
});

t.test("points are there twice, and no more, where there is no WebAssembly", async (t) => {
  const folder = t.testdir({ other: {} });
  const urlOf = installationWithout("absent", join(folder, "other"));
  const { artefactTasks } = (await import(
    urlOf("workers/artefacts/pool/artefact-tasks.js")
  )) as typeof import("../../../workers/artefacts/pool/artefact-tasks.js");
  let usedBytes = 0;
  class ToldNeed extends MemoryNeed {
    override note(bytes: number): void {
      usedBytes = bytes;
    }
  }
  const tasks = artefactTasks(nodeFileSystem, new ToldNeed());
  const { source } = storedFrame(join(folder, "run.cap"), surfaceFrame(4, 600, 500));
  const task = { frame: source, mask: null, firstLine: 0, endLine: 500 };
  const bytes = await tasks.packPoints(task);
  await tasks.packPoints(task);
  const room = 13 * 600 * 500;
  const most = room + 600 * 500 + 256 * 1024 + 10 * 600 + 4_096;
  t.ok(usedBytes <= most && usedBytes > room, `${usedBytes} bytes of ${most}`);
  t.equal(bytes.buffer.byteLength, bytes.length, "and the points, no more");
  t.ok(bytes.length <= room);
});
