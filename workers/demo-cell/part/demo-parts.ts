import type { Random } from "../../../core/random.js";
import type { Feature, Grid, PartForm } from "./part-form.js";
import type { SensorModel } from "./sensor-model.js";
import type { HeightEncoding } from "./surface.js";

/** A rounded rectangle of the face, or a disc; only its border if `borderMm` is less than its half width. */
export interface Region {
  xMm: number;
  yMm: number;
  halfXMm: number;
  halfYMm: number;
  radiusMm: number;
  borderMm: number;
}

/** A height difference that a program checks: the median height of `of` above the median height of `over`. */
export interface Dimension {
  name: string;
  /** The same in words, for those who read the check. */
  measured: string;
  of: Region;
  over: Region;
  /** Edges, along x and y, of the box about `of` that marks it if it is out of tolerance. */
  boxMm: [x: number, y: number];
  nominalMm: number;
  thresholdMm: number;
}

export interface PartKind {
  key: string;
  serialPrefix: string;
  grid: Grid;
  encoding: HeightEncoding;
  sensor: SensorModel;
  dimensions: Dimension[];
  /**
   * Gives one part of this kind. `deviate` says how far each dimension is off its nominal value; the default varies it
   * as a real process does.
   */
  draw(random: Random, deviate?: Deviate): PartForm;
}

/** Gives a deviation in mm for a dimension with this threshold. */
export type Deviate = (thresholdMm: number) => number;

const DEGREES = Math.PI / 180;
const sensor = (noiseMm: number, invalidShare: number): SensorModel => ({
  noiseMm,
  triangulationRad: 28 * DEGREES,
  flyingShare: 0.006,
  invalidShare,
});

/** Deviations that seldom exceed the threshold: about one dimension in a hundred is out of tolerance. */
export function usualDeviation(random: Random): Deviate {
  return (thresholdMm) => (random.normal() * thresholdMm) / 2.6;
}

const at = (xMm: number, yMm: number, outerMm: number, innerMm = 0): Region => {
  return { xMm, yMm, halfXMm: outerMm, halfYMm: outerMm, radiusMm: outerMm, borderMm: outerMm - innerMm };
};

/** What the sensor leaves of bow and tilt when it levels a part: far less than any threshold. */
const level = (random: Random) => ({
  bowXMm: 0.001 * random.normal(),
  bowYMm: 0.001 * random.normal(),
  tiltXMm: 0.002 * random.normal(),
  tiltYMm: 0.002 * random.normal(),
});

const POCKET = { yMm: 2, widthMm: 15, lengthMm: 21, radiusMm: 3, chamferMm: 0.5 };
const CELL = { yMm: 0, widthMm: 9, lengthMm: 20, radiusMm: 1.2, chamferMm: 0.3 };

/** A recess: its middle, relative to the land from 0.5 to 1.7 mm around it. */
function depthOf(name: string, xMm: number, recess: typeof CELL, discMm: number) {
  const { yMm, widthMm, lengthMm, radiusMm, chamferMm } = recess;
  const [halfXMm, halfYMm] = [widthMm / 2 + 1.7, lengthMm / 2 + 1.7];
  return {
    name: `${name}_depth`,
    measured: "median height in the middle of the recess, relative to the land around it",
    of: at(xMm, yMm, discMm),
    over: { xMm, yMm, halfXMm, halfYMm, radiusMm: radiusMm + 1.7, borderMm: 1.2 },
    boxMm: [widthMm + chamferMm, lengthMm + chamferMm] satisfies Dimension["boxMm"],
  };
}

const housingCover: PartKind = {
  key: "housing-cover",
  serialPrefix: "HC",
  grid: { width: 1600, lines: 640, xPitchMm: 0.05, yPitchMm: 0.1 },
  encoding: "u16",
  sensor: sensor(0.004, 0.065),
  dimensions: [
    {
      name: "boss_height",
      measured: "median height of the boss, relative to the land around it",
      of: at(0, 2, 7, 5.2),
      over: at(0, 2, 13.2, 11.2),
      boxMm: [19, 19],
      nominalMm: 2.4,
      thresholdMm: 0.06,
    },
    { ...depthOf("pocket_left", -23, POCKET, 5), nominalMm: -1.2, thresholdMm: 0.05 },
    { ...depthOf("pocket_right", 23, POCKET, 5), nominalMm: -1.2, thresholdMm: 0.05 },
  ],
  draw(random, deviate = usualDeviation(random)) {
    const holes: Feature[] = [-1, 1].flatMap((sx) =>
      [-1, 1].map(
        (sy): Feature => ({ kind: "disc", xMm: sx * 33, yMm: sy * 23, radiusMm: 2.6, heightMm: -1.6, chamferMm: 0.4 }),
      ),
    );
    const ribs: Feature[] = [-19, 19].map((yMm) => ({
      ...POCKET,
      kind: "block",
      xMm: 0,
      yMm,
      widthMm: 50,
      lengthMm: 2.2,
      radiusMm: 1,
      heightMm: 0.8,
    }));
    return {
      widthMm: 75,
      lengthMm: 60,
      cornerMm: 6,
      thicknessMm: 4,
      ...level(random),
      roughnessMm: 0.003,
      markPitchMm: 0.9,
      features: [
        { kind: "disc", xMm: 0, yMm: 2, radiusMm: 9, heightMm: 2.4 + deviate(0.06), chamferMm: 0.8 },
        { kind: "disc", xMm: 0, yMm: 2, radiusMm: 4, heightMm: -1.9, chamferMm: 0.3 },
        { ...POCKET, kind: "block", xMm: -23, heightMm: -1.2 + deviate(0.05) },
        { ...POCKET, kind: "block", xMm: 23, heightMm: -1.2 + deviate(0.05) },
        ...holes,
        ...ribs,
      ],
    };
  },
};

