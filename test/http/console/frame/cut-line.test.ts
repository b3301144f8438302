import t from "tap";
import { createRandom } from "../../../../core/random.js";
import type { FrameGrid } from "../../../../http/console/frame/heights/frame-grid.js";
import type { HeightField } from "../../../../http/console/frame/heights/height-field.js";
import {
  type CutLine,
  type Profile,
  profileCsv,
  readProfile,
  samplePlaces,
  stepBetween,
} from "../../../../http/console/frame/measure/cut-line.js";
import { pythonWith, runPython, skipWithout } from "../../../helpers/captures/python-checker.js";

const numpy = pythonWith("numpy");
const GRID: FrameGrid = { width: 80, lines: 60, xPitchMm: 0.1, yPitchMm: 0.25, xOriginMm: -2, yOriginMm: 5 };
const cut = (c0: number, l0: number, c1: number, l1: number): CutLine => ({
  from: { column: c0, line: l0 },
  to: { column: c1, line: l1 },
});
const zAt = (column: number, line: number): number => ((column * 31 + line * 17) % 13) / 4;

/** Heights by a formula, of which `linesInMemory` lines are there at a time. */
function formulaField(linesInMemory: number): HeightField & { loads: [number, number][] } {
  const loads: [number, number][] = [];
  let [first, end] = [0, 0];
  return {
    grid: GRID,
    overview: { zMm: new Float32Array(1), width: 1, lines: 1, stride: 80, firstColumn: 0, firstLine: 0 },
    linesInMemory,
    loads,
    line: (line) => (line >= first && line < end ? { zMm: (column) => zAt(column, line) } : undefined),
    async load(from, to) {
      loads.push([from, to]);
      [first, end] = [from, to];
      return (line) => {
        if (line < from || line >= to) throw new Error(`line ${line} was not asked for`);
        return { zMm: (column) => zAt(column, line) };
      };
    },
  };
}

const PLACES = `
import json, sys, numpy as np
length = lambda x, y: np.sqrt(x * x + y * y)
for c0, l0, c1, l1 in json.loads(sys.argv[1]):
    n = int(np.ceil(length(c1 - c0, l1 - l0))) + 1
    columns = np.floor(np.linspace(c0, c1, n) + 0.5).astype(int)
    lines = np.floor(np.linspace(l0, l1, n) + 0.5).astype(int)
    distance_mm = np.linspace(0, length((c1 - c0) * 0.1, (l1 - l0) * 0.25), n)
    print(json.dumps([columns.tolist(), lines.tolist(), distance_mm.tolist()]))
`;

t.test(
  "the samples of a cut line are those of numpy, bit for bit",
  { skip: skipWithout(numpy, "numpy") },
  async (t) => {
    const random = createRandom(32);
    const within = (count: number) => Number((random.next() * (count - 1)).toFixed(4));
    const drawn = Array.from({ length: 200 }, () => [within(80), within(60), within(80), within(60)] as const);
    const corners = [
      [0, 0, 79, 59],
      [79, 59, 0, 0],
      [3, 4, 3, 4],
      [0, 7, 79, 7],
      [5.5, 0.5, 5.5, 58.5],
    ] as const;
    const all = [...corners, ...drawn];
    const lines = runPython(numpy as string, PLACES, JSON.stringify(all))
      .trim()
      .split("\n");
    t.equal(lines.length, all.length);
    let different = 0;
    for (const [at, text] of lines.entries()) {
      const [c0, l0, c1, l1] = all[at] as (typeof all)[number];
      const { columns, lines: ours, distanceMm } = samplePlaces(cut(c0, l0, c1, l1), GRID);
      if (JSON.stringify([[...columns], [...ours], [...distanceMm]]) !== JSON.stringify(JSON.parse(text))) different++;
    }
    t.equal(different, 0, `of ${all.length} lines, seed 32`);
  },
);

t.test("a profile takes the height of each sample's point, however few lines are in memory", async (t) => {
  for (const linesInMemory of [60, 7, 1]) {
    const field = formulaField(linesInMemory);
    const profile = await readProfile(field, cut(4.2, 50.7, 71.9, 3), new AbortController().signal);
    t.same(
      [...profile.zMm],
      [...profile.columns].map((column, at) => zAt(column, profile.lines[at] as number)),
    );
    t.ok(field.loads.every(([first, end]) => end - first <= linesInMemory));
  }
});

const PROFILE: Profile = {
  distanceMm: Float64Array.of(0, 3, 6),
  columns: Int32Array.of(0, 10, 20),
  lines: Int32Array.of(4, 4, 4),
  zMm: Float64Array.of(1, 5, Number.NaN),
};

t.test("two cursors measure distance, step height and angle of the points that their samples take", async (t) => {
  const step = stepBetween(PROFILE, GRID, 0, 1);
  t.match(step, { distanceMm: 1, heightMm: 4 });
  t.equal(step.angleDegrees.toFixed(3), "75.964");
  t.equal(stepBetween(PROFILE, GRID, 1, 0).heightMm, -4);
  t.same(stepBetween(PROFILE, GRID, 0, 2), { distanceMm: 2, heightMm: Number.NaN, angleDegrees: Number.NaN });
  const slanted = { ...PROFILE, lines: Int32Array.of(4, 6, 8) };
  t.equal(stepBetween(slanted, GRID, 0, 1).distanceMm, Math.sqrt(1 + (2 * GRID.yPitchMm) ** 2));
});

t.test("the CSV has all samples; one without measurement has an empty z", async (t) => {
  t.equal(
    profileCsv(PROFILE, GRID),
    "distance_mm,x_mm,y_mm,z_mm,column,line\n0,-2,6,1,0,4\n3,-1,6,5,10,4\n6,0,6,,20,4\n",
  );
});
