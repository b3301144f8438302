import type { Random } from "../../../core/random.js";
import type { Feature, Grid, PartForm } from "./part-form.js";
import type { SensorModel } from "./sensor-model.js";
import type { HeightEncoding } from "./surface.js";

/** A region of the face whose heights are averaged: a disc, or a ring if `innerMm` is above 0. */
export interface Region {
  xMm: number;
  yMm: number;
  innerMm: number;
  outerMm: number;
}

/** A height difference that a program checks: the mean height of `of` above the mean height of `over`. */
export interface Dimension {
  name: string;
  of: Region;
  over: Region;
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

const at = (xMm: number, yMm: number, outerMm: number, innerMm = 0): Region => ({ xMm, yMm, innerMm, outerMm });

const housingCover: PartKind = {
  key: "housing-cover",
  serialPrefix: "HC",
  grid: { width: 1600, lines: 640, xPitchMm: 0.05, yPitchMm: 0.1 },
  encoding: "u16",
  sensor: sensor(0.004, 0.065),
  dimensions: [
    { name: "boss_height", of: at(0, 2, 7, 5.2), over: at(0, 2, 13.2, 11.2), nominalMm: 2.4, thresholdMm: 0.06 },
    { name: "pocket_left_depth", of: at(-23, 2, 5), over: at(-23, 15.5, 1.2), nominalMm: -1.2, thresholdMm: 0.05 },
    { name: "pocket_right_depth", of: at(23, 2, 5), over: at(23, 15.5, 1.2), nominalMm: -1.2, thresholdMm: 0.05 },
  ],
  draw(random, deviate = usualDeviation(random)) {
    const block = { yMm: 2, widthMm: 15, lengthMm: 21, radiusMm: 3, chamferMm: 0.5 };
    const holes: Feature[] = [-1, 1].flatMap((sx) =>
      [-1, 1].map(
        (sy): Feature => ({ kind: "disc", xMm: sx * 33, yMm: sy * 23, radiusMm: 2.6, heightMm: -1.6, chamferMm: 0.4 }),
      ),
    );
    const ribs: Feature[] = [-19, 19].map((yMm) => ({
      ...block,
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
      bowXMm: 0.05 * random.normal(),
      bowYMm: 0.03 * random.normal(),
      tiltXMm: 0.15 * random.normal(),
      tiltYMm: 0.1 * random.normal(),
      roughnessMm: 0.003,
      markPitchMm: 0.9,
      features: [
        { kind: "disc", xMm: 0, yMm: 2, radiusMm: 9, heightMm: 2.4 + deviate(0.06), chamferMm: 0.8 },
        { kind: "disc", xMm: 0, yMm: 2, radiusMm: 4, heightMm: -1.9, chamferMm: 0.3 },
        { ...block, kind: "block", xMm: -23, heightMm: -1.2 + deviate(0.05) },
        { ...block, kind: "block", xMm: 23, heightMm: -1.2 + deviate(0.05) },
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
    name: `cell_${n}_depth`,
    of: at((n - 2) * 11.5, 0, 2.5),
    over: at((n - 2) * 11.5, -11.6, 0.8),
    nominalMm: -0.9,
    thresholdMm: 0.04,
  })),
  draw(random, deviate = usualDeviation(random)) {
    const cell = { yMm: 0, widthMm: 9, lengthMm: 20, radiusMm: 1.2, chamferMm: 0.3 };
    const features: Feature[] = [-1, 0, 1].flatMap((n): Feature[] => [
      { ...cell, kind: "block", xMm: n * 11.5, heightMm: -0.9 + deviate(0.04) },
      { kind: "dome", xMm: n * 11.5, yMm: 6.5, radiusMm: 1.6, heightMm: 0.6 },
      { ...cell, kind: "block", xMm: n * 11.5, yMm: -6.5, widthMm: 3, lengthMm: 3, radiusMm: 0.4, heightMm: 0.5 },
    ]);
    return {
      widthMm: 37.5,
      lengthMm: 26.5,
      cornerMm: 2,
      thicknessMm: 1.6,
      bowXMm: 0.06 + 0.03 * random.normal(),
      bowYMm: 0.02 * random.normal(),
      tiltXMm: 0.05 * random.normal(),
      tiltYMm: 0.05 * random.normal(),
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
    of: at(xMm, 3, 0.9),
    over: at(xMm, 8.5, 1.5),
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
      bowXMm: 0.1 * random.normal(),
      bowYMm: 0.02 * random.normal(),
      tiltXMm: 0.1 * random.normal(),
      tiltYMm: 0.05 * random.normal(),
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
    { name: "groove_depth", of: at(0, 0, 9.3, 8.7), over: at(0, 0, 12.6, 11.6), nominalMm: -1.1, thresholdMm: 0.05 },
    { name: "land_height", of: at(0, 0, 6), over: at(0, 0, 12.6, 11.6), nominalMm: 0, thresholdMm: 0.04 },
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
      bowXMm: 0.02 * random.normal(),
      bowYMm: 0.02 * random.normal(),
      tiltXMm: 0.04 * random.normal(),
      tiltYMm: 0.04 * random.normal(),
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
