import t from "tap";
import { BATCH_BYTES, wholeFrame } from "../../bench/load/frames/capture-sender.js";

t.test("a whole frame as it is sent: batches that differ, of the heights that it says, luminance of 10 bits", (t) => {
  const { batches, heights } = wholeFrame(3, 192);
  t.equal(batches.length, 3);
  t.ok(batches.every(({ length }) => length === BATCH_BYTES));
  t.equal(new Set(batches.map((batch) => Buffer.from(batch).toString("latin1"))).size, 3);
  t.ok(Buffer.concat(batches.map((batch) => batch.subarray(0, BATCH_BYTES / 2))).equals(heights));
  const planes = batches.map((batch) => new Uint16Array(Uint8Array.from(batch).buffer));
  const codes = planes.flatMap((plane) => [...plane.subarray(0, plane.length / 2)]);
  // Beside every step lies a shadow of 8 columns; a few points are not measured, or far off.
  const invalid = codes.filter((code) => code === 0).length / codes.length;
  t.ok(invalid > 0.04 && invalid < 0.06, `${invalid} is invalid`);
  const luminance = planes.flatMap((plane) => [...plane.subarray(plane.length / 2)]);
  t.ok(luminance.every((value) => value < 1024) && luminance.some((value) => value > 255));
  t.end();
});
