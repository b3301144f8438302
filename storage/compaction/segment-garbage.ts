/** As plain data: what a snapshot keeps. */
export interface SegmentGarbageData {
  dead: [segmentBase: number, bytes: number][];
  /** `places`: segment, bytes, segment, bytes, … */
  live: [owner: string, places: number[]][];
}

/**
 * How many bytes of each segment are records that nothing needs any more, and which records will be so together: those of one owner (a
 * run that has not ended, a component's row, a stored refusal) die when it is released. What belongs to no owner never dies here.
 *
 * It only guides compaction to where there is something to gain: what may be dropped is judged record by record.
 */
export class SegmentGarbage {
  readonly #dead = new Map<number, number>();
  readonly #live = new Map<string, number[]>();

  /** So many bytes there are the owner's. */
  add(owner: string, segmentBase: number, bytes: number): void {
    const places = this.#live.get(owner);
    if (places === undefined) this.#live.set(owner, [segmentBase, bytes]);
    else if (places.at(-2) === segmentBase) places[places.length - 1]! += bytes;
    else places.push(segmentBase, bytes);
  }

  /** All that is the owner's is dead. */
  release(owner: string): void {
    const places = this.#live.get(owner);
    if (places === undefined) return;
    this.#live.delete(owner);
    for (let at = 0; at < places.length; at += 2) this.bury(places[at]!, places[at + 1]!);
  }

  /** So many bytes there are dead. */
  bury(segmentBase: number, bytes: number): void {
    this.#dead.set(segmentBase, this.deadBytes(segmentBase) + bytes);
  }

  deadBytes(segmentBase: number): number {
    return this.#dead.get(segmentBase) ?? 0;
  }

  /** So many bytes that were dead are gone, or turned out to be none. */
  remove(segmentBase: number, bytes: number): void {
    const left = this.deadBytes(segmentBase) - bytes;
    if (left > 0) this.#dead.set(segmentBase, left);
    else this.#dead.delete(segmentBase);
  }

  /** True when the last record of the owner lies in this segment. */
  endsIn(owner: string, segmentBase: number): boolean {
    return this.#live.get(owner)?.at(-2) === segmentBase;
  }

  /** In an order that follows from what there is. */
  export(): SegmentGarbageData {
    const live = [...this.#live].sort(([left], [right]) => (left < right ? -1 : 1));
    return {
      dead: [...this.#dead].sort(([left], [right]) => left - right),
      live: live.map(([owner, places]) => [owner, [...places]]),
    };
  }

  /** Takes in what was exported; only into a table that holds nothing yet. */
  restore({ dead, live }: SegmentGarbageData): void {
    for (const [segmentBase, bytes] of dead) this.#dead.set(segmentBase, bytes);
    for (const [owner, places] of live) this.#live.set(owner, [...places]);
  }
}
