/**
 * The filter over several threads, which take turns at it as they are free (filter-parts.ts, team-work.ts). A thread that is busy with something else comes
 * in later, or not at all; none waits for one that has not begun. A thread that is lost at it has the whole given up: one task does it then.
 */

import type { FrameSource } from "../frame/frame-source.js";
import { hasWasmKernels, newSharedMemory, type SharedMemory } from "../kernel-memory.js";
import type { ArtefactPool, RunOptions } from "../pool/artefact-pool.js";
import { MemoryNeed } from "../pool/memory-need.js";
import { endWork } from "../pool/team-work.js";
import { type FilteredCloud, type FilterPartTasks, type FilterTeam, newFilterTeam } from "./filter-parts.js";

/** With fewer positions one thread is done as soon: to wake another takes some hundred microseconds, and what one does alone is not divided. */
const LEAST_POSITIONS = 200_000;

/** A reason of its own: for an abort without one an error is made, with its stack. */
const OVER = new Error("no other turn is needed");

type Pool = Pick<ArtefactPool, "run" | "threads">;
type Turn = FilterPartTasks["filterTogether"]["output"];
type Result = Extract<Turn, { ended: "result" }>;

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
    const result = await this.#filterTogether(newFilterTeam(memory, frame, this.#pool.threads), options);
    // A thread that was lost may be at the memory still: nobody else gets it.
    if (result === null) return this.#pool.run("filter", frame, { ...options, isContinued: true });
    const { bits, lineCounts, points, inliers, usedBytes } = result;
    this.#need.note(usedBytes);
    const isKept = this.#need.isKept(memory.buffer.byteLength) && this.#memories.length < this.#pool.threads;
    if (isKept) this.#memories.push(memory);
    return { bits, lineCounts, points, inliers };
  }

  /** Null: a thread was lost at it. */
  async #filterTogether(filter: FilterTeam, options: RunOptions): Promise<Result | null> {
    /** No turn is wanted any more. */
    const over = new AbortController();
    const signal = options.signal === undefined ? over.signal : AbortSignal.any([over.signal, options.signal]);
    let result: Result | null = null;
    const takeTurns = async (member: number): Promise<void> => {
      for (let turn = 1; ; turn++) {
        const isContinued = options.isContinued === true || member > 0 || turn > 1;
        const end = await this.#pool.run(
          "filterTogether",
          { ...filter, member, turn },
          { ...options, isContinued, signal },
        );
        if (end.ended === "more") continue;
        if (end.ended === "result") result = end;
        if (end.ended !== "over") over.abort(OVER);
        return;
      }
    };
    const failures: unknown[] = [];
    const members = Array.from({ length: filter.members }, (_, member) =>
      takeTurns(member).catch((error) => {
        // A task that is dropped because the others have ended is no failure.
        if (over.signal.aborted) return;
        failures.push(error);
        endWork(filter.team);
        over.abort(OVER);
      }),
    );
    await Promise.all(members);
    if (failures.length > 0) throw failures[0];
    return result;
  }
}
