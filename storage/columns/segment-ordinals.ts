/** Numbers segments in order of appearance. A small number takes half the room of a base, a million times. */
export class SegmentOrdinals {
  readonly #bases: number[] = [];
  readonly #ordinals = new Map<number, number>();

  /** The segment's number; a new segment gets the next one. */
  ordinalOf(segmentBase: number): number {
    let ordinal = this.#ordinals.get(segmentBase);
    if (ordinal === undefined) {
      ordinal = this.#bases.length;
      this.#bases.push(segmentBase);
      this.#ordinals.set(segmentBase, ordinal);
    }
    return ordinal;
  }

  /** The base of the segment with this number. */
  baseOf(ordinal: number): number {
    return this.#bases[ordinal]!;
  }
}
