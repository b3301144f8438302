/**
 * The outlier filter alone, from heights that lie in the memory, with the tables of their grid, to the mask and the points of every line: by one thread
 * and by two. Together they go through the stages of the service's filter in parts, but that tiles of heights are bounded where there lines are loaded,
 * and no CRC is verified.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { loadFrame, type MadeFrame } from "../../../test/helpers/captures/made-frames.js";
import {
  type Filtered,
  type FilteredCloud,
  FilterStages,
  type FilterTeam,
  newFilterTeam,
  partsOf,
  withLineCounts,
} from "../../../workers/artefacts/filter/filter-parts.js";
import { type FilterStage, numbersOf, stageOf } from "../../../workers/artefacts/filter/filter-stages.js";
import type { Grid } from "../../../workers/artefacts/filter/grid-layout.js";
import { boundTiles, filterOutliers } from "../../../workers/artefacts/filter/outlier-filter.js";
import {
  joinMemory,
  type KernelMemory,
  newSharedMemory,
  type SharedMemory,
} from "../../../workers/artefacts/kernel-memory.js";
import { type Stages, takeTurn } from "../../../workers/artefacts/pool/team-work.js";

const MEMBERS = 2;

/** A frame's heights in a memory, and the kernels on it. */
interface LoadedGrid {
  shared: SharedMemory;
  memory: KernelMemory;
  grid: Grid;
  usedBytes: number;
  frame: MadeFrame;
}

/** What the other thread is told: to take its part in a team, or to filter the frame by itself. */
export type HelperTask = { kind: "member"; team: FilterTeam } | { kind: "apart" };
export interface HelperAnswer {
  /** Of a team, if this thread has its result. */
  end: TeamEnd | null;
  /** Of what it did by itself. */
  alone: Timed | null;
}

/** A mask, and when it was made, ms since 1970: in whichever thread. */
export interface TeamEnd {
  cloud: FilteredCloud;
  atMs: number;
}

/** Each gives the mask and how long it took to make it. */
export interface GridFilter {
  one(): Timed;
  /** This thread and another, which is told to begin by a message: within the clock. That the mask then goes from one to the other is not. */
  two(): Promise<Timed>;
  /** Both at the same time, each for itself, in memories of their own; `ms`: in which they would get one done between them, at the rates that they had. */
  apart(): Promise<Timed>;
  close(): Promise<void>;
}

export interface Timed {
  bits: Uint8Array;
  ms: number;
}

export async function startGridFilter(frame: MadeFrame): Promise<GridFilter> {
  const loaded = await load(frame);
  const worker = new Worker(new URL("./grid-filter-thread.js", import.meta.url), { workerData: frame });
  // `once` rejects when the thread fails.
  await once(worker, "message");
  const tell = async (task: HelperTask): Promise<HelperAnswer> => {
    const answered = once(worker, "message");
    worker.postMessage(task);
    return (await answered)[0] as HelperAnswer;
  };
  return {
    one: () => filterAlone(loaded),
    async two() {
      const start = nowMs();
      const team = teamOn(loaded);
      const told = tell({ kind: "member", team });
      const ends = [await takeTurns({ ...team, member: 0 }), (await told).end];
      const end = ends.find((some) => some !== null);
      if (end === undefined || end === null) throw new Error("no thread has the result");
      return { bits: end.cloud.bits, ms: end.atMs - start };
    },
    async apart() {
      const told = tell({ kind: "apart" });
      const own = filterAlone(loaded);
      const { alone } = await told;
      if (alone === null || !Buffer.from(alone.bits).equals(own.bits)) throw new Error("the threads' masks differ");
      return { bits: own.bits, ms: 1 / (1 / own.ms + 1 / alone.ms) };
    },
    async close() {
      await worker.terminate();
    },
  };
}

export async function load(frame: MadeFrame): Promise<LoadedGrid> {
  const shared = newSharedMemory();
  const memory = await joinMemory(shared);
  const grid = await loadFrame(memory, frame);
  return { shared, memory, grid, usedBytes: memory.usedBytes, frame };
}

export function filterAlone({ memory, grid, usedBytes, frame }: LoadedGrid): Timed {
  const start = nowMs();
  memory.continueFrom(usedBytes);
  const { bits } = withLineCounts(filterOutliers(memory, grid), frame.geometry);
  return { bits, ms: nowMs() - start };
}

/** All turns of one member. */
export async function takeTurns(team: FilterTeam & { member: number }): Promise<TeamEnd | null> {
  const memory = await joinMemory(team.memory);
  const stages = new GridStages(memory, team);
  for (let turn = 1; ; turn++) {
    const end = await takeTurn(team.team, { member: team.member, turn }, stages);
    if (end.ended === "more") continue;
    return end.ended === "result" ? { cloud: end.result, atMs: nowMs() } : null;
  }
}

/** The same in all threads. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

function teamOn({ shared, memory, grid, usedBytes, frame }: LoadedGrid): FilterTeam {
  memory.continueFrom(usedBytes);
  const { planes, geometry } = frame;
  const source = { path: "", frameId: "", planes, geometry, batches: [] };
  const memoryBytes = memory.buffer.byteLength;
  return newFilterTeam(shared, source, MEMBERS, {
    kind: "load",
    grid,
    scratches: { at: 0, bytes: 0 },
    usedBytes,
    memoryBytes,
  });
}

class GridStages implements Stages<FilterStage, Filtered> {
  readonly #memory: KernelMemory;
  readonly #stages: FilterStages;
  readonly #loaded: ReturnType<typeof partsOf>["loaded"];

  constructor(memory: KernelMemory, team: FilterTeam & { member: number }) {
    this.#memory = memory;
    this.#stages = new FilterStages(nodeFileSystem, team, memory);
    this.#loaded = partsOf(team.frame.geometry, team.members).loaded;
  }

  readonly numbersOf = numbersOf;
  readonly stageOf = stageOf;

  pieces(stage: FilterStage): number {
    return this.#stages.pieces(stage);
  }

  async run(stage: FilterStage, piece: number): Promise<void> {
    const isFirst = piece === 0;
    if (stage.kind === "load") {
      const part = this.#loaded[piece - 1];
      // The first piece would be the tables, which the grid has.
      if (part !== undefined) boundTiles(this.#memory, stage.grid, part.firstLine, part.endLine);
      return;
    }
    // Would verify.
    if (stage.kind === "measure" && isFirst) return;
    return this.#stages.run(stage, piece);
  }

  next(stage: FilterStage): { stage: FilterStage } | { alone: () => Filtered } {
    return this.#stages.next(stage);
  }
}
