/** One ranked bitmap per status over the same positions, each made when its status first occurs. */
import { RankedBitmap } from "./ranked-bitmap.js";

export class StatusBitmaps {
  #bitmaps: (RankedBitmap | undefined)[] = [];

  get bytesUsed(): number {
    return this.#bitmaps.reduce((bytes, bitmap) => bytes + (bitmap?.bytesUsed ?? 0), 0);
  }

  /** The bitmap of a status; undefined if no position ever had it. */
  get(status: number): RankedBitmap | undefined {
    return this.#bitmaps[status];
  }

  /** Takes these statuses, by position, in place of what it held. */
  load(statuses: Uint8Array): void {
    const bits: (Uint32Array | undefined)[] = [];
    for (let position = 0; position < statuses.length; position++) {
      const status = statuses[position]!;
      let words = bits[status];
      if (words === undefined) {
        words = new Uint32Array((statuses.length + 31) >>> 5);
        bits[status] = words;
      }
      words[position >>> 5]! |= 1 << (position & 31);
    }
    this.#bitmaps = Array.from(bits, (words) => words && RankedBitmap.of(words));
  }

  set(position: number, status: number): void {
    let bitmap = this.#bitmaps[status];
    if (bitmap === undefined) {
      bitmap = new RankedBitmap();
      this.#bitmaps[status] = bitmap;
    }
    bitmap.set(position);
  }

  move(position: number, from: number, to: number): void {
    this.#bitmaps[from]?.clear(position);
    this.set(position, to);
  }
}
