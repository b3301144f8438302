/** What kernels.wasm exports; .ci/build-kernels.mjs compiles it. */

// @ts-nocheck: AssemblyScript
export { decodeIntegers, decodeSingles } from "./height-decoding.js";
export { approximateSums } from "./approximate-sums.js";
export { tileCost } from "../kernels/neighbour-search.js";
export { measureNear, nearScratchBytes } from "../kernels/near-distances.js";
export {
  exactStatistics,
  markExactInliers,
  measureExactly,
  measureOpen,
} from "../kernels/outlier-statistics.js";
export { countPoints, packPoints } from "../kernels/point-packing.js";
export { packShorts, packWords } from "./point-packing.js";
export { plantTree, resolveByTree } from "../kernels/point-tree.js";
export { boundRaws, mapHeights } from "./height-mapping.js";
export { mapByTable, markValues } from "../kernels/sample-mapping.js";
export { mapLuminance } from "./luminance-mapping.js";
export { swapSamples } from "./sample-swapping.js";
export { markInliers } from "./inlier-marking.js";
export { boundTiles } from "./tile-bounds.js";
export { decodeShorts } from "./short-decoding.js";
export { exactLanesScratchBytes, measureExactLanes } from "./exact-lanes.js";
export { measureLanes } from "./distance-lanes.js";
export { codeStrip } from "./png/strip-coding.js";
