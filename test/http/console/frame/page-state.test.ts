import t from "tap";
import { frameQuery, readFrameState } from "../../../../http/console/frame/frame-state.js";
import { diverging, paletteStep, viridis } from "../../../../http/console/frame/measure/colour-map.js";
import {
  decimalsFor,
  histogram,
  percentileRange,
  roundTicks,
  sortedHeights,
  symmetricRange,
} from "../../../../http/console/frame/measure/height-range.js";

const hex = (colour: number | undefined): string =>
  [0, 8, 16].map((shift) => (((colour ?? 0) >> shift) & 255).toString(16).padStart(2, "0")).join("");

t.test("the colours are viridis, from its first to its last", async (t) => {
  const table: [step: number, colour: string][] = [
    [0, "440154"],
    [64, "3b528b"],
    [128, "21918c"],
    [192, "5ec962"],
    [255, "fde725"],
  ];
  for (const [step, expected] of table) {
    t.equal(hex(viridis[step]), expected, `step ${step}`);
  }
  t.equal(hex(diverging[0]), "2166ac");
  t.equal(hex(diverging[255]), "b2182b");
  t.same(
    [-9, 0, 0.5, 1, 9].map((z) => paletteStep(z, 0, 1)),
    [0, 0, 128, 255, 255],
  );
  t.same(
    [1, 2, 3].map((z) => paletteStep(z, 2, 2)),
    [0, 255, 255],
  );
});

t.test("the colours reach from percentile to percentile of what was measured", async (t) => {
  const values = Float32Array.from({ length: 202 }, (_, at) => (at % 2 === 0 ? at / 2 : Number.NaN));
  const sorted = sortedHeights(values);
  t.equal(sorted.length, 101);
  t.same(percentileRange(sorted, 1), { low: 1, high: 99 });
  t.same(percentileRange(sorted, 0.5), { low: 0.5, high: 99.5 });
  t.equal(percentileRange(sortedHeights(Float32Array.of(Number.NaN)), 1), undefined, "nothing was measured");
  t.same(symmetricRange(Float32Array.of(-3, 0, 1), 0), { low: -3, high: 3 });
  t.same(histogram(sorted, { low: 0, high: 100 }, 4), [25, 25, 25, 26]);
  t.same(roundTicks({ low: 0.93, high: 3.1 }, 5), [1, 1.5, 2, 2.5, 3]);
  t.same(
    [
      { low: 0, high: 10 },
      { low: 0, high: 0.01 },
      { low: 2, high: 2 },
    ].map(decimalsFor),
    [3, 5, 3],
  );
});

t.test("the address holds what the page shows, and nothing that is as usual", async (t) => {
  t.equal(String(frameQuery(readFrameState(new URLSearchParams()))), "");
  const text =
    "view=cloud&with=019b&range=-1.5,2&at=10.5,20,3&cut=1,2,30.25,40&cursors=3,17&defect=2&points=raw&colour=removed&size=4&stretch=5&camera=1,2,3,4,5,6&picks=7,8";
  t.equal(decodeURIComponent(String(frameQuery(readFrameState(new URLSearchParams(text))))), text);
  const places = "view=cloud&cursors=299998,299999&picks=12345678,123456789";
  t.equal(
    decodeURIComponent(String(frameQuery(readFrameState(new URLSearchParams(places))))),
    places,
    "none is rounded",
  );
  const nonsense =
    "view=x&range=1&at=1,2,0&cut=a,b,c,d&cursors=-1,2&defect=1.5&points=&size=900&stretch=,&camera=1&picks=1,2,3";
  t.equal(readFrameState(new URLSearchParams("range=2,-1")).range, undefined, "a range goes upwards");
  t.equal(String(frameQuery(readFrameState(new URLSearchParams(nonsense)))), "size=8");
});
