/** Tables that cannot grow for a while: nothing of them is lost. */
import t from "tap";
import { allocated, fillReserve, isReserveGivenUp } from "../../../storage/columns/memory-reserve.js";
import { TextTable } from "../../../storage/columns/text-table.js";
import { TypedColumn } from "../../../storage/columns/typed-column.js";
import { outOfMemory, ShortMemory } from "../../helpers/short-memory.js";

/** What finds no memory so many times. */
function makeAfter(failures: number): () => string {
  let left = failures;
  return () => {
    if (left-- > 0) throw outOfMemory();
    return "made";
  };
}

t.test("the reserve is given up for what finds no memory, once, until it was filled again", async (t) => {
  t.throws(() => allocated(makeAfter(1)), outOfMemory(), "there is none yet");
  const memory = new ShortMemory(t);
  fillReserve();
  t.equal(allocated(makeAfter(0)), "made");
  t.equal(isReserveGivenUp(), false);
  t.equal(allocated(makeAfter(1)), "made");
  t.equal(isReserveGivenUp(), true);
  t.throws(() => allocated(makeAfter(1)), outOfMemory());
  memory.leastRefusedBytes = 1_000_000;
  t.throws(() => fillReserve(), outOfMemory());
  t.equal(isReserveGivenUp(), true);
  memory.leastRefusedBytes = Number.POSITIVE_INFINITY;
  fillReserve();
  t.equal(isReserveGivenUp(), false);
  t.throws(
    () => allocated(() => TypedColumn.prototype.get.call(null, 1)),
    TypeError,
    "other errors are no lack of memory",
  );
  t.equal(isReserveGivenUp(), false);
});

t.test("a column that finds no memory for its next chunk stays as it was", async (t) => {
  const memory = new ShortMemory(t);
  const column = new TypedColumn(Uint32Array, 4);
  for (let row = 0; row < 8; row++) column.push(row);
  Object.assign(memory, { leastRefusedBytes: 16, refusesNext: 2 });
  fillReserve();
  memory.refusals = 0;
  t.throws(() => column.push(8), outOfMemory());
  t.equal(memory.refusals, 2, "the reserve was given up for it");
  t.equal(column.length, 8);
  column.push(8);
  t.same([column.length, column.get(7), column.get(8)], [9, 7, 8]);
});

t.test("a hash table that cannot grow becomes fuller, finds all, and grows when it can", async (t) => {
  const memory = new ShortMemory(t);
  const table = new TextTable();
  // 48 of 64 slots are the most before it grows.
  for (let at = 0; at < 48; at++) table.findOrAdd(`text ${at}`);
  memory.leastRefusedBytes = 128;
  for (let at = 48; at < 63; at++) t.equal(table.findOrAdd(`text ${at}`), at);
  t.ok(memory.refusals >= 15, "it tries each time");
  t.equal(table.find("unknown"), -1, "a search ends");
  t.throws(() => table.findOrAdd("one too many"), outOfMemory());
  memory.leastRefusedBytes = Number.POSITIVE_INFINITY;
  const texts = Array.from({ length: 1_000 }, (_, at) => `text ${at}`);
  // The one that was refused has its number in the columns, and no slot.
  for (const text of texts) table.findOrAdd(text);
  t.equal(new Set(texts.map((text) => table.find(text))).size, 1_000);
});
