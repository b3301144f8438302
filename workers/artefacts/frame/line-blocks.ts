import type { KernelMemory } from "../kernel-memory.js";

/** Reads raw lines of a plane, as they are stored, to an address of the memory. */
export type LineSource = (firstLine: number, count: number, at: number) => Promise<void>;

/** Reads some lines into the memory and gives the address of each, one after the other. */
export type LineReader = (firstLine: number, count: number, use: (nth: number, rawAt: number) => void) => Promise<void>;

/** Does the same as `LineReader`, but gives as many lines at a time as fit the memory, one after the other. */
export type BlockReader = (
  firstLine: number,
  count: number,
  use: (nth: number, taken: number, rawAt: number) => void,
) => Promise<void>;

/** Lines are read in blocks of this many bytes: asking for single short lines costs as much as decoding them. */
const BLOCK_BYTES = 256 * 1024;

/** Needs memory for one block, or for one line if that is more. */
export function blockReader(
  memory: KernelMemory,
  lineBytes: number,
  totalLines: number,
  lines: LineSource,
  blockBytes = BLOCK_BYTES,
): BlockReader {
  const linesPerBlock = Math.min(totalLines, Math.max(1, Math.floor(blockBytes / lineBytes)));
  const rawAt = memory.allocate(linesPerBlock * lineBytes);
  return async (firstLine, count, use) => {
    for (let done = 0; done < count; done += linesPerBlock) {
      const taken = Math.min(linesPerBlock, count - done);
      await lines(firstLine + done, taken, rawAt);
      use(done, taken, rawAt);
    }
  };
}

/** Needs as much memory as `blockReader`. */
export function lineReader(...[memory, lineBytes, ...more]: Parameters<typeof blockReader>): LineReader {
  const rawBlocks = blockReader(memory, lineBytes, ...more);
  return (firstLine, count, use) =>
    rawBlocks(firstLine, count, (nth, taken, rawAt) => {
      for (let line = 0; line < taken; line++) use(nth + line, rawAt + line * lineBytes);
    });
}
