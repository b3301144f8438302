import t from "tap";
import { createRandom } from "../../../core/random.js";
import type { Defect } from "../../../core/run/quality.js";
import { PART_KINDS } from "../../../workers/demo-cell/part/demo-parts.js";
import { madeParts } from "../../../workers/demo-cell/part/made-parts.js";
import { medianOf } from "../../../workers/demo-cell/part/part-source.js";
import { type Capture, heightsMm } from "../../../workers/demo-cell/steps/capture.js";

const seed = Number(process.env.TEST_SEED ?? 20261126);
t.comment(`TEST_SEED=${seed}`);

type Vector = [x: number, y: number, z: number];

/** A vector turned by the unit quaternion [x, y, z, w]. */
function turned([x, y, z, w]: readonly number[], [vx, vy, vz]: Vector): Vector {
  const [qx, qy, qz, qw] = [x, y, z, w] as [number, number, number, number];
  const tx = 2 * (qy * vz - qz * vy);
  const ty = 2 * (qz * vx - qx * vz);
  const tz = 2 * (qx * vy - qy * vx);
  return [vx + qw * tx + qy * tz - qz * ty, vy + qw * ty + qz * tx - qx * tz, vz + qw * tz + qx * ty - qy * tx];
}

interface Regions {
  bbox: number[];
  location: Vector;
  extents: Vector;
  orientation: number[];
}

function regionsOf({ region_2d, region_3d }: Defect): Regions {
  const { location, extents, orientation } = region_3d ?? {};
  return { bbox: region_2d?.bbox, location, extents, orientation } as Regions;
}

/** The pixels that the box in space covers, seen from above: minima, and maxima that are not among them. */
function pixelsOf({ location, extents, orientation }: Regions, capture: Capture): number[] {
  const corners = [-1, 1].flatMap((sx) =>
    [-1, 1].flatMap((sy) => [-1, 1].map((sz): Vector => [sx * extents[0], sy * extents[1], sz * extents[2]])),
  );
  const seen = corners.map((corner) => turned(orientation, corner.map((edge) => edge / 2) as Vector));
  const columns = seen.map(([x]) => (location[0] + x - capture.xOriginMm) / capture.xPitchMm);
  const lines = seen.map(([, y]) => (location[1] + y - capture.yOriginMm) / capture.yPitchMm);
  const box = [Math.min(...columns), Math.min(...lines), Math.max(...columns) + 1, Math.max(...lines) + 1];
  const limits = [capture.width, capture.lines];
  return box.map((edge, at) => Math.min(Math.max(edge, 0), limits[at % 2] as number));
}

/** Heights over the plane through the sound surface around the box: in the middle of the box, and around it. Millimetres. */
function heightsAbout({ location, extents, orientation }: Regions, capture: Capture) {
  const back = [-(orientation[0] ?? 0), -(orientation[1] ?? 0), -(orientation[2] ?? 0), orientation[3] ?? 1];
  const zMm = heightsMm(capture);
  const inside: number[] = [];
  const around: number[] = [];
  const reach = Math.hypot(extents[0], extents[1]) / 2 + 2;
  for (let at = 0; at < zMm.length; at++) {
    const x = capture.xOriginMm + (at % capture.width) * capture.xPitchMm - location[0];
    const y = capture.yOriginMm + Math.floor(at / capture.width) * capture.yPitchMm - location[1];
    if (Math.abs(x) > reach || Math.abs(y) > reach) continue;
    const [along, across] = turned(back, [x, y, 0]);
    const [u, v] = [Math.abs(along) / (extents[0] / 2), Math.abs(across) / (extents[1] / 2)];
    if (u < 0.5 && v < 0.5) inside.push(zMm[at] as number);
    const besideMm = Math.max(Math.abs(across) - extents[1] / 2, Math.abs(along) - extents[0] / 2);
    if (besideMm > 0.8 && besideMm < 1.4) around.push(zMm[at] as number);
  }
  const soundMm = medianOf(Float64Array.from(around));
  return { soundMm, depthMm: soundMm - medianOf(Float64Array.from(inside)), points: inside.length };
}

