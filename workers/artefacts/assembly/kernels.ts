/** What the module exports. */
export { countPoints, packLines } from "./cloud/point-packing";
export { measureLanes } from "./filter/distance-lanes";
export { sumDistances } from "./filter/distance-sums";
export { markInliers } from "./filter/inlier-marking";
export { markExactInliers } from "./filter/outlier-statistics";
export { measureByTree, treeBytes } from "./filter/point-tree";
export { boundTiles } from "./filter/tile-bounds";
export { codeStrip } from "./png/strip-coding";
export { decodeHeights } from "./samples/height-decoding";
export { boundRaws, mapHeights } from "./samples/height-mapping";
export { mapByTable, mapLuminance, markValues, swapSamples } from "./samples/short-mapping";
