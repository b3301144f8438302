import type { OrientedBox, Quaternion } from "./oriented-box.js";
import type { DefectRegion2d, DefectRegion3d } from "./quality.js";

/** In pixels of the picture: from the minima up to, but not including, the maxima. */
export interface PixelBox {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** Where a defect lies in one frame. Both are undefined if it lies in another frame, or if its numbers are no box. */
export interface DefectPlaces {
  readonly box2d: PixelBox | undefined;
  readonly box3d: OrientedBox | undefined;
}

interface Regions {
  readonly region_2d?: DefectRegion2d | null;
  readonly region_3d?: DefectRegion3d | null;
}

/**
 * Finds the places of a defect in a frame.
 *
 * @param isOfFrame whether a region that names this file, or none, lies in the frame
 */
export function defectPlaces(
  { region_2d: flat, region_3d: solid }: Regions,
  isOfFrame: (file: string | null | undefined) => boolean,
): DefectPlaces {
  return {
    box2d: flat && isOfFrame(flat.file) ? pixelBox(flat.bbox) : undefined,
    box3d: solid && isOfFrame(solid.file) ? orientedBox(solid) : undefined,
  };
}

/**
 * Whether a region lies in a frame: it names a file, and the run's list of files says which frame that belongs to. A
 * region without a file belongs to the frame only if the run has no other.
 */
export function frameTest(
  frameId: string,
  frameCount: number,
  frameOfFile: (name: string) => string | null | undefined,
): (file: string | null | undefined) => boolean {
  return (file) => {
    if (file === null || file === undefined) return frameCount === 1;
    const frame = frameOfFile(file);
    return frame === undefined ? file.startsWith(`frame-${frameId}.`) : frame === frameId;
  };
}

function numbers(values: readonly number[] | null | undefined, count: number): readonly number[] | undefined {
  return values?.length === count && values.every(Number.isFinite) ? values : undefined;
}

/** The producer's numbers are not checked by the service: what is no box is left out. */
function pixelBox(bbox: readonly number[] | null | undefined): PixelBox | undefined {
  const [left, top, right, bottom] = (numbers(bbox, 4) ?? []) as [number, number, number, number];
  return left < right && top < bottom ? { left, top, right, bottom } : undefined;
}

function orientedBox(region: DefectRegion3d): OrientedBox | undefined {
  const centre = numbers(region.location, 3) as OrientedBox["centre"] | undefined;
  const extents = numbers(region.extents, 3) as OrientedBox["extents"] | undefined;
  if (centre === undefined || extents === undefined) return undefined;
  const [x, y, z, w] = (numbers(region.orientation, 4) ?? [0, 0, 0, 1]) as Quaternion;
  const length = Math.hypot(x, y, z, w);
  return length > 0 ? { centre, extents, orientation: [x / length, y / length, z / length, w / length] } : undefined;
}
