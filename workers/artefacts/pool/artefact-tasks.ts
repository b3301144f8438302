/**
 * What the pool computes: pure functions from stored bytes to bytes. A task names its file and extents and reads by
 * itself, so that the queue is small however large the captures are.
 *
 * Peak memory of a task beside the kernels' code, for a frame of n positions:
 *
 * - filter: 4 n for z (and 16 more positions on every side), n / 8 for tiles, n / 8 for the mask, twice, and 4 n for distances.
 *   It is 29 n in all if the tree is needed (filter/outlier-filter.ts): an exact distance is too near the threshold, or heights are noise.
 * - heightMap, luminance: 2.5 MiB, or six lines if that is more; the room reserved for the picture, as large as its
 *   samples (2 n, n); and the picture. The system gives only the part of that room that is written.
 * - preview: 256 KiB, or a line; a line as f32; 1 MiB of counts, and 640 x 640 samples, which are in the heap.
 * - overview: one line, and the same as f32; its piece, which the caller bounds.
 * - countPoints: 256 KiB, or a line, and 4 bytes a line. With luminance, it and the filter take as much again.
 * - packPoints: its positions' room as vertices, which the caller bounds, and the points themselves; its positions'
 *   luminance; 256 KiB, or a line; and its part of the mask, twice.
 * - indexSeries, writeSeries: one row block (ROWS_PER_BLOCK) raw, and as text with room for the longest, twice if it is
 *   written.
 * - report: the run's state, the page twice, 400 KiB for each picture, and the memory of a luminance picture.
 * - statistics: 8 bytes for each value of a check and each duration that are held at a time (findings/program-statistics.ts), at most 96 MB or
 *   those of one check, twice while one is sorted; 96 MB of serial numbers; 40 MB for 10,000 names with their trends; the columns of a segment,
 *   and those that the reader keeps: 64 MiB of sealed segments, and the newest one three times; and 192 MiB of what is kept for the next
 *   answers (findings/kept-summaries.ts). Only the values of one check grow with the store without an end.
 * - aqdefStart, checksPiece: the same without values and serial numbers; half a MiB of text; at a hub the runs put in order last.
 * - makeFindings: a segment's columns, three times, and its texts as strings.
 * - verify: 1 MiB, twice if a long extent comes after a short one.
 */
import type { Extent } from "../../../core/capture/capture.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import type { FindingQuery } from "../../../storage/findings/finding-query.js";
import { FindingsReader } from "../../../storage/findings/segment-findings.js";
import { countLineBits } from "../cloud/line-counts.js";
import { countCloudPoints, packCloud } from "../cloud/point-cloud.js";
import { filterOutliers, type OutlierMask } from "../filter/outlier-filter.js";
import {
  type AqdefStart,
  aqdefStart,
  type ExportPiece,
  type ExportTask,
  exportPiece,
} from "../findings/checks-export.js";
import { KeptSummaries } from "../findings/kept-summaries.js";
import { programStatistics, type StatisticsAnswer } from "../findings/program-statistics.js";
import { loadGrid } from "../frame/frame-grid.js";
import type { FrameSource } from "../frame/frame-source.js";
import { type OverviewLines, packOverview } from "../frame/height-overview.js";
import { readPart, verifyStored } from "../frame/stored-bytes.js";
import { encodeHeightMap } from "../picture/height-map-png.js";
import { encodeLuminance } from "../picture/luminance-png.js";
import { encodePreview } from "../picture/preview-picture.js";
import { makeReport, type ReportPage, type ReportSource } from "../report/report-page.js";
import { indexSeries, type SeriesIndex, type SeriesSource, writeRowBlock } from "../series/series-source.js";
import { MemoryNeed } from "./memory-need.js";
import { ThreadMemory } from "./thread-memory.js";

/** Asks for the points of some lines of a frame: all of them, or those of a stored mask. The caller has verified the frame's bytes. */
export interface PackPointsTask {
  frame: FrameSource;
  mask: Extent | null;
  firstLine: number;
  endLine: number;
}

/** Asks for some lines of a frame's overview. The caller has verified the frame's heights. */
export interface OverviewTask extends OverviewLines {
  frame: FrameSource;
}

/** The filter's mask, and how many points of every line it keeps. */
export interface FilteredCloud extends OutlierMask {
  lineCounts: Uint32Array<ArrayBuffer>;
}

