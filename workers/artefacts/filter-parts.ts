/**
 * The filter by several threads (split-filter.ts) on a memory that all share: the stages are laying out, loading, measuring and marking, the last three in
 * parts of lines that run at the same time. Every point is decided as by one thread: the mask has the same bits however many there were.
 */
import { lineBytes } from "../../core/capture.js";
import { type FileSystem, nodeFileSystem } from "../../storage/file-system.js";
import { combineCrc32 } from "./crc-combination.js";
import { loadingBytes, loadLines } from "./frame-grid.js";
import { type FrameReader, type FrameSource, openFrame, verifyHeights, verifyLuminance } from "./frame-source.js";
import { type Grid, layOutGrid } from "./grid-layout.js";
import { joinMemory, type KernelMemory, type SharedMemory } from "./kernel-memory.js";
import { countLineBits } from "./line-counts.js";
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
import { newTeam, type Stages, type Team, takeTurn } from "./team-work.js";

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
  /** f64, `RESULT_ITEMS` for each part: what one has found. */
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
interface LineRange {
  firstLine: number;
  endLine: number;
}

/** Bytes that every member has to itself: the first at `at`, the next `bytes` on. */
interface Scratches {
  at: number;
  bytes: number;
}

/** `usedBytes`: what is laid out in the memory, which is `memoryBytes` long. */
interface InMemory {
  usedBytes: number;
  memoryBytes: number;
}

interface Planned extends InMemory {
  plan: FilterPlan;
  scratches: Scratches;
  /** Addresses of the mask, and of an i32 for every line: the points that it keeps. */
  mask: number;
  lineCounts: number;
  isAgain: boolean;
}

type LoadStage = { kind: "load"; grid: Grid; scratches: Scratches } & InMemory;

type FilterStage =
  | { kind: "layOut" }
  | LoadStage
  | ({ kind: "measure" } & Planned)
  | ({ kind: "mark"; bounds: ThresholdBounds } & Planned);

/** Loading goes in so many parts for every thread; the others in parts of so many positions at least, which take a fraction of a millisecond. */
const LOADED_PER_THREAD = 2;
const LEAST_PART_POSITIONS = 4_000;
const LEAST_PER_THREAD = 4;
const MOST_PARTS = 128;

/** For a part: sums over its distances, and whether all its points were decided; or the CRC-32 of each plane. */
const RESULT_ITEMS = 8;
const SUMS = [
  "points",
  "counted",
  "open",
  "sum",
  "around",
  "squares",
  "spread",
] as const satisfies (keyof DistanceSums)[];
const DECIDED_ITEM = 7;

export function newFilterTeam(memory: SharedMemory, frame: FrameSource, members: number): FilterTeam {
  const team = newTeam<FilterStage>(members, { kind: "layOut" }, 1);
  const results = new SharedArrayBuffer(8 * RESULT_ITEMS * Math.max(MOST_PARTS, LOADED_PER_THREAD * members));
  return { memory, frame, members, team, results };
}

/** The task. */
export function filterParts(fileSystem: FileSystem = nodeFileSystem) {
  return {
    async filterTogether(
      input: FilterPartTasks["filterTogether"]["input"],
    ): Promise<FilterPartTasks["filterTogether"]["output"]> {
      const stages = new FilterStages(fileSystem, input, await joinMemory(input.memory));
      if (input.turn === 1) stages.open();
      try {
        const end = await takeTurn(input.team, input, stages);
        return end.ended === "result" ? { ended: "result", ...end.result } : end;
      } finally {
        await stages.close();
      }
    },
  };
}

export function withLineCounts(mask: OutlierMask, { width, lines }: { width: number; lines: number }): FilteredCloud {
  return { ...mask, lineCounts: countLineBits(mask.bits, width, lines) };
}

type Filtered = FilteredCloud & { usedBytes: number };

