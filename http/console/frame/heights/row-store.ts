import { lineBytes, type NpyHeader, readValues, type Values } from "./npy.js";

/** Reads bytes of the file from `first` up to, but not including, `end`. Rejects if they cannot be had whole. */
export type ReadBytes = (first: number, end: number, signal: AbortSignal) => Promise<Uint8Array>;

/** About the size of one request: small enough to show soon, large enough that its head costs little. */
const BLOCK_BYTES = 512 * 1024;
/** Limit of the raw lines in memory. A frame of 3,200 x 1,000 needs 6 MiB. */
const CACHE_BYTES = 96 * 1024 * 1024;
/** Browsers open at most six connections to one host; the page needs some for itself. */
const READERS = 4;

/** The lines of a frame that were looked at last, read from `file.npy` by ranges, in blocks of lines. */
export class RowStore {
  readonly header: NpyHeader;
  /** Called when a block has come. */
  onLoad: () => void = () => {};
  readonly #read: ReadBytes;
  readonly #blockLines: number;
  readonly #maxBlocks: number;
  /** In the order of their last use: the oldest is dropped first. */
  readonly #blocks = new Map<number, Values>();

  constructor(header: NpyHeader, read: ReadBytes, { blockBytes = BLOCK_BYTES, cacheBytes = CACHE_BYTES } = {}) {
    this.header = header;
    this.#read = read;
    const bytes = lineBytes(header);
    this.#blockLines = Math.max(1, Math.floor(blockBytes / bytes));
    this.#maxBlocks = Math.max(2, Math.floor(cacheBytes / (bytes * this.#blockLines)));
  }

  /** How many neighbouring lines fit in memory together, whichever is the first. */
  get linesInMemory(): number {
    return (this.#maxBlocks - 1) * this.#blockLines;
  }

  /** Raw values of a line by column; undefined while they are not in memory. */
  line(line: number): Values | undefined {
    const values = this.#use(this.#blockOf(line));
    return values && this.#lineIn(values, line);
  }

  /**
   * Loads the lines from `first` up to, but not including, `end`. More than `linesInMemory` lines push out the first of them.
   * Rejects with the first failure, or when the signal aborts.
   * @returns gives the raw values of each of these lines, even when another load has pushed them out
   */
  async load(first: number, end: number, signal: AbortSignal): Promise<(line: number) => Values> {
    const firstBlock = this.#blockOf(Math.max(0, first));
    const endBlock = Math.ceil(Math.min(end, this.header.lines) / this.#blockLines);
    const loaded = new Map<number, Values>();
    const missing: number[] = [];
    for (let block = firstBlock; block < endBlock; block++) {
      // A block that is there already counts as used now: the missing ones must not push it out.
      const values = this.#use(block);
      if (values === undefined) missing.push(block);
      else loaded.set(block, values);
    }
    const reader = async (): Promise<void> => {
      for (let block = missing.shift(); block !== undefined; block = missing.shift()) {
        const values = await this.#readBlock(block, signal);
        loaded.set(block, values);
        this.#keep(block, values);
        this.onLoad();
      }
    };
    await Promise.all(Array.from({ length: Math.min(READERS, missing.length) }, reader));
    return (line) => this.#lineIn(loaded.get(this.#blockOf(line)) as Values, line);
  }

  #blockOf(line: number): number {
    return Math.floor(line / this.#blockLines);
  }

  #lineIn(block: Values, line: number): Values {
    const at = (line % this.#blockLines) * this.header.width;
    return block.subarray(at, at + this.header.width);
  }

  /** The block, if it is in memory. It is then the one that was used last. */
  #use(block: number): Values | undefined {
    const values = this.#blocks.get(block);
    if (values !== undefined) this.#keep(block, values);
    return values;
  }

  async #readBlock(block: number, signal: AbortSignal): Promise<Values> {
    const { header } = this;
    const bytes = lineBytes(header);
    const firstLine = block * this.#blockLines;
    const endLine = Math.min(firstLine + this.#blockLines, header.lines);
    const from = header.dataOffsetBytes + firstLine * bytes;
    return readValues(header.dtype, await this.#read(from, header.dataOffsetBytes + endLine * bytes, signal));
  }

  #keep(block: number, values: Values): void {
    this.#blocks.delete(block);
    this.#blocks.set(block, values);
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= this.#maxBlocks) break;
      this.#blocks.delete(oldest);
    }
  }
}
