import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { crc32 } from "node:zlib";
import t from "tap";
import { nodeFileSystem } from "../../../../storage/disk/file-system.js";
import type { FileSystem, StoreFile } from "../../../../storage/disk/file-system-interface.js";
import { filterOutliers } from "../../../../workers/artefacts/filter/outlier-filter.js";
import { newKernelMemory } from "../../../../workers/artefacts/kernel-memory.js";
import { type ArtefactTasks, artefactTasks } from "../../../../workers/artefacts/pool/artefact-tasks.js";
import { MemoryNeed } from "../../../../workers/artefacts/pool/memory-need.js";
import { csvRoomBytes } from "../../../../workers/artefacts/series/csv-encoder.js";
import { ROWS_PER_BLOCK } from "../../../../workers/artefacts/series/series-source.js";
import { loadFrame, type MadeFrame, noiseFrame, surfaceFrame } from "../../../helpers/captures/made-frames.js";
import { storedFrame } from "../../../helpers/captures/stored-frame.js";
import { collectGarbage } from "../../../helpers/process/held-memory.js";

const KIB = 1024;
/** What the filter takes for any frame: raw lines, scratch, the table of neighbours. */
const FIXED_BYTES = 256 * KIB;

/** Bytes for each position, from the table in artefact-tasks.ts, and a margin for the edges of narrow frames. */
const FILTER_BYTES = { lanes: 8.3, tree: 29 } as const;
/** Bytes for a picture's samples, the filter byte of every line, and what a strip takes more that cannot be compressed. */
const PICTURE_BYTES = { heightMap: 2.004, luminance: 1.002 } as const;

const SURFACE = surfaceFrame(4, 1_200, 1_000);

/** Keeps what tasks have used: each is noted when the next begins. */
class ToldNeed extends MemoryNeed {
  usedBytes = 0;

  override note(usedBytes: number): void {
    this.usedBytes = usedBytes;
    super.note(usedBytes);
  }
}

/** What a task has used at its end, which is its peak: nothing is freed before. */
function peaks(folder: string) {
  const need = new ToldNeed();
  const tasks = artefactTasks(nodeFileSystem, need);
  const { source: next } = storedFrame(join(folder, "next.cap"), surfaceFrame(1, 20, 20));
  return async <N extends "countPoints" | "filter" | "heightMap" | "luminance">(
    name: N,
    input: ArtefactTasks[N]["input"],
  ): Promise<number> => {
    await (tasks[name] as (one: typeof input) => Promise<unknown>)(input);
    await tasks.countPoints(next);
    return need.usedBytes;
  };
}

/** Turns of the event loop after which a buffer that is still there is held. */
const TURNS = 5;

/** The file system of a task. At the first read into a buffer, it looks which read buffers the task still holds. */
function heldAtReads(): { fileSystem: FileSystem; most(): number } {
  let most = 0;
  const seen = new WeakSet<ArrayBufferLike>();
  const buffers: WeakRef<ArrayBufferLike>[] = [];
  const isNew = ({ buffer }: Uint8Array): boolean => {
    // The kernels' memory, which others measure, is shared.
    if (seen.has(buffer) || buffer instanceof SharedArrayBuffer) return false;
    seen.add(buffer);
    buffers.push(new WeakRef(buffer));
    return true;
  };
  const held = (): number => {
    collectGarbage();
    return buffers.reduce((sum, one) => sum + (one.deref()?.byteLength ?? 0), 0);
  };
  const looked = (file: StoreFile): StoreFile =>
    ({
      close: () => file.close(),
      closeSync: () => file.closeSync(),
      read: async (into: Uint8Array, position: number) => {
        if (!isNew(into)) return file.read(into, position);
        // A buffer that was looked at, or is on the stack or in a finished read, goes in a later turn.
        let bytes = Number.POSITIVE_INFINITY;
        for (let turn = 0; turn < TURNS && bytes > into.buffer.byteLength; turn++) {
          await eventLoopTurn();
          bytes = Math.min(bytes, held());
        }
        most = Math.max(most, bytes);
        return file.read(into, position);
      },
      readSync: (into: Uint8Array, position: number) => {
        if (isNew(into)) most = Math.max(most, held());
        return file.readSync(into, position);
      },
    }) as StoreFile;
  const fileSystem: FileSystem = {
    ...nodeFileSystem,
    open: async (path, mode) => looked(await nodeFileSystem.open(path, mode)),
    openSync: (path) => looked(nodeFileSystem.openSync(path)),
  };
  return { fileSystem, most: () => most };
}