/** Input and output of every task, by its name. */
export interface ArtefactTasks {
  filter: { input: FrameSource; output: FilteredCloud };
  heightMap: { input: FrameSource; output: Uint8Array<ArrayBuffer> };
  luminance: { input: FrameSource; output: Uint8Array<ArrayBuffer> };
  preview: { input: FrameSource; output: Uint8Array<ArrayBuffer> };
  overview: { input: OverviewTask; output: Uint8Array<ArrayBuffer> };
  countPoints: { input: FrameSource; output: Uint32Array<ArrayBuffer> };
  packPoints: { input: PackPointsTask; output: Uint8Array<ArrayBuffer> };
  indexSeries: { input: SeriesSource; output: SeriesIndex };
  writeSeries: { input: SeriesSource & { rowBlock: number }; output: Uint8Array<ArrayBuffer> };
  report: { input: ReportSource; output: ReportPage };
  statistics: { input: { query: FindingQuery }; output: StatisticsAnswer };
  aqdefStart: { input: { query: FindingQuery; programName: string }; output: AqdefStart | { head: null } };
  checksPiece: { input: ExportTask; output: ExportPiece };
  /** Makes one findings file that is missing; false if none is. */
  makeFindings: { input: { dataDirectory: string; newestFirst: boolean }; output: { hasMade: boolean } };
  verify: { input: { path: string; extents: readonly Extent[] }; output: { verifiedBytes: number } };
}

export type TaskName = keyof ArtefactTasks;
export type TaskInput<N extends TaskName> = ArtefactTasks[N]["input"];
export type TaskOutput<N extends TaskName> = ArtefactTasks[N]["output"];

/** @param room memory that a task may use for its answer */
type TaskFunctions = { [N in TaskName]: (input: TaskInput<N>, room?: ArrayBuffer) => Promise<TaskOutput<N>> };

/** The tasks of one thread. They run one at a time and share its memory. */
export function artefactTasks(fileSystem: FileSystem = nodeFileSystem, need = new MemoryNeed()): TaskFunctions {
  const memory = new ThreadMemory(fileSystem, need);
  const findings = new FindingsReader(fileSystem);
  const summaries = new KeptSummaries();
  return {
    filter: (source) =>
      memory.withFrame(source, async (kernels, { heights, checkLuminance }) => {
        const grid = await loadGrid(kernels, source.planes.height, source.geometry, heights);
        // The filter needs the heights only, but without a good luminance no point of the PLY can be sent.
        checkLuminance(0, source.geometry.lines);
        const mask = filterOutliers(kernels, grid);
        return { ...mask, lineCounts: countLineBits(mask.bits, grid.width, grid.lines) };
      }),
    heightMap: (source) =>
      memory.withFrame(source, (kernels, { heights }) =>
        encodeHeightMap(kernels, source.planes.height, source.geometry, heights),
      ),
    luminance: (source) =>
      memory.withFrame(source, (kernels, { luminance }) => {
        const plane = source.planes.luminance;
        if (plane === undefined) throw new Error(`frame ${source.frameId} has no luminance`);
        return encodeLuminance(kernels, plane, source.geometry, luminance);
      }),
    preview: (source) =>
      memory.withFrame(source, (kernels, { heights }) =>
        encodePreview(kernels, source.planes.height, source.geometry, heights),
      ),
    overview: (task) =>
      memory.withFrame(task.frame, (kernels, { heights }) =>
        packOverview(kernels, task.frame.planes.height, task.frame.geometry.width, heights, task),
      ),
    countPoints: (source) =>
      memory.withFrame(source, async (kernels, planeLines) => {
        const { planes, geometry } = source;
        const counts = await countCloudPoints(kernels, { planes, geometry, heights: planeLines.heights });
        planeLines.checkLuminance(0, geometry.lines);
        return counts;
      }),
    packPoints: (task) => packPoints(fileSystem, memory, task),
    indexSeries: (source) => indexSeries(fileSystem, source),
    writeSeries: (source) => writeRowBlock(fileSystem, source, source.rowBlock),
    report: (source) => makeReport(fileSystem, memory, source),
    statistics: ({ query }) => programStatistics(findings, query, { kept: summaries }),
    aqdefStart: ({ query, programName }) => aqdefStart(findings, query, programName),
    checksPiece: (task, room) => exportPiece(findings, task, { room }),
    makeFindings: async ({ dataDirectory, ...order }) => ({
      hasMade: await findings.makeMissing(dataDirectory, order),
    }),
    verify: ({ path, extents }) => verifyStored(fileSystem, path, extents),
  };
}

/**
 * Packs the points of the lines from `firstLine` up to `endLine`. Only their part of the mask is read. It has no CRC of
 * its own.
 */
async function packPoints(
  fileSystem: FileSystem,
  memory: ThreadMemory,
  { frame: source, mask, firstLine, endLine }: PackPointsTask,
): Promise<Uint8Array<ArrayBuffer>> {
  const { planes, geometry, path } = source;
  const firstByte = Math.floor((firstLine * geometry.width) / 8);
  const endByte = Math.ceil((endLine * geometry.width) / 8);
  const bits = mask === null ? null : await readPart(fileSystem, path, mask.offset + firstByte, endByte - firstByte);
  return memory.withFrame(source, async (kernels, planeLines) => {
    const cloud = { planes, geometry, ...planeLines, mask: bits, maskFirstBit: 8 * firstByte };
    const { at, lengthBytes } = await packCloud(kernels, cloud, firstLine, endLine);
    return kernels.copyOf(at, lengthBytes);
  });
}
