/**
 * CRC-32 of each plane of a frame. It is computed from what is recorded for each batch: the CRC of the whole batch, and
 * the CRC of all heights up to its end. So a plane can be verified without reading the other, and damage in one does
 * not affect the other.
 */
import { type Extent, type FrameState, type LineBatch, lineBytes, type Planes } from "../../../core/capture/capture.js";
import { crc32Combiner } from "./crc-combination.js";

type Batches = readonly Pick<LineBatch, "lineCount" | "crc32" | "heightCrc32">[];

/** CRC-32 of the heights in each batch. */
export function heightCrcs(planes: Planes, width: number, batches: Batches): number[] {
  // Without luminance the heights are the whole batch.
  if (planes.luminance === undefined) return batches.map(({ crc32 }) => crc32);
  const { height } = lineBytes(planes, width);
  const combiner = combinersByLines(height);
  let before = 0;
  return batches.map(({ lineCount, heightCrc32 }) => {
    const crc = combiner(lineCount)(before, heightCrc32);
    before = heightCrc32;
    return crc;
  });
}

/** Where the heights of a frame lie, batch by batch, with the CRC-32 of each part. */
export function heightExtents({ planes, width, batches }: Pick<FrameState, "planes" | "width" | "batches">): Extent[] {
  const { height } = lineBytes(planes, width);
  const crcs = heightCrcs(planes, width, batches);
  return batches.map(({ offset, lineCount }, nth) => {
    return { offset, lengthBytes: lineCount * height, crc32: crcs[nth] as number };
  });
}

/** CRC-32 of the whole plane of luminance; 0 without one. */
export function luminanceCrc(planes: Planes, width: number, batches: Batches): number {
  const combiner = combinersByLines(lineBytes(planes, width).luminance);
  const heights = heightCrcs(planes, width, batches);
  let crc = 0;
  for (const [nth, { lineCount, crc32 }] of batches.entries()) {
    const combine = combiner(lineCount);
    crc = combine(crc, combine(heights[nth] as number, crc32));
  }
  return crc;
}

/** Caches by length: nearly all batches of a frame have the same number of lines. */
function combinersByLines(bytesPerLine: number): (lines: number) => ReturnType<typeof crc32Combiner> {
  const known = new Map<number, ReturnType<typeof crc32Combiner>>();
  return (lines) => {
    let combiner = known.get(lines);
    if (combiner === undefined) {
      combiner = crc32Combiner(lines * bytesPerLine);
      known.set(lines, combiner);
    }
    return combiner;
  };
}
