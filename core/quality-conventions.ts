/** What the numbers of checks and defects mean: for the schemas of the interface and of events. The producer holds to it; the service passes them on. */
export const THRESHOLD =
  "With a nominal: the deviation that is allowed to either side, so that the limits are nominal - threshold and nominal + threshold. " +
  "Without one: the least value that passes.";

export const REGION_2D = {
  file: "Name, in the run's manifest, of the picture that bbox is in.",
  bbox:
    "[x_min, y_min, x_max, y_max] in pixels of the picture that `file` names: x is the column and y the line, both counted from 0 at the top " +
    "left. The box covers the pixels from x_min up to but not including x_max, and in y the same.",
} as const;

/** An oriented box. */
export const REGION_3D = {
  file: "Name, in the run's manifest, of the point cloud that the box is in.",
  location: (unit: string) =>
    `The box's centre [x, y, z] in ${unit}, in scan space: the space of the frame's point cloud.`,
  extents: (unit: string) => `The box's full edge lengths in ${unit}, along its own x, y and z axes.`,
  orientation: "Unit quaternion [x, y, z, w] that turns the box's own axes into scan space.",
  frame: "What the producer calls the coordinate frame.",
} as const;
