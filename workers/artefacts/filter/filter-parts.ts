/**
 * The filter by several threads (split-filter.ts) on a memory that all share: the stages are laying out, loading, measuring and marking, the last three in
 * parts of lines that run at the same time, the grid's tables beside loading. Every point is decided as by one thread: the mask has the same bits however many there were.
 */
import { lineBytes } from "../../../core/capture/capture.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { countLineBits } from "../cloud/line-counts.js";
import { combineCrc32 } from "../frame/crc-combination.js";
import { loadingBytes, loadLines } from "../frame/frame-grid.js";
import {
  type FrameReader,
  type FrameSource,
  openFrame,
  verifyHeights,
  verifyLuminance,
} from "../frame/frame-source.js";
import { joinMemory, type KernelMemory, type SharedMemory } from "../kernel-memory.js";
import { newTeam, type Stages, type Team, takeTurn } from "../pool/team-work.js";
import {
  type FilterStage,
  type InMemory,
  type LoadStage,
  numbersOf,
  type Planned,
  type Scratches,
  stageOf,
} from "./filter-stages.js";
import { fillTables, type Grid, placeGrid } from "./grid-layout.js";
import {
  boundsOf,
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
import { type DistanceSums, type ThresholdBounds, total } from "./outlier-threshold.js";

/** The filter's mask, and how many points of every line it keeps. */
export interface FilteredCloud extends OutlierMask {
  lineCounts: Uint32Array<ArrayBuffer>;
}

/** What threads share that filter a frame together. */
export interface FilterTeam {
  memory: SharedMemory;
  frame: FrameSource;
  members: number;
  team: Team;
  /** f64: what each part has found. */
  results: SharedArrayBuffer;
}

/** Name → input and output of the task. */
export interface FilterPartTasks {
  /** A turn of one of the team's threads (team-work.ts). `usedBytes`: of the memory. */
  filterTogether: {
    input: FilterTeam & { member: number; turn: number };
    output: ({ ended: "result"; usedBytes: number } & FilteredCloud) | { ended: "more" | "over" | "lost" };
  };
}

/** Lines of a frame: the first is divisible by 8, and so is the end, or it is the frame's. So tiles and bytes of the mask are of one part. */
export interface LineRange {
  firstLine: number;
  endLine: number;
}

/**
 * Positions of a part, at least and at most. Each is an equal share of what is left, so that little is waited for in the end and few parts are
 * begun (C. D. Polychronopoulos, D. J. Kuck, "Guided Self-Scheduling", 1987). What is measured is gone through again for its sums: while it is in
 * the cache.
 */
const LOADED_POSITIONS = { least: 16_000, most: 512_000 };
const MEASURED_POSITIONS = { least: 4_000, most: 16_000 };
/** To mark a position takes a tenth of what it takes to measure it, and less. */
const MARKED_POSITIONS = { least: 16_000, most: 512_000 };
/** Shares of what is left, for every thread: parts differ in how hard they are. And of a large frame there are not many more parts than this. */
const SHARES_PER_THREAD = 4;
const MOST_PARTS = 128;

/** For a part that is measured: sums over its distances, and whether all its points were decided. */
const RESULT_ITEMS = 8;
const DECIDED_ITEM = 7;
/** For a part that is loaded: the CRC-32 of each plane. They lie behind those that are measured. */
const CRC_ITEMS = 2;

/** Lines of each part of a frame that so many threads filter. */
export function partsOf({ width, lines }: { width: number; lines: number }, members: number) {
  const shares = SHARES_PER_THREAD * members;
  const parts = ({ least, most }: { least: number; most: number }): LineRange[] =>
    lineRanges(lines, shares, Math.min(least / width, lines / shares), Math.max(most / width, lines / MOST_PARTS));
  return { loaded: parts(LOADED_POSITIONS), measured: parts(MEASURED_POSITIONS), marked: parts(MARKED_POSITIONS) };
}

/** @param first for benchmarks: the stage to begin with */
export function newFilterTeam(
  memory: SharedMemory,
  frame: FrameSource,
  members: number,
  first: { kind: "layOut" } | LoadStage = { kind: "layOut" },
): FilterTeam {
  const { loaded, measured } = partsOf(frame.geometry, members);
  const team = newTeam(members, numbersOf(first), first.kind === "layOut" ? 1 : 1 + loaded.length);
  const results = new SharedArrayBuffer(8 * (RESULT_ITEMS * measured.length + CRC_ITEMS * loaded.length));
  return { memory, frame, members, team, results };
}

/** The task. */
export function filterParts(fileSystem: FileSystem = nodeFileSystem) {
  return {
    async filterTogether(
      input: FilterPartTasks["filterTogether"]["input"],
    ): Promise<FilterPartTasks["filterTogether"]["output"]> {
      const stages = new FilterStages(fileSystem, input, await joinMemory(input.memory));
      try {
        const end = await takeTurn(input.team, input, stages);
        return end.ended === "result" ? { ended: "result", ...end.result } : end;
      } finally {
        stages.close();
      }
    },
  };
}

export function withLineCounts(mask: OutlierMask, { width, lines }: { width: number; lines: number }): FilteredCloud {
  return { ...mask, lineCounts: countLineBits(mask.bits, width, lines) };
}

export type Filtered = FilteredCloud & { usedBytes: number };

/** The stages as one thread has them for one turn. */
export class FilterStages implements Stages<FilterStage, Filtered> {
  readonly numbersOf = numbersOf;
  readonly stageOf = stageOf;
  readonly #fileSystem: FileSystem;
  readonly #team: FilterTeam;
  readonly #member: number;
  /** As the team's. */
  readonly #results: Float64Array;
  readonly #loaded: readonly LineRange[];
  readonly #measured: readonly LineRange[];
  readonly #marked: readonly LineRange[];
  readonly #memory: KernelMemory;
  #reader: FrameReader | undefined;

  constructor(fileSystem: FileSystem, team: FilterTeam & { member: number }, memory: KernelMemory) {
    this.#memory = memory;
    this.#fileSystem = fileSystem;
    this.#team = team;
    this.#member = team.member;
    this.#results = new Float64Array(team.results);
    const { loaded, measured, marked } = partsOf(team.frame.geometry, team.members);
    this.#loaded = loaded;
    this.#measured = measured;
    this.#marked = marked;
  }

  pieces({ kind }: FilterStage): number {
    if (kind === "layOut") return 1;
    if (kind === "load") return 1 + this.#loaded.length;
    return kind === "measure" ? 1 + this.#measured.length : this.#marked.length;
  }

  async run(stage: FilterStage, piece: number): Promise<void> {
    // There is nothing to share before there is a grid: it is what comes next.
    if (stage.kind === "layOut") return;
    if (stage.kind === "load") {
      // The tables first, which take longest.
      if (piece === 0) fillTables(this.#seen(stage), stage.grid, this.#team.frame.geometry);
      else await this.#load(stage, this.#loaded[piece - 1] as LineRange, this.#crcsOf(piece - 1));
      return;
    }
    if (stage.kind === "mark") return this.#mark(stage, this.#marked[piece] as LineRange, this.#itemsOf(piece));
    if (piece > 0) return this.#measure(stage, this.#measured[piece - 1] as LineRange, this.#itemsOf(piece - 1));
    // Not before measuring, which would wait for it. Results from damaged lines are discarded.
    if (!stage.isAgain) this.#verify();
  }

  next(stage: FilterStage): { stage: FilterStage } | { alone: () => Filtered } {
    switch (stage.kind) {
      case "layOut":
        return { stage: this.#layOut() };
      case "load":
        return { stage: this.#plan(stage) };
      case "measure": {
        const sums = this.#sums();
        const bounds = boundsOf(stage.plan, sums);
        if (bounds === null) return this.#finish(stage);
        return { stage: { ...stage, kind: "mark", bounds, points: total(sums, ({ points }) => points) } };
      }
      case "mark": {
        if (this.#isDecided()) return { alone: () => this.#joined(stage, stage.points) };
        return stage.isAgain ? this.#finish(stage) : { stage: this.planAgain(stage) };
      }
    }
  }

  close(): void {
    this.#reader?.close();
  }

  #layOut(): FilterStage {
    const { frame } = this.#team;
    const memory = this.#memory;
    memory.reset();
    const grid = placeGrid(memory, frame.geometry);
    const scratches = this.#layOutScratches(memory, loadingBytes(frame.planes.height, grid.width));
    return { kind: "load", grid, scratches, ...lengthsOf(memory) };
  }

  /** Reads the luminance for its CRC too: without it there is no point of the PLY. */
  async #load(stage: LoadStage, { firstLine, endLine }: LineRange, crcs: Float64Array): Promise<void> {
    const { planes } = this.#team.frame;
    const { grid, scratches } = stage;
    const memory = this.#seen(stage);
    memory.continueFrom(this.#scratchOf(scratches));
    this.#reader ??= this.#open();
    const reader = this.#reader;
    reader.checkFrom(firstLine);
    await loadLines(memory, planes.height, grid, reader.heights, firstLine, endLine);
    reader.checkLuminance(firstLine, endLine);
    boundTiles(memory, grid, firstLine, endLine);
    crcs[0] = reader.heightsCrc32();
    crcs[1] = reader.luminanceCrc32();
  }

  #open(): FrameReader {
    return openFrame(this.#fileSystem, this.#team.frame, (at, length) => this.#memory.bytes(at, length));
  }

  #plan({ grid, usedBytes }: LoadStage): FilterStage {
    const { width, lines } = this.#team.frame.geometry;
    const memory = this.#memory;
    memory.continueFrom(usedBytes);
    const plan = this.#planned(memory, grid);
    const mask = memory.allocate(maskBytes(width, lines));
    const lineCounts = memory.allocate(4 * lines);
    return this.#toBeMeasured({ plan, mask, lineCounts, isAgain: false });
  }

  #planned(memory: KernelMemory, grid: Grid): FilterPlan {
    try {
      return planFilter(memory, grid);
    } catch (error) {
      // Heights that are damaged may ask for more memory than those that were stored.
      this.#verify();
      throw error;
    }
  }

  /** @throws StorageError `capture_damaged` */
  #verify(): void {
    const { frame } = this.#team;
    const { height, luminance } = lineBytes(frame.planes, frame.geometry.width);
    let [heightCrc32, luminanceCrc32] = [0, 0];
    for (const [nth, { firstLine, endLine }] of this.#loaded.entries()) {
      const [heights = 0, lights = 0] = this.#crcsOf(nth);
      heightCrc32 = combineCrc32(heightCrc32, heights, (endLine - firstLine) * height);
      luminanceCrc32 = combineCrc32(luminanceCrc32, lights, (endLine - firstLine) * luminance);
    }
    verifyHeights(frame, heightCrc32);
    verifyLuminance(frame, luminanceCrc32);
  }

  /** Measures anew, since marking has left points undecided. */
  planAgain({ plan, mask, lineCounts, usedBytes }: Planned): FilterStage {
    this.#memory.continueFrom(usedBytes);
    return this.#toBeMeasured({ plan: planAgain(this.#memory, plan), mask, lineCounts, isAgain: true });
  }

  #toBeMeasured(planned: Pick<Planned, "plan" | "mask" | "lineCounts" | "isAgain">): FilterStage {
    const { plan } = planned;
    const memory = this.#memory;
    const mostLines = Math.max(...this.#marked.map(({ firstLine, endLine }) => endLine - firstLine));
    const markingBytes = MARKING_BYTES + maskBytes(plan.grid.width, mostLines);
    const scratches = this.#layOutScratches(memory, Math.max(scratchBytes(memory, plan), markingBytes));
    return { kind: "measure", ...planned, scratches, ...lengthsOf(memory) };
  }

  #measure(stage: Planned, { firstLine, endLine }: LineRange, items: Float64Array): void {
    const memory = this.#seen(stage);
    const sums = measureLines(memory, stage.plan, this.#scratchOf(stage.scratches), firstLine, endLine);
    items.set([sums.points, sums.counted, sums.open, sums.sum, sums.around, sums.squares, sums.spread]);
  }

  /** In bytes of its own first: marking writes past the end of its lines. */
  #mark(stage: Planned & { bounds: ThresholdBounds }, { firstLine, endLine }: LineRange, items: Float64Array): void {
    const memory = this.#seen(stage);
    const { plan, bounds, mask, lineCounts, scratches } = stage;
    const { width } = plan.grid;
    const scratch = this.#scratchOf(scratches);
    const own = scratch + MARKING_BYTES;
    const firstByte = (firstLine * width) / 8;
    const bits = memory.bytes(own, maskBytes(width, endLine - firstLine));
    bits.fill(0);
    const isDecided = markLines(memory, plan, scratch, bounds, own - firstByte, firstLine, endLine);
    items[DECIDED_ITEM] = isDecided ? 1 : 0;
    if (!isDecided) return;
    memory.bytes(mask + firstByte, bits.length).set(bits);
    memory.words(lineCounts + 4 * firstLine, endLine - firstLine).set(countLineBits(bits, width, endLine - firstLine));
  }

  #joined({ plan, mask, lineCounts: countsAt, usedBytes }: Planned, points: number): Filtered {
    const { width, lines } = plan.grid;
    const memory = this.#memory;
    const bits = memory.copyOf(mask, maskBytes(width, lines));
    const lineCounts = new Uint32Array(lines);
    lineCounts.set(memory.words(countsAt, lines));
    const inliers = lineCounts.reduce((sum, count) => sum + count, 0);
    return { bits, lineCounts, inliers, points, usedBytes };
  }

  /** What parts cannot. */
  #finish({ plan, usedBytes }: Planned): { alone: () => Filtered } {
    const memory = this.#memory;
    memory.continueFrom(usedBytes);
    const sums = this.#sums();
    return {
      alone: () => {
        const cloud = withLineCounts(finishFilter(memory, plan, sums), plan.grid);
        return { ...cloud, usedBytes: memory.usedBytes };
      },
    };
  }

  /** The memory, as long as a stage has it: another thread may have made it longer, of which V8 tells by an interrupt, taken at a loop's next turn at the latest. */
  #seen({ memoryBytes }: InMemory): KernelMemory {
    while (this.#memory.buffer.byteLength < memoryBytes);
    return this.#memory;
  }

  #sums(): DistanceSums[] {
    const sums: DistanceSums[] = [];
    for (let part = 0; part < this.#measured.length; part++) {
      const items = this.#itemsOf(part);
      sums.push({
        points: items[0] as number,
        counted: items[1] as number,
        open: items[2] as number,
        sum: items[3] as number,
        around: items[4] as number,
        squares: items[5] as number,
        spread: items[6] as number,
      });
    }
    return sums;
  }

  #isDecided(): boolean {
    return this.#marked.every((_, nth) => this.#itemsOf(nth)[DECIDED_ITEM] === 1);
  }

  #itemsOf(part: number): Float64Array {
    return this.#results.subarray(part * RESULT_ITEMS, (part + 1) * RESULT_ITEMS);
  }

  #crcsOf(loaded: number): Float64Array {
    const at = this.#measured.length * RESULT_ITEMS + loaded * CRC_ITEMS;
    return this.#results.subarray(at, at + CRC_ITEMS);
  }

  /** Of so many bytes and some more for each, since vectors are stored past the end. */
  #layOutScratches(memory: KernelMemory, lengthBytes: number): Scratches {
    const bytes = 16 * Math.ceil(lengthBytes / 16) + 16;
    return { at: memory.allocate(bytes * this.#team.members), bytes };
  }

  #scratchOf({ at, bytes }: Scratches): number {
    return at + this.#member * bytes;
  }
}

function lengthsOf(memory: KernelMemory): InMemory {
  return { usedBytes: memory.usedBytes, memoryBytes: memory.buffer.byteLength };
}

/** Parts whose borders are divisible by 8: each of about so many shares of the lines that are left, but of `least` and `most` lines about. */
function lineRanges(lines: number, shares: number, least: number, most: number): LineRange[] {
  const ranges: LineRange[] = [];
  for (let firstLine = 0; firstLine < lines; ) {
    const partLines = Math.min(Math.max((lines - firstLine) / shares, least), most);
    const endLine = Math.min(lines, firstLine + 8 * Math.max(1, Math.round(partLines / 8)));
    ranges.push({ firstLine, endLine });
    firstLine = endLine;
  }
  return ranges;
}
