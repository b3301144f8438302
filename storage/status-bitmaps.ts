/** One ranked bitmap per status over the same positions, each made when its status first occurs. */
import { RankedBitmap } from "./ranked-bitmap.js";

export class StatusBitmaps {
  readonly #bitmaps: (RankedBitmap | undefined)[] = [];

  get bytesUsed(): number {
    return this.#bitmaps.reduce((bytes, bitmap) => bytes + (bitmap?.bytesUsed ?? 0), 0);
  }

  /** The bitmap of a status; undefined if no position ever had it. */
  get(status: number): RankedBitmap | undefined {
    return this.#bitmaps[status];
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
