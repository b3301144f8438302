/**
 * What assembly/kernels.ts exports; the source of each kernel says what it takes. Addresses and counts are i32, flags 0 or 1. What gives
 * nothing there gives undefined here.
 */
export type Kernels = Readonly<Record<KernelName, (...values: number[]) => number>>;

type KernelName =
  | "boundRaws"
  | "boundTiles"
  | "codeStrip"
  | "countPoints"
  | "decodeHeights"
  | "mapByTable"
  | "mapHeights"
  | "mapLuminance"
  | "markExactInliers"
  | "markInliers"
  | "markValues"
  | "measureByTree"
  | "measureLanes"
  | "packLines"
  | "sumDistances"
  | "swapSamples"
  | "treeBytes";
