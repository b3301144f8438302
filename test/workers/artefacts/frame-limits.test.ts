import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import t from "tap";
import { nodeFileSystem } from "../../../storage/file-system.js";
import { type ArtefactTasks, artefactTasks } from "../../../workers/artefacts/artefact-tasks.js";
import { csvRoomBytes } from "../../../workers/artefacts/csv-encoder.js";
import { FILTER_BYTES, PICTURE_BYTES } from "../../../workers/artefacts/frame-limits.js";
import { wasmKernels } from "../../../workers/artefacts/kernel-memory.js";
import { MemoryNeed } from "../../../workers/artefacts/memory-need.js";
import { filterOutliers, planAgain, planFilter } from "../../../workers/artefacts/outlier-filter.js";
import { ROWS_PER_STRETCH } from "../../../workers/artefacts/series-source.js";
import { loadFrame, type MadeFrame, noiseFrame, surfaceFrame } from "../../helpers/made-frames.js";
import { storedFrame } from "../../helpers/stored-frame.js";

const KIB = 1024;
/** Of the filter, whatever the frame: raw lines, scratch, the table of neighbours. */
const FIXED_BYTES = 256 * KIB;

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
  return async <N extends "countPoints" | "filter" | "heightMap" | "luminance" | "indexSeries">(
    name: N,
    input: ArtefactTasks[N]["input"],
  ): Promise<number> => {
    await (tasks[name] as (one: typeof input) => Promise<unknown>)(input);
    await tasks.countPoints(next);
    return need.usedBytes;
  };
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
  const surface = surfaceFrame(4, 1_200, 1_000);
  const folder = t.testdir();
  const stored = storedFrame(join(folder, "run.cap"), surface);
  judge("lanes", surface, await peaks(folder)("filter", stored.source));
  const memory = await wasmKernels();
  const noise = noiseFrame(5, 600, 600);
  filterOutliers(memory, await loadFrame(memory, noise));
  judge("noise", noise, memory.usedBytes);
  const grid = await loadFrame(memory, surface);
  planAgain(memory, { ...planFilter(memory, grid), way: "lanes" });
  // And the mask, which comes behind.
  judge("again", surface, memory.usedBytes + (1_200 * 1_000) / 8);
});

t.test("the other tasks take no more than the table says", async (t) => {
  const frame = surfaceFrame(4, 1_200, 1_000);
  const positions = 1_200 * 1_000;
  const folder = t.testdir();
  const { source } = storedFrame(join(folder, "run.cap"), frame);
  const peak = peaks(folder);
  const noInvalid = { ...source, planes: { ...source.planes, height: { ...source.planes.height, invalid: [] } } };
  const strips = 2.5 * KIB * KIB;
  t.ok((await peak("heightMap", source)) <= PICTURE_BYTES.heightMap * positions + strips, "raw values as they are");
  t.ok((await peak("heightMap", noInvalid)) <= PICTURE_BYTES.heightMap * positions + strips, "from z");
  t.ok((await peak("luminance", source)) <= PICTURE_BYTES.luminance * positions + strips);
  t.ok((await peak("heightMap", source)) > 2 * positions, "the room that the picture can need");
  t.ok((await peak("countPoints", source)) <= (256 + 8) * KIB + 4 * 1_200);
  const path = join(folder, "series.cap");
  const values = Buffer.alloc(4 * 64 * 2 * ROWS_PER_STRETCH, 1);
  writeFileSync(path, values);
  const append = {
    ...{ offset: 0, lengthBytes: values.length, crc32: crc32(values), rows: 2 * ROWS_PER_STRETCH, firstTimestampUs: 0 },
    ...{ samplePeriodUs: 1, dtype: "i32" as const, valueScale: 0.001, valueOffset: null, invalid: [] },
  };
  const room = csvRoomBytes(64, ROWS_PER_STRETCH) + 8 * 64 * ROWS_PER_STRETCH;
  const used = await peak("indexSeries", { path, channels: 64, appends: [append] });
  t.ok(used <= room + 32 * KIB && used > room, `${used} bytes`);
});
