/**
 * What assembly/kernels.ts exports. The source of each kernel says what it takes. Addresses and counts are i32; a flag
 * is 0 or 1. A kernel that gives nothing returns undefined here.
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