/** What a frame takes for its edges: 16 positions on every side, and a table of 33 lines. */
function edgeBytes({ geometry: { width, lines } }: MadeFrame): number {
  return 4 * ((width + 32) * (lines + 32) - width * lines) + 4 * 33 * (width + 32) + 8 * (width + lines);
}

t.test("the filter takes as many bytes a position as the limits say, and not far less", async (t) => {
  const judge = (name: keyof typeof FILTER_BYTES, frame: MadeFrame, usedBytes: number): void => {
    const { width, lines } = frame.geometry;
    const bytes = (usedBytes - edgeBytes(frame)) / (width * lines);
    const most = FILTER_BYTES[name] + FIXED_BYTES / (width * lines);
    t.ok(bytes <= most && bytes > 0.95 * FILTER_BYTES[name], `${name}: ${bytes.toFixed(3)} of ${most.toFixed(3)}`);
  };
  const folder = t.testdir();
  const stored = storedFrame(join(folder, "run.cap"), SURFACE);
  judge("lanes", SURFACE, await peaks(folder)("filter", stored.source));
  const memory = await newKernelMemory();
  const noise = noiseFrame(5, 600, 600);
  filterOutliers(memory, await loadFrame(memory, noise));
  judge("tree", noise, memory.usedBytes);
});

t.test("the README says which frames fit into 2 GiB by these bytes", async (t) => {
  const readme = readFileSync("workers/artefacts/README.md", "utf8");
  const millions = (bytes: number): string => Math.floor(2 ** 31 / bytes / 1e6).toLocaleString("en");
  t.match(readme, `about ${millions(FILTER_BYTES.lanes)} million; ${millions(FILTER_BYTES.tree)} million for`);
  t.match(readme, `| \`png\` | ${millions(PICTURE_BYTES.heightMap)} million |`);
  t.match(readme, `| \`luminance.png\` | ${millions(PICTURE_BYTES.luminance)} million |`);
});

t.test("pictures and counts take no more than the table says", async (t) => {
  const positions = 1_200 * 1_000;
  const folder = t.testdir();
  const { source } = storedFrame(join(folder, "run.cap"), SURFACE);
  const peak = peaks(folder);
  const noInvalid = { ...source, planes: { ...source.planes, height: { ...source.planes.height, invalid: [] } } };
  const strips = 2.5 * KIB * KIB;
  t.ok((await peak("heightMap", source)) <= PICTURE_BYTES.heightMap * positions + strips, "raw values as they are");
  t.ok((await peak("heightMap", noInvalid)) <= PICTURE_BYTES.heightMap * positions + strips, "from z");
  t.ok((await peak("luminance", source)) <= PICTURE_BYTES.luminance * positions + strips);
  t.ok((await peak("heightMap", source)) > 2 * positions, "the room that the picture can need");
  t.ok((await peak("countPoints", source)) <= (256 + 8) * KIB + 4 * 1_200);
});

/** Rows of 64 channels for two row blocks, as one append. */
function storedSeries(path: string) {
  const rows = 2 * ROWS_PER_BLOCK;
  const values = Buffer.alloc(4 * 64 * rows, 1);
  writeFileSync(path, values);
  const append = {
    ...{ offset: 0, lengthBytes: values.length, crc32: crc32(values), rows, firstTimestampUs: 0 },
    ...{ samplePeriodUs: 1, dtype: "i32" as const, valueScale: 0.001, valueOffset: null, invalid: [] },
  };
  return { path, channels: 64, appends: [append] };
}

