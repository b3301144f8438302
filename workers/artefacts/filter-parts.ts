/**
 * The filter in parts (split-filter.ts): each a task of its own, which work on a memory that all share. Those that lay out are alone in it; parts of
 * lines run at the same time, and each has some bytes to itself: one that goes again may have a predecessor that is yet to end.
 */
import { lineBytes } from "../../core/capture.js";
import { type FileSystem, nodeFileSystem } from "../../storage/file-system.js";
import { combineCrc32 } from "./crc-combination.js";
import { loadingBytes, loadLines } from "./frame-grid.js";
import { type FrameSource, openFrame, verifyHeights, verifyLuminance } from "./frame-source.js";
import { type Grid, layOutGrid } from "./grid-layout.js";
import { joinMemory, type KernelMemory, type SharedMemory } from "./kernel-memory.js";
import { countLineBits } from "./line-counts.js";
import {
  boundTiles,
  type FilterPlan,
  finishFilter,
  MARKING_BYTES,
  markLines,
  maskBytes,
  measureLines,
  type OutlierMask,
  planAgain,
  planFilter,
  scratchBytes,
} from "./outlier-filter.js";
import type { DistanceSums, ThresholdBounds } from "./outlier-threshold.js";

/** Lines of a frame: the first is divisible by 8, and so is the end, or it is the frame's. So tiles and bytes of the mask are of one part. */
export interface LineRange {
  firstLine: number;
  endLine: number;
}

/** Where parts find bytes to themselves: the first at `at`, the next `bytes` on. */
export interface Scratches {
  at: number;
  bytes: number;
  parts: number;
  /** How many have been taken: an i32 that parts count up. */
  claims: SharedArrayBuffer;
}

export interface LaidOutGrid {
  grid: Grid;
  scratches: Scratches;
  /** What is laid out in the memory so far. */
  usedBytes: number;
}

export interface PlannedFilter {
  usedBytes: number;
  plan: FilterPlan;
  measuring: Scratches;
  marking: Scratches;
}

/** How often lines are measured and marked at most, those that go again among them, and how many are marked at a time. */
export interface PartSizes {
  measured: number;
  marked: number;
  markedLines: number;
}

/** The filter's mask, and how many points of every line it keeps. */
export interface FilteredCloud extends OutlierMask {
  lineCounts: Uint32Array<ArrayBuffer>;
}

/** A part of the mask. */
export interface MarkedLines {
  /** False: a point is undecided, and the bits are void. */
  isDecided: boolean;
  bits: Uint8Array<ArrayBuffer>;
  lineCounts: Uint32Array<ArrayBuffer>;
}

/** CRC-32 of each plane in some lines. */
export interface LoadedCrcs {
  heightCrc32: number;
  luminanceCrc32: number;
}

interface InMemory {
  memory: SharedMemory;
}

/** Name → input and output of every part. */
export interface FilterPartTasks {
  /** Whatever was in the memory is void. `parts`: how often lines are loaded at most, those that go again among them. */
  layOutFilter: { input: InMemory & { frame: FrameSource; parts: number }; output: LaidOutGrid };
  /** Answers the CRCs of what it has read: of the luminance too, without which there is no point of the PLY. */
  loadLines: { input: InMemory & LaidOutGrid & LineRange & { frame: FrameSource }; output: LoadedCrcs };
  /** `loaded`: what parts have read, in order. */
  planFilter: {
    input: InMemory & LaidOutGrid & PartSizes & { frame: FrameSource; loaded: readonly (LineRange & LoadedCrcs)[] };
    output: PlannedFilter;
  };
  measureLines: { input: InMemory & PlannedFilter & LineRange; output: DistanceSums };
  markLines: { input: InMemory & PlannedFilter & LineRange & { bounds: ThresholdBounds }; output: MarkedLines };
  /** The next way to measure, where the plan's has left points undecided. */
  planAgain: { input: InMemory & PlannedFilter & PartSizes; output: PlannedFilter };
  /** What parts cannot. */
  finishFilter: { input: InMemory & PlannedFilter & { sums: readonly DistanceSums[] }; output: FilteredCloud };
}

type FilterParts = {
  [N in keyof FilterPartTasks]: (input: FilterPartTasks[N]["input"]) => Promise<FilterPartTasks[N]["output"]>;
};

