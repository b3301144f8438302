/**
 * A growing column of numbers in typed arrays: one value per row, appended at the end, read and replaced anywhere.
 *
 * It grows by whole chunks instead of by doubling one array. So nothing is copied, nothing pauses, and at most one chunk of memory is spare.
 */
type ColumnArray = Uint8Array | Uint16Array | Uint32Array | Float64Array;

export interface ColumnArrayType<A extends ColumnArray> {
  new (length: number): A;
}

/** Large enough that a million rows are few chunks, small enough (64 KiB of u32) for a small store. */
const DEFAULT_CHUNK_VALUES = 16_384;

export class TypedColumn<A extends ColumnArray> {
  readonly #Type: ColumnArrayType<A>;
  readonly #shift: number;
  readonly #mask: number;
  #chunks: A[] = [];
  #length = 0;

  /** @param chunkValues values of a chunk, a power of two */
  constructor(Type: ColumnArrayType<A>, chunkValues = DEFAULT_CHUNK_VALUES) {
    const shift = 31 - Math.clz32(chunkValues);
    if (1 << shift !== chunkValues) throw new RangeError(`chunkValues must be a power of two, not ${chunkValues}`);
    this.#Type = Type;
    this.#shift = shift;
    this.#mask = chunkValues - 1;
  }

  get length(): number {
    return this.#length;
  }

  /** The value of a row, which must be below `length`: this is not checked. */
  get(row: number): number {
    return this.#chunks[row >>> this.#shift]![row & this.#mask]!;
  }

  set(row: number, value: number): void {
    this.#chunks[row >>> this.#shift]![row & this.#mask] = value;
  }

  push(value: number): void {
    const row = this.#length;
    // Beyond 2^32 the shift below would wrap around and overwrite the first rows.
    if (row > 0xffff_ffff) throw new RangeError("a column of the view holds at most 2^32 values");
    this.#length++;
    const chunk = row >>> this.#shift;
    if (chunk === this.#chunks.length) this.#chunks.push(new this.#Type(this.#mask + 1));
    this.#chunks[chunk]![row & this.#mask] = value;
  }

  /** Puts a value before this row; the rows from there on move by one. Costs little near the end: each chunk behind it is moved once. */
  insert(row: number, value: number): void {
    this.push(value);
    let last = this.#length - 1;
    for (; last >>> this.#shift > row >>> this.#shift; last = (last & ~this.#mask) - 1) {
      const chunk = this.chunkOf(last);
      chunk.copyWithin(1, 0, last & this.#mask);
      chunk[0] = this.get((last & ~this.#mask) - 1);
    }
    const chunk = this.chunkOf(row);
    chunk.copyWithin((row & this.#mask) + 1, row & this.#mask, last & this.#mask);
    this.set(row, value);
  }

  /** Copies all values to the beginning of an array that has room for them. */
  copyTo(target: A): void {
    for (const [at, chunk] of this.#chunks.entries()) {
      const start = at << this.#shift;
      target.set(chunk.subarray(0, this.#length - start), start);
    }
  }

  /** The chunk that holds `row`, at `row & (chunkValues - 1)`. */
  chunkOf(row: number): A {
    return this.#chunks[row >>> this.#shift]!;
  }
}
