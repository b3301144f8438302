import t from "tap";
import { createRandom } from "../../../core/random.js";
import { PART_KINDS } from "../../../workers/demo-cell/part/demo-parts.js";
import { madeParts } from "../../../workers/demo-cell/part/made-parts.js";
import { LENGTH_TOLERANCE_MM, lengthInFrame } from "../../helpers/process/demo-lengths.js";

const seed = Number(process.env.TEST_SEED ?? 20261128);
t.comment(`TEST_SEED=${seed}`);

for (const kind of Object.values(PART_KINDS)) {
  t.test(`${kind.key}: each length is what the frame of its inspection shows`, async (t) => {
    const random = createRandom(seed);
    let compared = 0;
    for (const outcome of ["failed", "passed", "failed"] as const) {
      const inspection = await madeParts(kind).inspect(random, { outcome });
      const { capture, checks, defects } = inspection as NonNullable<typeof inspection>;
      const places = defects("0").filter(({ type }) => type === "out of tolerance");
      for (const { name, value, status, message, delta, metadata } of checks) {
        const shown = lengthInFrame(capture, name);
        if (shown === undefined || typeof value !== "number" || typeof delta !== "number") continue;
        compared++;
        const { lengthMm, isOnFeature } = shown;
        t.ok(Math.abs(lengthMm - value) < LENGTH_TOLERANCE_MM, `${name}: ${value}, the frame shows ${lengthMm}`);
        t.match(metadata, { measured: / relative to the / }, name);
        if (status !== "failed") continue;
        const side = delta < 0 ? "below" : "above";
        t.match(message, new RegExp(`^${Math.abs(delta)} mm ${side} nominal; at most [0-9.]+ mm is allowed$`));
        const place = places.find(({ description }) => description?.startsWith(`${name}: `));
        const { location = [], extents = [] } = place?.region_3d ?? {};
        const [xMm = Number.NaN, yMm = Number.NaN, zMm = Number.NaN] = location as number[];
        const [lengthX = Number.NaN, lengthY = Number.NaN] = extents as number[];
        t.ok(Math.abs(zMm - value) < LENGTH_TOLERANCE_MM, `${name}: ${value}, its place at ${zMm}`);
        // Beyond the box is nothing of the feature; the groove goes on in y.
        for (const side of [-1, 1]) {
          t.notOk(isOnFeature(xMm + side * (lengthX / 2 + 0.01), yMm), `${name}: the box covers it in x`);
          if (name === "groove_depth") continue;
          t.notOk(isOnFeature(xMm, yMm + side * (lengthY / 2 + 0.01)), `${name}: the box covers it in y`);
        }
        // In the middle of the boss is its bore.
        if (name !== "boss_height") t.ok(isOnFeature(xMm, yMm), `${name}: the place (${xMm}, ${yMm}) is on it`);
      }
    }
    t.equal(compared, 3 * kind.dimensions.length);
  });
}
