/**
 * The filter over several threads. Tasks for some lines each load the frame into a memory that all share, others measure distances there, and
 * others mark what stays; between them short ones lay out what they need. Every point is decided as by one thread: the mask has the same bits
 * however many there were. No task waits for another; what holds them together is here, outside of the threads, so that a pool of whatever
 * size gets through it. Lines go to threads as these are idle.
 */
import type { ArtefactPool, RunOptions } from "./artefact-pool.js";
import type { TaskInput, TaskName, TaskOutput } from "./artefact-tasks.js";
import type {
  FilteredCloud,
  LineRange,
  LoadedCrcs,
  MarkedLines,
  PartSizes,
  PlannedFilter,
  Scratches,
} from "./filter-parts.js";
import type { FrameSource } from "./frame-source.js";
import { hasWasmKernels, newSharedMemory, type SharedMemory } from "./kernel-memory.js";
import { MemoryNeed } from "./memory-need.js";
import { boundsOf, maskBytes } from "./outlier-filter.js";
import { type DistanceSums, total } from "./outlier-threshold.js";

/** With fewer positions one thread is done as soon: what parts need beside the work takes two some 5 ms, and each part a message. */
const LEAST_POSITIONS = 400_000;
const LEAST_PART_POSITIONS = 50_000;
/** Loading and marking go in so many parts for every thread. Of measuring, where some are harder, the last are so small. */
const OTHERS_PER_THREAD = 2;
const LAST_PER_THREAD = 16;
const MOST_PARTS = 64;
/** A part goes again once (artefact-pool.ts). */
const ATTEMPTS = 2;

type Pool = Pick<ArtefactPool, "run" | "threads">;

export class SplitFilter {
  readonly #pool: Pool;
  readonly #leastPositions: number;
  /** Memories that no filter uses: as many as there were filters at a time at most, and no more than threads. */
  readonly #memories: SharedMemory[] = [];
  readonly #need: MemoryNeed;

  /** @param leastPositions for tests: another size from which on a frame is split */
  constructor(pool: Pool, leastPositions = LEAST_POSITIONS, need = new MemoryNeed()) {
    this.#pool = pool;
    this.#leastPositions = leastPositions;
    this.#need = need;
  }

  /** As the task `filter`, and by it where there is nothing to be split, or the threads have no WebAssembly. @throws as `ArtefactPool.run` */
  async run(frame: FrameSource, options: RunOptions): Promise<FilteredCloud> {
    const { width, lines } = frame.geometry;
    const isSplit = this.#pool.threads > 1 && lines > 1 && width * lines >= this.#leastPositions;
    if (!isSplit || !(await hasWasmKernels())) return this.#pool.run("filter", frame, options);
    const memory = this.#memories.pop() ?? newSharedMemory();
    const run = new SplitRun(
      this.#pool,
      frame,
      memory,
      Math.min(LEAST_PART_POSITIONS, this.#leastPositions / 2),
      options,
    );
    const cloud = await run.cloud();
    this.#need.note(run.usedBytes);
    const isKept = run.isQuiet && this.#need.isKept(memory.buffer.byteLength);
    if (isKept && this.#memories.length < this.#pool.threads) this.#memories.push(memory);
    return cloud;
  }
}

/** One frame's filter. */
class SplitRun {
  readonly #pool: Pool;
  readonly #frame: FrameSource;
  readonly #memory: SharedMemory;
  readonly #options: RunOptions;
  /** Parts for measuring, and for the rest. */
  readonly #measured: readonly LineRange[];
  readonly #others: readonly LineRange[];
  usedBytes = 0;
  /** False: a thread that was lost may be at it still. */
  isQuiet = true;

  constructor(pool: Pool, frame: FrameSource, memory: SharedMemory, leastPartPositions: number, options: RunOptions) {
    this.#pool = pool;
    this.#frame = frame;
    this.#memory = memory;
    this.#options = options;
    const { width, lines } = frame.geometry;
    const { threads } = pool;
    const leastLines = Math.max(lines / Math.min(LAST_PER_THREAD * threads, MOST_PARTS), leastPartPositions / width);
    // Each takes half of what would be every thread's share of the rest: few messages, and none has long to wait for the last.
    this.#measured = lineRanges(lines, (rest) => Math.max(leastLines, rest / (2 * threads)));
    const otherLines = lines / Math.min(OTHERS_PER_THREAD * threads, MOST_PARTS);
    this.#others = lineRanges(lines, () => otherLines);
  }

  async cloud(): Promise<FilteredCloud> {
    const memory = this.#memory;
    let planned = await this.#loadAndPlan();
    let { sums, marked } = await this.#decide(planned);
    if (marked?.some(({ isDecided }) => !isDecided)) {
      planned = await this.#next("planAgain", { ...planned, ...this.#sizes(), memory });
      ({ sums, marked } = await this.#decide(planned));
    }
    this.usedBytes = planned.usedBytes;
    if (marked?.every(({ isDecided }) => isDecided)) return this.#joined(sums, marked);
    return this.#next("finishFilter", { ...planned, sums, memory });
  }

  async #loadAndPlan(): Promise<PlannedFilter> {
    const [frame, memory] = [this.#frame, this.#memory];
    const parts = this.#others.length * ATTEMPTS;
    const laidOut = await this.#pool.run("layOutFilter", { memory, frame, parts }, this.#options);
    const crcs = await this.#each("loadLines", this.#others, laidOut.scratches, (range) => ({
      ...laidOut,
      ...range,
      memory,
      frame,
    }));
    const loaded = this.#others.map((range, nth) => ({ ...range, ...(crcs[nth] as LoadedCrcs) }));
    return this.#next("planFilter", { ...laidOut, ...this.#sizes(), memory, frame, loaded });
  }

