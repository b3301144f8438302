import type { KernelMemory } from "./kernel-memory.js";

/** Raw lines of a plane, as stored, into an address of the memory. */
export type LineSource = (firstLine: number, count: number, at: number) => Promise<void>;

/** Reads some lines into the memory and gives the address of each in turn. */
export type LineReader = (firstLine: number, count: number, use: (nth: number, rawAt: number) => void) => Promise<void>;

/** To ask for lines one by one costs as much as to decode short ones. */
const BLOCK_BYTES = 256 * 1024;

/** Memory: a block, or one line. */
export function lineReader(
  memory: KernelMemory,
  lineBytes: number,
  totalLines: number,
  lines: LineSource,
  blockBytes = BLOCK_BYTES,
): LineReader {
  const linesPerBlock = Math.min(totalLines, Math.max(1, Math.floor(blockBytes / lineBytes)));
  const rawAt = memory.allocate(linesPerBlock * lineBytes);
  return async (firstLine, count, use) => {
    for (let done = 0; done < count; done += linesPerBlock) {
      const taken = Math.min(linesPerBlock, count - done);
      await lines(firstLine + done, taken, rawAt);
      for (let nth = 0; nth < taken; nth++) use(done + nth, rawAt + nth * lineBytes);
    }
  };
}