/** The stages as one thread has them for one turn. */
export class FilterStages implements Stages<FilterStage, Filtered> {
  readonly #fileSystem: FileSystem;
  readonly #team: FilterTeam;
  readonly #member: number;
  /** As the team's. */
  readonly #results: Float64Array;
  readonly #loaded: readonly LineRange[];
  /** Measured, and marked. */
  readonly #measured: readonly LineRange[];
  readonly #memory: KernelMemory;
  #reader: Promise<FrameReader> | undefined;

  constructor(fileSystem: FileSystem, team: FilterTeam & { member: number }, memory: KernelMemory) {
    this.#memory = memory;
    this.#fileSystem = fileSystem;
    this.#team = team;
    this.#member = team.member;
    this.#results = new Float64Array(team.results);
    const { width, lines } = team.frame.geometry;
    const leastPositions = Math.min(LEAST_PART_POSITIONS, (width * lines) / (LEAST_PER_THREAD * team.members));
    this.#loaded = lineRanges(lines, lines / (LOADED_PER_THREAD * team.members));
    this.#measured = lineRanges(lines, Math.max(lines / MOST_PARTS, leastPositions / width));
  }

  pieces({ kind }: FilterStage): number {
    return kind === "layOut" ? 1 : this.#partsOf(kind).length;
  }

  async run(stage: FilterStage, piece: number): Promise<void> {
    // There is nothing to share before there is a grid: it is what comes next.
    if (stage.kind === "layOut") return;
    const range = this.#partsOf(stage.kind)[piece] as LineRange;
    if (stage.kind === "load") await this.#load(stage, range, this.#itemsOf(piece));
    else if (stage.kind === "measure") this.#measure(stage, range, this.#itemsOf(piece));
    else this.#mark(stage, range, this.#itemsOf(piece));
  }

