export type Point3 = readonly [x: number, y: number, z: number];
export type Point2 = readonly [x: number, y: number];
/** [x, y, z, w]. */
export type Quaternion = readonly [number, number, number, number];

/** A box in the space of the point cloud, in mm: full edge lengths along its own axes, which the unit quaternion turns into those of space. */
export interface OrientedBox {
  readonly centre: Point3;
  readonly extents: Point3;
  readonly orientation: Quaternion;
}

const SIGNS = [-0.5, 0.5];

/** Pairs of corners, by their place in `boxCorners`: those that differ in one axis. */
export const BOX_EDGES: readonly (readonly [number, number])[] = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((corner) =>
  [1, 2, 4].filter((bit) => (corner & bit) === 0).map((bit) => [corner, corner | bit] as const),
);

/** The eight corners: bit 2 of the place is the side along the box's own x, bit 1 along y, bit 0 along z. */
export function boxCorners({ centre, extents, orientation }: OrientedBox): Point3[] {
  return SIGNS.flatMap((x) =>
    SIGNS.flatMap((y) =>
      SIGNS.map((z) => {
        const [dx, dy, dz] = turned([x * extents[0], y * extents[1], z * extents[2]], orientation);
        return [centre[0] + dx, centre[1] + dy, centre[2] + dz] as const;
      }),
    ),
  );
}

/** A vector turned by a unit quaternion: v + 2 w (q x v) + 2 q x (q x v). */
export function turned([x, y, z]: Point3, [qx, qy, qz, w]: Quaternion): Point3 {
  const tx = 2 * (qy * z - qz * y);
  const ty = 2 * (qz * x - qx * z);
  const tz = 2 * (qx * y - qy * x);
  return [x + w * tx + qy * tz - qz * ty, y + w * ty + qz * tx - qx * tz, z + w * tz + qx * ty - qy * tx];
}

/** What the box covers when it is seen along z: the convex hull of its corners' x and y, in turn (Andrew's monotone chain). */
export function boxFootprint(box: OrientedBox): Point2[] {
  const points = boxCorners(box).map(([x, y]): Point2 => [x, y]);
  points.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return [...halfHull(points), ...halfHull(points.reverse())];
}

function halfHull(points: readonly Point2[]): Point2[] {
  const hull: Point2[] = [];
  for (const point of points) {
    while (hull.length >= 2 && turn(hull.at(-2) as Point2, hull.at(-1) as Point2, point) <= 0) hull.pop();
    hull.push(point);
  }
  return hull.slice(0, -1);
}

function turn(a: Point2, b: Point2, c: Point2): number {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

export function distance(a: Point3, b: Point3): number {
  return Math.hypot(b[0] - a[0], b[1] - a[1], b[2] - a[2]);
}