for (const kind of Object.values(PART_KINDS)) {
  t.test(`${kind.key}: the surface shows each defect in both boxes, and they agree`, async (t) => {
    const random = createRandom(seed);
    let measured = 0;
    while (measured < 4) {
      const inspection = await madeParts(kind).inspect(random, { isFlawed: true, outcome: "passed" });
      const { capture, defects } = inspection as NonNullable<typeof inspection>;
      for (const defect of defects("0")) {
        const name = `${defect.description}, ${JSON.stringify(defect.region_2d?.bbox)}`;
        const regions = regionsOf(defect);
        const { bbox, location, extents, orientation } = regions;
        t.equal(defect.region_2d?.file, "frame-0.png");
        t.match(defect.region_3d, { file: "frame-0.ply", frame: "scan" });
        t.ok(bbox.every(Number.isInteger) && bbox.length === 4, name);
        const [xMin, yMin, xMax, yMax] = bbox as [number, number, number, number];
        t.ok(0 <= xMin && xMin < xMax && xMax <= capture.width && 0 <= yMin && yMin < yMax && yMax <= capture.lines);
        t.ok(Math.abs(Math.hypot(...orientation) - 1) < 1e-6, "a unit quaternion");
        t.ok(extents[0] >= extents[1], "x of the box is its longer axis");
        for (const [at, edge] of pixelsOf(regions, capture).entries()) {
          t.ok(Math.abs(edge - (bbox[at] as number)) <= 1.05, `${name}: edge ${at} is ${edge} by the box in space`);
        }
        const { soundMm, depthMm, points } = heightsAbout(regions, capture);
        t.ok(points >= 4, `${name}: ${points} points inside`);
        // A flaw is deepest in its middle: over half of the edges it is at least half as deep.
        t.ok(
          depthMm > 0.4 * extents[2] && depthMm < 1.2 * extents[2],
          `${name}: ${depthMm} mm deep of ${extents[2]}, the surface at ${soundMm}`,
        );
        // A burr of an eighth of the depth is thrown up beside a dent.
        const slackMm = 0.02 + extents[2] / 8;
        t.ok(Math.abs(location[2] + extents[2] / 2 - soundMm) < slackMm, `${name}: the top lies at ${soundMm}`);
        measured++;
      }
    }
  });
}

t.test(
  "a threshold is an allowed deviation to either side of a nominal value; without one it is the least",
  async (t) => {
    const random = createRandom(seed + 1);
    for (const outcome of ["passed", "failed", "indeterminate"] as const) {
      const inspection = await madeParts(PART_KINDS.connectorTray).inspect(random, { outcome });
      const { capture, checks, defects } = inspection as NonNullable<typeof inspection>;
      const off = defects("0").filter(({ type }) => type === "out of tolerance");
      t.strictSame(
        off.map(({ description }) => description?.split(":")[0]),
        checks.filter(({ status, nominal }) => status === "failed" && nominal !== undefined).map(({ name }) => name),
        "each dimension that is off has its place on the surface",
      );
      t.strictSame(
        checks.flatMap(({ metadata }) => metadata?.defect_id ?? []),
        off.map(({ id }) => id),
        "and its check names it",
      );
      for (const regions of off.map(regionsOf)) {
        const { bbox, location } = regions;
        for (const [at, edge] of pixelsOf(regions, capture).entries()) {
          t.ok(Math.abs(edge - (bbox[at] as number)) <= 1.05, `edge ${at} of ${bbox} is ${edge} by the box in space`);
        }
        const { soundMm, depthMm } = heightsAbout(regions, capture);
        const surfaceMm = soundMm - depthMm;
        t.ok(
          Math.abs(location[2] - surfaceMm) < 0.01,
          `the box's middle is at ${location[2]}, the surface at ${surfaceMm}`,
        );
      }
      for (const { name, value, nominal, delta, threshold, status } of checks) {
        if (status === "not_evaluated") t.equal(value, undefined, name);
        else if (nominal === undefined) t.equal(status, (value ?? 0) >= (threshold ?? 0) ? "passed" : "failed", name);
        else {
          t.ok(Math.abs((value ?? 0) - (nominal ?? 0) - (delta ?? 0)) < 1e-9, `${name}: delta is value - nominal`);
          t.equal(status === "failed", Math.abs(delta ?? 0) > (threshold ?? 0), `${name}: ${status}`);
        }
      }
    }
  },
);
