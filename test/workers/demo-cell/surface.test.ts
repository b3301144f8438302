import t from "tap";
import { createRandom } from "../../../core/random.js";
import { PART_KINDS } from "../../../workers/demo-cell/part/demo-parts.js";
import { formHeights, type Grid, gridOrigin, type PartForm } from "../../../workers/demo-cell/part/part-form.js";
import { captureSurface } from "../../../workers/demo-cell/part/surface.js";
import { batchPayload, type Capture, heightCodes, heightsMm } from "../../../workers/demo-cell/steps/capture.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
t.comment(`TEST_SEED=${seed}`);

const flat: PartForm = {
  widthMm: 100,
  lengthMm: 100,
  cornerMm: 1,
  thicknessMm: 4,
  bowXMm: 0,
  bowYMm: 0,
  tiltXMm: 0,
  tiltYMm: 0,
  roughnessMm: 0,
  markPitchMm: 0,
  features: [],
};
const grid: Grid = { width: 400, lines: 300, xPitchMm: 0.1, yPitchMm: 0.1 };
const quiet = { noiseMm: 0.001, triangulationRad: Math.PI / 4, flyingShare: 0, invalidShare: 0 };

function indexAt(at: Grid, xMm: number, yMm: number): number {
  const origin = gridOrigin(at);
  const row = Math.round((yMm - origin.yMm) / at.yPitchMm);
  return row * at.width + Math.round((xMm - origin.xMm) / at.xPitchMm);
}

t.test("every kind of part: 5 to 8 % invalid, about 0.6 % flying, encoded as its head does", async (t) => {
  for (const kind of Object.values(PART_KINDS)) {
    const random = createRandom(seed);
    const form = kind.draw(random);
    const ideal = formHeights(form, kind.grid);
    const capture = captureSurface(form, [], kind.grid, kind.sensor, kind.encoding, random);
    const zMm = heightsMm(capture);
    let invalid = 0;
    let flying = 0;
    for (let i = 0; i < zMm.length; i++) {
      if (Number.isNaN(zMm[i])) invalid++;
      else if (Math.abs((zMm[i] as number) - (ideal[i] as number)) > 15 * kind.sensor.noiseMm) flying++;
    }
    const invalidShare = invalid / zMm.length;
    t.ok(invalidShare >= 0.05 && invalidShare <= 0.08, `${kind.key}: ${invalidShare} invalid`);
    const flyingShare = flying / zMm.length;
    t.ok(flyingShare > 0.003 && flyingShare < 0.009, `${kind.key}: ${flyingShare} flying`);
    const codes = heightCodes(capture);
    const { invalid: invalidCodes } = capture.planes.height;
    if (kind.encoding === "u16") t.same(invalidCodes, [0]);
    else if (kind.encoding === "i32")
      t.ok(
        codes.every((code) => invalidCodes.includes(code) || code > -1e9),
        "codes at the bottom of the range",
      );
    if (kind.encoding === "f32") {
      t.same([capture.luminance, capture.planes.luminance], [undefined, undefined], "heights alone");
      continue;
    }
    t.ok((capture.luminance?.length ?? 0) === 2 * zMm.length && capture.planes.luminance?.bits === 10);
    const luminance = new Uint16Array((capture.luminance as Uint8Array).buffer);
    t.ok(luminance.every((value) => value < 1024));
  }
});

t.test("a boss throws its shadow away from the camera, as long as its height and the angle say", async (t) => {
  const boss = {
    kind: "block",
    xMm: 0,
    yMm: 0,
    widthMm: 10,
    lengthMm: 6,
    radiusMm: 0.1,
    heightMm: 2,
    chamferMm: 0.1,
  } as const;
  const capture = captureSurface({ ...flat, features: [boss] }, [], grid, quiet, "i32", createRandom(seed));
  const zMm = heightsMm(capture);
  const isValid = (xMm: number, yMm: number): boolean => !Number.isNaN(zMm[indexAt(grid, xMm, yMm)]);
  // The camera looks from greater y at 45 degrees: the shadow of 2 mm lies 2 mm deep before y = -3.
  t.ok(isValid(0, 0) && isValid(0, 4) && isValid(0, -5.5));
  t.notOk(isValid(0, -3.5) || isValid(2, -4.5));
  t.ok(Math.abs((zMm[indexAt(grid, 0, 0)] as number) - 2) < 0.01);
});

t.test("a batch is its height rows, then its luminance rows", async (t) => {
  const capture: Capture = {
    width: 2,
    lines: 3,
    planes: {
      height: { dtype: "u16", scale_mm: 1, offset_mm: 0, invalid: [] },
      luminance: { dtype: "u8", bits: 8 },
    },
    xPitchMm: 1,
    yPitchMm: 1,
    xOriginMm: 0,
    yOriginMm: 0,
    height: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
    luminance: Uint8Array.of(21, 22, 23, 24, 25, 26),
    metadata: {},
  };
  t.same([...batchPayload(capture, 1, 2)], [5, 6, 7, 8, 9, 10, 11, 12, 23, 24, 25, 26]);
});
