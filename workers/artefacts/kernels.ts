/** What assembly/kernels.ts exports, where it says what each kernel does. Addresses and counts are i32, flags 0 or 1. */
export interface Kernels extends FilterKernels, SampleKernels, CloudKernels, StripKernels {}

interface FilterKernels {
  boundTiles(grid: number): number;
  measureLanes(grid: number, scratch: number, distances: number, work: number): number;
  sumDistances(grid: number, distances: number, around: number, sums: number): void;
  markInliers(
    grid: number,
    best: number,
    distances: number,
    mask: number,
    low: number,
    high: number,
    error: number,
  ): number;
  measureExactly(grid: number, best: number, distances: number, work: number): number;
  treeBytes(points: number): number;
  measureByTree(grid: number, best: number, distances: number, points: number, tree: number): void;
  markExactInliers(grid: number, distances: number, mask: number): void;
}

type DecodeWords = (
  raw: number,
  count: number,
  scale: number,
  offset: number,
  codes: number,
  codeCount: number,
  zs: number,
) => void;

interface SampleKernels {
  decodeShorts(
    raw: number,
    count: number,
    signBit: number,
    scale: number,
    offset: number,
    codes: number,
    codeCount: number,
    zs: number,
  ): void;
  decodeIntegers: DecodeWords;
  decodeSingles: DecodeWords;
  mapHeights(
    raw: number,
    isSingle: number,
    zs: number,
    count: number,
    scale: number,
    offset: number,
    lowest: number,
    steps: number,
    samples: number,
  ): void;
  boundRaws(raw: number, isSingle: number, zs: number, count: number, bounds: number): void;
  swapSamples(raw: number, count: number, codes: number, codeCount: number, samples: number): void;
  mapByTable(raw: number, count: number, table: number, samples: number): void;
  markValues(raw: number, count: number, seen: number): void;
  mapLuminance(raw: number, count: number, shift: number, samples: number): void;
}

interface CloudKernels {
  countPoints(zs: number, count: number): number;
  packLines(
    type: number,
    raw: number,
    scale: number,
    offset: number,
    codes: number,
    codeCount: number,
    xs: number,
    yOrigin: number,
    yPitch: number,
    firstLine: number,
    lines: number,
    width: number,
    mask: number,
    firstBit: number,
    lights: number,
    lightShift: number,
    out: number,
  ): number;
}

interface StripKernels {
  codeStrip(
    samples: number,
    pitch: number,
    lineBytes: number,
    lines: number,
    bytesPerPixel: number,
    filtered: number,
    work: number,
    out: number,
  ): number;
}