  next(stage: FilterStage): { stage: FilterStage } | { alone: () => Filtered } {
    switch (stage.kind) {
      case "layOut":
        return { stage: this.#layOut() };
      case "load":
        return { stage: this.#plan(stage) };
      case "measure": {
        const bounds = boundsOf(stage.plan, this.#sums());
        return bounds === null ? this.#finish(stage) : { stage: { ...stage, kind: "mark", bounds } };
      }
      case "mark": {
        if (this.#isDecided()) return { alone: () => this.#joined(stage) };
        return stage.isAgain ? this.#finish(stage) : { stage: this.planAgain(stage) };
      }
    }
  }

  /** Begins to open the frame's file: that takes as long as to lay out the grid. */
  open(): void {
    const { memory, frame } = this.#team;
    const bytesAt = (at: number, length: number): Uint8Array => new Uint8Array(memory.buffer, at, length);
    this.#reader = openFrame(this.#fileSystem, frame, bytesAt);
    // Whoever loads is told.
    this.#reader.catch(() => {});
  }

  async close(): Promise<void> {
    const reader = await this.#reader?.catch(() => undefined);
    await reader?.close();
  }

  #layOut(): FilterStage {
    const { frame } = this.#team;
    const memory = this.#memory;
    memory.reset();
    const grid = layOutGrid(memory, frame.geometry);
    const scratches = this.#layOutScratches(memory, loadingBytes(frame.planes.height, grid.width));
    return { kind: "load", grid, scratches, ...lengthsOf(memory) };
  }

  /** Reads the luminance for its CRC too: without it there is no point of the PLY. */
  async #load(stage: LoadStage, { firstLine, endLine }: LineRange, items: Float64Array): Promise<void> {
    const { planes } = this.#team.frame;
    const { grid, scratches } = stage;
    const memory = this.#seen(stage);
    memory.continueFrom(this.#scratchOf(scratches));
    if (this.#reader === undefined) this.open();
    const reader = await (this.#reader as Promise<FrameReader>);
    reader.checkFrom(firstLine);
    await loadLines(memory, planes.height, grid, reader.heights, firstLine, endLine);
    reader.checkLuminance(firstLine, endLine);
    boundTiles(memory, grid, firstLine, endLine);
    items[0] = reader.heightsCrc32();
    items[1] = reader.luminanceCrc32();
  }

  #plan({ grid, usedBytes }: LoadStage): FilterStage {
    const { frame } = this.#team;
    const { width, lines } = frame.geometry;
    const { height, luminance } = lineBytes(frame.planes, width);
    let [heightCrc32, luminanceCrc32] = [0, 0];
    for (const [nth, { firstLine, endLine }] of this.#loaded.entries()) {
      const [heights = 0, lights = 0] = this.#itemsOf(nth);
      heightCrc32 = combineCrc32(heightCrc32, heights, (endLine - firstLine) * height);
      luminanceCrc32 = combineCrc32(luminanceCrc32, lights, (endLine - firstLine) * luminance);
    }
    verifyHeights(frame, heightCrc32);
    verifyLuminance(frame, luminanceCrc32);
    const memory = this.#memory;
    memory.continueFrom(usedBytes);
    const plan = planFilter(memory, grid);
    const mask = memory.allocate(maskBytes(width, lines));
    const lineCounts = memory.allocate(4 * lines);
    return this.#toBeMeasured({ plan, mask, lineCounts, isAgain: false });
  }

  /** Measures anew, since marking has left points undecided. */
  planAgain({ plan, mask, lineCounts, usedBytes }: Planned): FilterStage {
    this.#memory.continueFrom(usedBytes);
    return this.#toBeMeasured({ plan: planAgain(this.#memory, plan), mask, lineCounts, isAgain: true });
  }

  #toBeMeasured(planned: Pick<Planned, "plan" | "mask" | "lineCounts" | "isAgain">): FilterStage {
    const { plan } = planned;
    const memory = this.#memory;
    const mostLines = Math.max(...this.#measured.map(({ firstLine, endLine }) => endLine - firstLine));
    const markingBytes = MARKING_BYTES + maskBytes(plan.grid.width, mostLines);
    const scratches = this.#layOutScratches(memory, Math.max(scratchBytes(memory, plan), markingBytes));
    return { kind: "measure", ...planned, scratches, ...lengthsOf(memory) };
  }

  #measure(stage: Planned, { firstLine, endLine }: LineRange, items: Float64Array): void {
    const memory = this.#seen(stage);
    const sums = measureLines(memory, stage.plan, this.#scratchOf(stage.scratches), firstLine, endLine);
    for (const [at, name] of SUMS.entries()) items[at] = sums[name];
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

  #joined({ plan, mask, lineCounts: countsAt, usedBytes }: Planned): Filtered {
    const { width, lines } = plan.grid;
    const memory = this.#memory;
    const bits = memory.copyOf(mask, maskBytes(width, lines));
    const lineCounts = new Uint32Array(lines);
    lineCounts.set(memory.words(countsAt, lines));
    const inliers = lineCounts.reduce((sum, count) => sum + count, 0);
    return { bits, lineCounts, inliers, points: total(this.#sums(), ({ points }) => points), usedBytes };
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
    return this.#measured.map((_, nth) => {
      const items = this.#itemsOf(nth);
      return Object.fromEntries(SUMS.map((name, at) => [name, items[at]])) as unknown as DistanceSums;
    });
  }

  #isDecided(): boolean {
    return this.#measured.every((_, nth) => this.#itemsOf(nth)[DECIDED_ITEM] === 1);
  }

  #partsOf(kind: "load" | "measure" | "mark"): readonly LineRange[] {
    return kind === "load" ? this.#loaded : this.#measured;
  }

  #itemsOf(part: number): Float64Array {
    return this.#results.subarray(part * RESULT_ITEMS, (part + 1) * RESULT_ITEMS);
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

/** Parts whose borders are divisible by 8, of about so many lines. */
function lineRanges(lines: number, partLines: number): LineRange[] {
  const step = 8 * Math.ceil(partLines / 8);
  const ranges: LineRange[] = [];
  for (let firstLine = 0; firstLine < lines; firstLine += step) {
    ranges.push({ firstLine, endLine: Math.min(lines, firstLine + step) });
  }
  return ranges;
}
