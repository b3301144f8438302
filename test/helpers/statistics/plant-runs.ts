import type { Test } from "tap";
import type { Random } from "../../../core/random.js";
import { FIRST_US, type MeasuredRun, MeasuredStore, randomRun } from "./measured-store.js";

/** A run of a cell of a plant: each cell counts revisions for itself. */
export interface PlantRun extends MeasuredRun {
  /** From 0. */
  cell: number;
  createdAtUs: number;
  completedAtUs: number;
}

interface Cell {
  /** How far its clock is ahead. */
  skewUs: number;
  lastUs: number;
  revisions: Map<string, number>;
}

/**
 * Runs of several cells that inspect the same parts, in the order in which a hub gets them: each cell's own in their order, but the last
 * cell ships those of the middle late. Some end in the same microsecond.
 *
 * @param oneAfterAnother the cells ship one after the other all that they have
 */
export function plantRuns(random: Random, count: number, { cells = 4, oneAfterAnother = false } = {}): PlantRun[] {
  const states: Cell[] = Array.from({ length: cells }, (_, at) => ({
    skewUs: at === 0 ? 0 : random.integer(-90_000_000, 90_000_000),
    lastUs: 0,
    revisions: new Map(),
  }));
  const shipped: PlantRun[] = [];
  const waiting: PlantRun[] = [];
  let timeUs = FIRST_US + 100_000_000;
  for (let nth = 0; nth < count; nth++) {
    timeUs += random.integer(0, 20_000_000);
    const cell = random.integer(0, cells - 1);
    const state = states[cell] as Cell;
    const last = shipped.at(-1)?.completedAtUs ?? 0;
    const isTie = random.chance(0.1) && last > state.lastUs;
    const completedAtUs = isTie ? last : Math.max(timeUs + state.skewUs, state.lastUs + 1);
    state.lastUs = completedAtUs;
    const serialNumber = random.chance(0.15) ? null : `SN ${random.integer(0, count >> 2)}`;
    const revision = serialNumber === null ? 1 : (state.revisions.get(serialNumber) ?? 0) + 1;
    if (serialNumber !== null) state.revisions.set(serialNumber, revision);
    // One that a producer has left ends long after its part was inspected again.
    const createdAtUs = completedAtUs - (random.chance(0.1) ? 400_000_000 : random.integer(10_000_000, 30_000_000));
    const run = { ...randomRun(random), cell, serialNumber, revision, createdAtUs, completedAtUs };
    const isOffline = cell === cells - 1 && nth > count * 0.3 && nth < count * 0.6;
    if (isOffline) waiting.push(run);
    else if (waiting.length > 0 && cell === cells - 1) shipped.push(...waiting.splice(0), run);
    else shipped.push(run);
  }
  shipped.push(...waiting);
  return oneAfterAnother ? states.flatMap((_, at) => shipped.filter(({ cell }) => cell === at)) : shipped;
}

/** A hub's log of such runs. */
export async function plantStore(t: Test, random: Random, count: number, options = {}): Promise<MeasuredStore> {
  const store = await MeasuredStore.createFor(t);
  for (const run of plantRuns(random, count, options)) await store.add(run);
  return store;
}