  /** Measures, and marks where the sums allow it: null is for `finishFilter`. */
  async #decide(planned: PlannedFilter): Promise<{ sums: DistanceSums[]; marked: MarkedLines[] | null }> {
    const { measuring, marking } = planned;
    const task = { ...planned, memory: this.#memory };
    const sums = await this.#each("measureLines", this.#measured, measuring, (range) => ({ ...task, ...range }));
    const bounds = boundsOf(planned.plan, sums);
    if (bounds === null) return { sums, marked: null };
    const marked = await this.#each("markLines", this.#others, marking, (range) => ({ ...task, ...range, bounds }));
    return { sums, marked };
  }

  #joined(sums: readonly DistanceSums[], marked: readonly MarkedLines[]): FilteredCloud {
    const { width, lines } = this.#frame.geometry;
    const bits = new Uint8Array(maskBytes(width, lines));
    const lineCounts = new Uint32Array(lines);
    for (const [nth, { firstLine }] of this.#others.entries()) {
      const part = marked[nth] as MarkedLines;
      bits.set(part.bits, (firstLine * width) / 8);
      lineCounts.set(part.lineCounts, firstLine);
    }
    const inliers = lineCounts.reduce((sum, count) => sum + count, 0);
    return { bits, lineCounts, inliers, points: total(sums, ({ points }) => points) };
  }

  /** What is to be laid out for parts. */
  #sizes(): PartSizes {
    return {
      measured: this.#measured.length * ATTEMPTS,
      marked: this.#others.length * ATTEMPTS,
      markedLines: Math.max(...this.#others.map(({ firstLine, endLine }) => endLine - firstLine)),
    };
  }

  /** The frame has been taken on: a full queue does not refuse what is left of it. */
  #next<N extends TaskName>(name: N, input: TaskInput<N>): Promise<TaskOutput<N>> {
    return this.#pool.run(name, input, { ...this.#options, isContinued: true });
  }

  /** All parts of a kind; what fails for good fails all, and drops those that wait. */
  async #each<N extends TaskName>(
    name: N,
    ranges: readonly LineRange[],
    { claims }: Scratches,
    inputOf: (range: LineRange) => TaskInput<N>,
  ): Promise<TaskOutput<N>[]> {
    const failed = new AbortController();
    const { signal } = this.#options;
    const signals = signal === undefined ? [failed.signal] : [failed.signal, signal];
    const runPart = (range: LineRange): Promise<TaskOutput<N>> => {
      // A signal of its own: there may be more parts than listeners that one takes without a warning.
      const options = { ...this.#options, isContinued: true, signal: AbortSignal.any(signals) };
      return this.#pool.run(name, inputOf(range), options);
    };
    try {
      const outputs = await Promise.all(ranges.map(runPart));
      this.isQuiet &&= Atomics.load(new Int32Array(claims), 0) === ranges.length;
      return outputs;
    } catch (error) {
      failed.abort();
      throw error;
    }
  }
}

/** Parts whose borders are divisible by 8, of about as many lines as the function says of those that are left. */
function lineRanges(lines: number, partLines: (rest: number) => number): LineRange[] {
  const ranges: LineRange[] = [];
  for (let firstLine = 0; firstLine < lines; ) {
    const endLine = Math.min(lines, firstLine + 8 * Math.ceil(partLines(lines - firstLine) / 8));
    ranges.push({ firstLine, endLine });
    firstLine = endLine;
  }
  return ranges;
}