t.test("a rowBlock of rows is held raw, and its text is in a buffer of its own", async (t) => {
  const source = storedSeries(join(t.testdir(), "series.cap"));
  const rawBytes = 4 * 64 * ROWS_PER_BLOCK;
  for (const name of ["indexSeries", "writeSeries"] as const) {
    const { fileSystem, most } = heldAtReads();
    const output = await artefactTasks(fileSystem)[name]({ ...source, rowBlock: 1 });
    t.equal(most(), rawBytes, name);
    if (!(output instanceof Uint8Array)) continue;
    const isFull = output.length > 0 && output.length <= csvRoomBytes(64, ROWS_PER_BLOCK);
    t.ok(isFull && output.buffer.byteLength === output.length, "the text, no more");
  }
});

t.test("to verify takes 1 MiB, and once more where a long extent is after a short one", async (t) => {
  const path = join(t.testdir(), "run.cap");
  const bytes = Buffer.alloc(7 * KIB * KIB, 3);
  writeFileSync(path, bytes);
  const extentOf = (offset: number, end: number) => {
    return { offset, lengthBytes: end - offset, crc32: crc32(bytes.subarray(offset, end)) };
  };
  const small = Array.from({ length: 10 }, (_, nth) => extentOf(1000 * nth, 1000 * nth + 900));
  for (const [extents, mostBytes] of [
    [[extentOf(0, bytes.length), ...small, extentOf(10_000, 700_000)], KIB * KIB],
    [[...small, extentOf(10_000, 700_000), extentOf(0, bytes.length)], 2 * KIB * KIB],
  ] as const) {
    const { fileSystem, most } = heldAtReads();
    const { verifiedBytes } = await artefactTasks(fileSystem).verify({ path, extents });
    t.equal(verifiedBytes, 10 * 900 + 690_000 + bytes.length);
    t.ok(most() <= mostBytes && most() >= KIB * KIB, `${most()} bytes`);
  }
});

t.test("packing takes the vertices' room, their luminance, a block of heights, and its part of the mask", async (t) => {
  const path = join(t.testdir(), "run.cap");
  const deep = { ...SURFACE, planes: { ...SURFACE.planes, luminance: { dtype: "u16" as const, bits: 10 } } };
  deep.luminance = new Uint8Array(2 * 1_200_000).fill(1);
  const dark = { ...SURFACE, planes: { height: SURFACE.planes.height }, luminance: null };
  for (const [name, made, vertexBytes, lightBytes] of [
    ["u8", SURFACE, 13, 1],
    ["u16", deep, 13, 2],
    ["no luminance", dark, 12, 0],
  ] as const) {
    const { source } = storedFrame(path, made);
    const bits = Buffer.alloc(150_000, 0xff);
    const stored = readFileSync(path);
    writeFileSync(path, Buffer.concat([stored, bits]));
    const mask = { offset: stored.length, lengthBytes: bits.length, crc32: crc32(bits) };
    for (const [firstLine, endLine, of] of [
      [0, 1_000, null],
      [100, 500, mask],
    ] as const) {
      const { fileSystem, most } = heldAtReads();
      const need = new ToldNeed();
      const tasks = artefactTasks(fileSystem, need);
      const task = { frame: source, mask: of, firstLine, endLine };
      const bytes = await tasks.packPoints(task);
      const besideBytes = most();
      await tasks.packPoints(task);
      const { usedBytes } = need;
      const positions = 1_200 * (endLine - firstLine);
      const maskBytes = of === null ? 0 : positions / 8;
      const room = (vertexBytes + lightBytes) * positions;
      const text = `${name}: ${usedBytes} bytes for ${positions} positions`;
      // The coordinates and heights of a line.
      const mostBytes = room + 256 * KIB + maskBytes + 4 * KIB + 10 * 1_200;
      t.ok(usedBytes <= mostBytes && usedBytes > room, `${text}, at most ${mostBytes}`);
      t.equal(bytes.buffer.byteLength, bytes.length, "and the points, no more");
      t.ok(besideBytes <= maskBytes, `${text}, ${besideBytes} beside it`);
    }
  }
});
