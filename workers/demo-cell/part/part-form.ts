/** The forms of the parts that the demo cell inspects, as heights over a grid. Lengths are mm; the origin is the part's middle. */

export type Feature =
  /** A raised disc; `chamferMm` is the width of its edge. With a negative height it is a round recess. */
  | { kind: "disc"; xMm: number; yMm: number; radiusMm: number; heightMm: number; chamferMm: number }
  /** A raised rounded rectangle. With a negative height it is recessed. */
  | {
      kind: "block";
      xMm: number;
      yMm: number;
      widthMm: number;
      lengthMm: number;
      radiusMm: number;
      heightMm: number;
      chamferMm: number;
    }
  /** A bead across the part in x, with a half-elliptic section and ripples as a weld leaves them. */
  | { kind: "bead"; yMm: number; widthMm: number; heightMm: number; rippleMm: number; rippleLengthMm: number }
  /** A part of a sphere. Its middle is raised by `heightMm`. */
  | { kind: "dome"; xMm: number; yMm: number; radiusMm: number; heightMm: number };

export interface PartForm {
  /** The outline: a rounded rectangle. The table lies outside it, `thicknessMm` below the face. */
  widthMm: number;
  lengthMm: number;
  cornerMm: number;
  thicknessMm: number;
  /** Bow over the whole part, along x and along y: how much the middle is higher than the ends. */
  bowXMm: number;
  bowYMm: number;
  /** Tilt that is left after the sensor has levelled the part: the height difference from end to end. */
  tiltXMm: number;
  tiltYMm: number;
  /** Roughness of the face, and the pitch of its machining marks in y. The pitch is 0 for a cast or moulded face. */
  roughnessMm: number;
  markPitchMm: number;
  features: Feature[];
  /** Drops of oil on the face. They reflect the laser away, so that nothing is measured there. */
  oil?: { xMm: number; yMm: number; radiusMm: number }[];
}

export interface Grid {
  width: number;
  lines: number;
  xPitchMm: number;
  yPitchMm: number;
}

/** x of column 0 and y of line 0. The grid's middle is on the part's middle. */
export function gridOrigin(grid: Grid): { xMm: number; yMm: number } {
  return { xMm: (-(grid.width - 1) / 2) * grid.xPitchMm, yMm: (-(grid.lines - 1) / 2) * grid.yPitchMm };
}

/** Signed distance to a rounded rectangle about the origin. It is negative inside. */
export function roundedBox(x: number, y: number, halfX: number, halfY: number, radius: number): number {
  const dx = Math.abs(x) - halfX + radius;
  const dy = Math.abs(y) - halfY + radius;
  return Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) + Math.min(Math.max(dx, dy), 0) - radius;
}

/** 1 inside, 0 outside, and linear across the chamfer. */
function edge(distanceMm: number, chamferMm: number): number {
  return Math.min(1, Math.max(0, 0.5 - distanceMm / chamferMm));
}

/** Calls `at` for each point of the grid within the box, in mm. */
export function forEachPoint(
  grid: Grid,
  box: { xMm: number; yMm: number; halfXMm: number; halfYMm: number },
  at: (index: number, xMm: number, yMm: number) => void,
): void {
  const origin = gridOrigin(grid);
  const column = (xMm: number): number => (xMm - origin.xMm) / grid.xPitchMm;
  const line = (yMm: number): number => (yMm - origin.yMm) / grid.yPitchMm;
  const firstColumn = Math.max(0, Math.ceil(column(box.xMm - box.halfXMm)));
  const lastColumn = Math.min(grid.width - 1, Math.floor(column(box.xMm + box.halfXMm)));
  const firstLine = Math.max(0, Math.ceil(line(box.yMm - box.halfYMm)));
  const lastLine = Math.min(grid.lines - 1, Math.floor(line(box.yMm + box.halfYMm)));
  for (let row = firstLine; row <= lastLine; row++) {
    const yMm = origin.yMm + row * grid.yPitchMm;
    for (let col = firstColumn; col <= lastColumn; col++) {
      at(row * grid.width + col, origin.xMm + col * grid.xPitchMm, yMm);
    }
  }
}

/** Ideal heights over the grid in mm, [lines, width], row-major. 0 is the face. */
export function formHeights(form: PartForm, grid: Grid): Float32Array {
  const zMm = new Float32Array(grid.width * grid.lines);
  const halfX = form.widthMm / 2;
  const halfY = form.lengthMm / 2;
  const everywhere = { xMm: 0, yMm: 0, halfXMm: Number.MAX_VALUE, halfYMm: Number.MAX_VALUE };
  for (const feature of form.features) addFeature(zMm, grid, feature);
  forEachPoint(grid, everywhere, (i, x, y) => {
    const u = x / halfX;
    const v = y / halfY;
    const lie = (form.tiltXMm * u + form.tiltYMm * v) / 2;
    const onPart = edge(roundedBox(x, y, halfX, halfY, form.cornerMm), 0.3);
    const face = (zMm[i] as number) + form.bowXMm * (1 - u * u) + form.bowYMm * (1 - v * v) + lie;
    zMm[i] = onPart * face + (1 - onPart) * -form.thicknessMm;
  });
  return zMm;
}

function addFeature(zMm: Float32Array, grid: Grid, feature: Feature): void {
  const add = (i: number, heightMm: number): void => {
    zMm[i] = (zMm[i] as number) + heightMm;
  };
  switch (feature.kind) {
    case "disc": {
      const { xMm, yMm, radiusMm, heightMm, chamferMm } = feature;
      const half = radiusMm + chamferMm;
      forEachPoint(grid, { xMm, yMm, halfXMm: half, halfYMm: half }, (i, x, y) => {
        add(i, heightMm * edge(Math.hypot(x - xMm, y - yMm) - radiusMm, chamferMm));
      });
      break;
    }
    case "block": {
      const { xMm, yMm, widthMm, lengthMm, radiusMm, heightMm, chamferMm } = feature;
      const box = { xMm, yMm, halfXMm: widthMm / 2 + chamferMm, halfYMm: lengthMm / 2 + chamferMm };
      forEachPoint(grid, box, (i, x, y) => {
        add(i, heightMm * edge(roundedBox(x - xMm, y - yMm, widthMm / 2, lengthMm / 2, radiusMm), chamferMm));
      });
      break;
    }
    case "bead": {
      const { yMm, widthMm, heightMm, rippleMm, rippleLengthMm } = feature;
      const box = { xMm: 0, yMm, halfXMm: Number.MAX_VALUE, halfYMm: widthMm / 2 };
      forEachPoint(grid, box, (i, x, y) => {
        const across = ((y - yMm) * 2) / widthMm;
        const section = Math.sqrt(Math.max(0, 1 - across * across));
        // Ripples of a weld are crescents: they lag at the bead's sides.
        const phase = (x / rippleLengthMm + across * across * 1.2) * 2 * Math.PI;
        add(i, section * (heightMm + rippleMm * Math.sin(phase)));
      });
      break;
    }
    case "dome": {
      const { xMm, yMm, radiusMm, heightMm } = feature;
      forEachPoint(grid, { xMm, yMm, halfXMm: radiusMm, halfYMm: radiusMm }, (i, x, y) => {
        const r = Math.hypot(x - xMm, y - yMm) / radiusMm;
        if (r < 1) add(i, heightMm * (1 - r * r));
      });
      break;
    }
  }
}