const connectorTray: PartKind = {
  key: "connector-tray",
  serialPrefix: "CT",
  grid: { width: 800, lines: 480, xPitchMm: 0.05, yPitchMm: 0.06 },
  encoding: "i32",
  sensor: sensor(0.0025, 0.07),
  dimensions: [1, 2, 3].map((n) => ({
    ...depthOf(`cell_${n}`, (n - 2) * 11.5, CELL, 2.5),
    nominalMm: -0.9,
    thresholdMm: 0.04,
  })),
  draw(random, deviate = usualDeviation(random)) {
    const features: Feature[] = [-1, 0, 1].flatMap((n): Feature[] => [
      { ...CELL, kind: "block", xMm: n * 11.5, heightMm: -0.9 + deviate(0.04) },
      { kind: "dome", xMm: n * 11.5, yMm: 6.5, radiusMm: 1.6, heightMm: 0.6 },
      { ...CELL, kind: "block", xMm: n * 11.5, yMm: -6.5, widthMm: 3, lengthMm: 3, radiusMm: 0.4, heightMm: 0.5 },
    ]);
    return {
      widthMm: 37.5,
      lengthMm: 26.5,
      cornerMm: 2,
      thicknessMm: 1.6,
      ...level(random),
      roughnessMm: 0.004,
      markPitchMm: 0,
      features,
    };
  },
};

const weldedLid: PartKind = {
  key: "welded-lid",
  serialPrefix: "WL",
  grid: { width: 3200, lines: 400, xPitchMm: 0.025, yPitchMm: 0.1 },
  encoding: "u16",
  sensor: sensor(0.005, 0.06),
  dimensions: [-25, 0, 25].map((xMm, i) => ({
    name: `bead_height_${i + 1}`,
    measured: "median height along the bead's middle, relative to the case beside it",
    of: at(xMm, 3, 0.9),
    over: at(xMm, 8.5, 1.5),
    boxMm: [1.8, 4.4],
    nominalMm: 0.62,
    thresholdMm: 0.15,
  })),
  draw(random, deviate = usualDeviation(random)) {
    const step = { xMm: 0, widthMm: 90, radiusMm: 0.5, chamferMm: 0.4 };
    return {
      widthMm: 90,
      lengthMm: 50,
      cornerMm: 1,
      thicknessMm: 3,
      ...level(random),
      roughnessMm: 0.002,
      markPitchMm: 0.4,
      features: [
        // The lid is in a rebate of the case.
        { ...step, kind: "block", yMm: -14, lengthMm: 34, heightMm: -0.25 },
        {
          kind: "bead",
          yMm: 3,
          widthMm: 4.4,
          heightMm: 0.7 + deviate(0.15),
          rippleMm: 0.05,
          rippleLengthMm: 1.1,
        },
        { kind: "disc", xMm: -30, yMm: -10, radiusMm: 4, heightMm: 1.1, chamferMm: 0.3 },
        { kind: "disc", xMm: 30, yMm: -10, radiusMm: 4, heightMm: 1.1, chamferMm: 0.3 },
      ],
    };
  },
};

const sealPlate: PartKind = {
  key: "seal-plate",
  serialPrefix: "SP",
  grid: { width: 720, lines: 480, xPitchMm: 0.06, yPitchMm: 0.07 },
  encoding: "f32",
  sensor: sensor(0.003, 0.07),
  dimensions: [
    {
      name: "groove_depth",
      measured: "median height of the groove at its rightmost place, relative to the land beside it",
      of: at(9, 0, 1.2),
      over: at(12.1, 0, 1.2),
      boxMm: [3.4, 3.4],
      nominalMm: -1.1,
      thresholdMm: 0.05,
    },
    {
      name: "land_height",
      measured: "median height of the land within the groove, relative to the land around it",
      of: at(0, 0, 6),
      over: at(0, 0, 12.6, 11.6),
      boxMm: [15.2, 15.2],
      nominalMm: 0,
      thresholdMm: 0.04,
    },
  ],
  draw(random, deviate = usualDeviation(random)) {
    const groove = { kind: "disc", xMm: 0, yMm: 0, chamferMm: 0.2 } as const;
    const grooveMm = -1.1 + deviate(0.05);
    const holes: Feature[] = [-1, 1].map((side) => ({ ...groove, xMm: side * 15.5, radiusMm: 1.7, heightMm: -1.4 }));
    return {
      widthMm: 40,
      lengthMm: 30,
      cornerMm: 4,
      thicknessMm: 3,
      ...level(random),
      roughnessMm: 0.002,
      markPitchMm: 0.5,
      features: [
        { ...groove, radiusMm: 10.5, heightMm: grooveMm },
        { ...groove, radiusMm: 7.5, heightMm: deviate(0.04) - grooveMm },
        ...holes,
      ],
    };
  },
};

export const PART_KINDS = { housingCover, connectorTray, weldedLid, sealPlate } as const;
