/** Small numbers for segments, in order of appearance, where a base of 53 bits would take twice the room a million times. */
export class SegmentOrdinals {
  readonly #bases: number[] = [];
  readonly #ordinals = new Map<number, number>();

  /** The segment's number; a new one for a segment that has none yet. */
  ordinalOf(segmentBase: number): number {
    let ordinal = this.#ordinals.get(segmentBase);
    if (ordinal === undefined) {
      ordinal = this.#bases.length;
      this.#bases.push(segmentBase);
      this.#ordinals.set(segmentBase, ordinal);
    }
    return ordinal;
  }

  /** Takes these bases, by number, in place of what it held. */
  load(bases: Iterable<number>): void {
    this.#bases.length = 0;
    this.#ordinals.clear();
    for (const base of bases) this.ordinalOf(base);
  }

  /** All bases, by number. */
  bases(): number[] {
    return [...this.#bases];
  }

  /** The base of the segment that was given this number. */
  baseOf(ordinal: number): number {
    return this.#bases[ordinal]!;
  }
}