export function filterParts(fileSystem: FileSystem = nodeFileSystem): FilterParts {
  return {
    async layOutFilter({ memory: shared, frame, parts }) {
      const memory = await joinMemory(shared);
      const grid = layOutGrid(memory, frame.geometry);
      const scratches = layOut(memory, loadingBytes(frame.planes.height, grid.width), parts);
      return { grid, scratches, usedBytes: memory.usedBytes };
    },
    async loadLines({ memory: shared, frame, grid, scratches, firstLine, endLine }) {
      const memory = await joinMemory(shared, claim(scratches));
      const bytesAt = (at: number, length: number): Uint8Array => memory.bytes(at, length);
      const reader = await openFrame(fileSystem, frame, bytesAt, firstLine);
      try {
        await loadLines(memory, frame.planes.height, grid, reader.heights, firstLine, endLine);
        reader.checkLuminance(firstLine, endLine);
      } finally {
        await reader.close();
      }
      boundTiles(memory, grid, firstLine, endLine);
      return { heightCrc32: reader.heightsCrc32(), luminanceCrc32: reader.luminanceCrc32() };
    },
    async planFilter({ memory: shared, usedBytes, frame, grid, loaded, ...sizes }) {
      const { height, luminance } = lineBytes(frame.planes, grid.width);
      let [heightCrc32, luminanceCrc32] = [0, 0];
      for (const part of loaded) {
        const lines = part.endLine - part.firstLine;
        heightCrc32 = combineCrc32(heightCrc32, part.heightCrc32, lines * height);
        luminanceCrc32 = combineCrc32(luminanceCrc32, part.luminanceCrc32, lines * luminance);
      }
      verifyHeights(frame, heightCrc32);
      verifyLuminance(frame, luminanceCrc32);
      const memory = await joinMemory(shared, usedBytes);
      return planned(memory, planFilter(memory, grid), sizes);
    },
    async measureLines({ memory: shared, usedBytes, plan, measuring, firstLine, endLine }) {
      const scratch = claim(measuring);
      return measureLines(await joinMemory(shared, usedBytes), plan, scratch, firstLine, endLine);
    },
    async markLines({ memory: shared, usedBytes, plan, bounds, marking, firstLine, endLine }) {
      const scratch = claim(marking);
      const memory = await joinMemory(shared, usedBytes);
      const { width } = plan.grid;
      const mask = scratch + MARKING_BYTES;
      const lengthBytes = maskBytes(width, endLine - firstLine);
      memory.bytes(mask, lengthBytes).fill(0);
      const lineZero = mask - (firstLine * width) / 8;
      const isDecided = markLines(memory, plan, scratch, bounds, lineZero, firstLine, endLine);
      const bits = memory.copyOf(mask, lengthBytes);
      return { isDecided, bits, lineCounts: countLineBits(bits, width, endLine - firstLine) };
    },
    async planAgain({ memory: shared, usedBytes, plan, ...sizes }) {
      const memory = await joinMemory(shared, usedBytes);
      return planned(memory, planAgain(memory, plan), sizes);
    },
    async finishFilter({ memory: shared, usedBytes, plan, sums }) {
      return withLineCounts(finishFilter(await joinMemory(shared, usedBytes), plan, sums), plan.grid);
    },
  };
}

export function withLineCounts(mask: OutlierMask, { width, lines }: { width: number; lines: number }): FilteredCloud {
  return { ...mask, lineCounts: countLineBits(mask.bits, width, lines) };
}

function planned(memory: KernelMemory, plan: FilterPlan, { measured, marked, markedLines }: PartSizes): PlannedFilter {
  const measuring = layOut(memory, scratchBytes(memory, plan), measured);
  const marking = layOut(memory, MARKING_BYTES + maskBytes(plan.grid.width, markedLines), marked);
  return { plan, measuring, marking, usedBytes: memory.usedBytes };
}

/** Of so many bytes and some more, since vectors are stored past the end. */
function layOut(memory: KernelMemory, lengthBytes: number, parts: number): Scratches {
  const bytes = 16 * Math.ceil(lengthBytes / 16) + 16;
  return { at: memory.allocate(bytes * parts), bytes, parts, claims: new SharedArrayBuffer(4) };
}

function claim({ at, bytes, parts, claims }: Scratches): number {
  const nth = Atomics.add(new Int32Array(claims), 0, 1);
  if (nth >= parts) throw new Error(`${parts} parts have been begun already`);
  return at + nth * bytes;
}
