import t from "tap";
import { type FilterStage, numbersOf, stageOf } from "../../../../workers/artefacts/filter/filter-stages.js";

const grid = { address: 1, width: 2, lines: 3, zs: 4, stride: 5, xs: 6, ys: 7, squares: 8, squaresPitch: 9 };
const inMemory = { scratches: { at: 10, bytes: 11 }, usedBytes: 2 ** 31, memoryBytes: 2 ** 31 + 1 };
const planned = (way: "lanes" | "near" | "exact" | "exactLanes" | "tree", isAgain: boolean) => ({
  plan: { grid, way, distances: 14 },
  ...inMemory,
  mask: 15,
  lineCounts: 16,
  isAgain,
});

t.test("threads tell each other of a stage by numbers, all of it and exactly", async (t) => {
  const stages: FilterStage[] = [
    { kind: "layOut" },
    { kind: "load", grid, ...inMemory },
    { kind: "measure", ...planned("lanes", false) },
    { kind: "measure", ...planned("tree", true) },
    {
      kind: "mark",
      ...planned("near", false),
      bounds: { low: 1 / 3, high: Number.POSITIVE_INFINITY, error: 2 ** -24 },
      points: 17,
    },
    { kind: "mark", ...planned("exact", true), bounds: { low: Number.NaN, high: 5e-324, error: 0 }, points: 0 },
    { kind: "mark", ...planned("exactLanes", true), bounds: { low: -0.1, high: 0.1, error: 0 }, points: 2 ** 31 },
  ];
  for (const stage of stages) {
    const numbers = new Float64Array(32);
    numbers.set(numbersOf(stage));
    t.strictSame(stageOf(numbers), stage, stage.kind);
  }
});

t.test("numbers that are no stage are refused", async (t) => {
  t.throws(() => stageOf(new Float64Array(32).fill(-7)), /-7 is no stage/);
});
