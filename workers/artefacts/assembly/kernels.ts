/** What kernels.wasm exports; .ci/build-kernels.mjs compiles it. */

// @ts-nocheck: AssemblyScript
export { decodeByTable, decodeIntegers, decodeSingles } from "../kernels/height-decoding";
export { boundTiles, tileCost } from "../kernels/neighbour-search";
export {
  approximateSums,
  exactStatistics,
  markExactInliers,
  markInliers,
  measureExactly,
  measureNear,
  measureOpen,
} from "../kernels/outlier-statistics";
export { countPoints, packPoints } from "../kernels/point-packing";
export { plantTree, resolveByTree } from "../kernels/point-tree";
export { highestOf, lowestOf, mapByTable, mapHeights, mapLuminance } from "../kernels/sample-mapping";
export { measureLanes } from "./distance-lanes";
export { adler32, codeStrip, countSymbols, filterStrip } from "./strip-coding";
