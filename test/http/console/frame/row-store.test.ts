import t from "tap";
import { npyHeader } from "../../../../core/capture/npy-header.js";
import type { FrameGrid } from "../../../../http/console/frame/heights/frame-grid.js";
import { DifferenceField, FrameField, heightAt } from "../../../../http/console/frame/heights/height-field.js";
import { readNpyHeader } from "../../../../http/console/frame/heights/npy.js";
import { type Overview, overviewHeight, readOverview } from "../../../../http/console/frame/heights/overview.js";
import { RowStore } from "../../../../http/console/frame/heights/row-store.js";
import { readProfile } from "../../../../http/console/frame/measure/cut-line.js";

const LINES = 25;
const WIDTH = 10;
const GRID: FrameGrid = { width: WIDTH, lines: LINES, xPitchMm: 0.5, yPitchMm: 0.2, xOriginMm: -1, yOriginMm: 3 };
const valueAt = (line: number, column: number): number => 1000 * line + column;
const signal = new AbortController().signal;

/** A file in memory, with the ranges that were asked for. */
function stored(offset = 0): { file: Buffer; rows: RowStore; ranges: [number, number][] } {
  const values = Uint16Array.from(
    { length: LINES * WIDTH },
    (_, at) => valueAt(Math.floor(at / WIDTH), at % WIDTH) + offset,
  );
  const file = Buffer.concat([npyHeader("u16", LINES, WIDTH), Buffer.from(values.buffer)]);
  const ranges: [number, number][] = [];
  const read = async (first: number, end: number): Promise<Uint8Array> => {
    ranges.push([first, end]);
    return file.subarray(first, end);
  };
  // Blocks of four lines, of which three stay.
  const rows = new RowStore(readNpyHeader(file), read, { blockBytes: 4 * WIDTH * 2, cacheBytes: 3 * 4 * WIDTH * 2 });
  return { file, rows, ranges };
}

/** Every third value of every third line of `stored`. */
function everyThird(toMm: (raw: number) => number): Overview {
  const [width, lines] = [4, 9];
  const zMm = Float32Array.from({ length: width * lines }, (_, at) =>
    toMm(valueAt(3 * Math.floor(at / width), 3 * (at % width))),
  );
  return { zMm, width, lines, stride: 3, firstColumn: 0, firstLine: 0 };
}

t.test("lines that are looked at are read once, by ranges of whole blocks", async (t) => {
  const { rows, ranges } = stored();
  let loads = 0;
  rows.onLoad = () => loads++;
  t.equal(rows.line(5), undefined);
  await rows.load(3, 6, signal);
  t.same(ranges, [
    [128, 208],
    [208, 288],
  ]);
  t.same(
    [...(rows.line(5) ?? [])],
    Array.from({ length: WIDTH }, (_, column) => valueAt(5, column)),
  );
  await rows.load(0, 8, signal);
  t.equal(ranges.length, 2, "nothing is read again");
  await rows.load(24, 99, signal);
  t.same(ranges[2], [128 + 24 * 20, 128 + 25 * 20], "the last block ends with the file");
  t.equal(rows.line(24)?.length, WIDTH);
  t.equal(loads, 3);
});

t.test("the cache is bounded: what was looked at longest ago goes first", async (t) => {
  const { rows } = stored();
  t.equal(rows.linesInMemory, 8);
  await rows.load(0, 12, signal);
  rows.line(0);
  await rows.load(12, 16, signal);
  t.same(
    [0, 4, 8, 12].map((line) => rows.line(line) !== undefined),
    [true, false, true, true],
  );
});

t.test("a failure of one range is the failure of the load", async (t) => {
  const { file } = stored();
  const rows = new RowStore(readNpyHeader(file), async () => {
    throw new Error("broken");
  });
  await t.rejects(rows.load(0, 3, signal), { message: "broken" });
  t.equal(rows.line(0), undefined);
});

t.test("an overview has every k-th point; its own headers say which", async (t) => {
  const made = everyThird((raw) => raw / 2);
  t.equal(overviewHeight(made, 9, 24), valueAt(24, 9) / 2);
  t.equal(overviewHeight(made, 4, 13), valueAt(12, 3) / 2, "the nearest");

  const values = Float32Array.of(1, 2, 3, Number.NaN);
  const bytes = Buffer.concat([npyHeader("f32", 2, 2), Buffer.from(values.buffer)]);
  const headers = new Headers({ "X-Stride": "6", "X-X-Origin-Mm": "0", "X-Y-Origin-Mm": "3.4" });
  const read = readOverview(bytes, headers, GRID);
  t.match(read, { stride: 6, firstColumn: 2, firstLine: 2 });
  t.equal(overviewHeight(read, 2, 8), 3);
  t.throws(() => readOverview(bytes, new Headers(), GRID), /does not fit the frame/);
  t.throws(() => readOverview(bytes, new Headers({ "X-Stride": "10" }), GRID), /does not fit the frame/);
});

t.test("a difference is the other frame minus this one, in the overview and in full lines", async (t) => {
  const field = (offset: number) => {
    const { rows } = stored(offset);
    const toMm = (raw: number) => (raw === 1007 ? Number.NaN : raw / 4);
    return new FrameField(
      GRID,
      everyThird((raw) => toMm(raw + offset)),
      rows,
      toMm,
    );
  };
  const difference = new DifferenceField(field(0), field(6));
  t.equal(difference.overview.zMm[5], 1.5);
  await difference.load(1, 2, signal);
  t.same(
    [0, 1, 7].map((column) => heightAt(difference, column, 1).zMm),
    [1.5, Number.NaN, Number.NaN],
  );
  t.same(heightAt(difference, 3, 9), { zMm: 1.5, isExact: false }, "of the overview");
});

t.test("a profile has every height, whatever the cache held before and whoever reads at the same time", async (t) => {
  const field = () => {
    const { rows } = stored();
    return { rows, field: new FrameField(GRID, everyThird(Number), rows, Number) };
  };
  const cut = { from: { column: 2, line: 0 }, to: { column: 2, line: 7 } };
  const expected = Array.from({ length: 8 }, (_, line) => valueAt(line, 2));

  const before = field();
  // The block of lines 0 to 3 is now the one that was used longest ago.
  for (const first of [0, 12, 16]) await before.rows.load(first, first + 4, signal);
  t.same([...(await readProfile(before.field, cut, signal)).zMm], expected, "a part of it is in memory already");
  t.ok(before.rows.line(0), "and stays there");

  const during = field();
  during.rows.onLoad = () => {
    during.rows.onLoad = () => {};
    void during.rows.load(8, 20, signal);
  };
  t.same([...(await readProfile(during.field, cut, signal)).zMm], expected, "a map reads other lines meanwhile");
  const difference = new DifferenceField(during.field, field().field);
  t.same([...(await readProfile(difference, cut, signal)).zMm], [0, 0, 0, 0, 0, 0, 0, 0], "so has a difference");
});
