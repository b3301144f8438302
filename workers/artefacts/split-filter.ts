/**
 * The filter over several threads. A task loads the frame into a memory that all share, tasks for some lines each measure distances there, and
 * the last sums them up in the order of one thread and decides: the mask has the same bits however many there were. No task waits for another; what
 * holds them together is here, outside of the threads, so that a pool of whatever size gets through it. Lines go to threads as these are idle.
 */
import type { ArtefactPool, RunOptions } from "./artefact-pool.js";
import type { FilteredCloud } from "./artefact-tasks.js";
import type { FrameSource } from "./frame-source.js";
import { hasWasmKernels, newSharedMemory, type SharedMemory } from "./kernel-memory.js";

/** With fewer positions it takes a thread some milliseconds, and more threads help little. */
const LEAST_POSITIONS = 100_000;
/** So many shares of lines for every thread: some are harder than others. */
const SHARES_PER_THREAD = 4;
const MOST_SHARES = 64;
/** A share goes again once (artefact-pool.ts). */
const ATTEMPTS = 2;
/** A memory that has grown beyond this for one frame is not kept for the next. */
const KEPT_MEMORY_BYTES = 256 * 1024 * 1024;

export class SplitFilter {
  readonly #pool: Pick<ArtefactPool, "run" | "threads">;
  readonly #leastPositions: number;
  /** Memories that no filter uses: as many as there were filters at a time at most, and no more than threads. */
  readonly #memories: SharedMemory[] = [];

  /** @param leastPositions for tests: another size from which on a frame is split */
  constructor(pool: Pick<ArtefactPool, "run" | "threads">, leastPositions = LEAST_POSITIONS) {
    this.#pool = pool;
    this.#leastPositions = leastPositions;
  }

  /** As the task `filter`, and by it where there is nothing to be split, or the threads have no WebAssembly. @throws as `ArtefactPool.run` */
  async run(frame: FrameSource, options: RunOptions): Promise<FilteredCloud> {
    const { width, lines } = frame.geometry;
    const isSplit = this.#pool.threads > 1 && lines > 1 && width * lines >= this.#leastPositions;
    if (!isSplit || !(await hasWasmKernels())) return this.#pool.run("filter", frame, options);
    const memory = this.#memories.pop() ?? newSharedMemory();
    const shares = Math.min(lines, MOST_SHARES, this.#pool.threads * SHARES_PER_THREAD);
    const planned = await this.#pool.run("planFilter", { frame, memory, parts: shares * ATTEMPTS }, options);
    const claims = new SharedArrayBuffer(4);
    const measured = new AbortController();
    const signals = options.signal === undefined ? [measured.signal] : [measured.signal, options.signal];
    // The frame has been taken on: a full queue does not refuse parts of it.
    const partOptions = { ...options, isContinued: true };
    const measure = async (share: number): Promise<void> => {
      const firstLine = Math.floor((share * lines) / shares);
      const endLine = Math.floor(((share + 1) * lines) / shares);
      const task = { ...planned, memory, claims, firstLine, endLine };
      await this.#pool.run("measureLines", task, { ...partOptions, signal: AbortSignal.any(signals) });
    };
    try {
      await Promise.all(Array.from({ length: shares }, (_, share) => measure(share)));
    } catch (error) {
      measured.abort();
      throw error;
    }
    const cloud = await this.#pool.run("finishFilter", { ...planned, memory }, partOptions);
    // A thread that was lost may be at it still.
    const isQuiet = Atomics.load(new Int32Array(claims), 0) === shares;
    const isSmall = planned.usedBytes <= KEPT_MEMORY_BYTES;
    if (isQuiet && isSmall && this.#memories.length < this.#pool.threads) this.#memories.push(memory);
    return cloud;
  }
}
