import type { Random } from "../../../core/random.js";

const SECTOR_BYTES = 512;

/** The bytes of one file of a `SimulatedDisk`: as a reader sees them, and as a crash would leave them. */
export class SimulatedInode {
  static #count = 0;
  readonly identity = `inode ${++SimulatedInode.#count}`;
  #durable = new Uint8Array(0);
  #current = new Uint8Array(0);
  /** Since the last sync, in order: bytes at a position, or a new size. */
  #changes: ({ position: number; bytes: Uint8Array } | { size: number })[] = [];

  static of(bytes: Uint8Array): SimulatedInode {
    const inode = new SimulatedInode();
    inode.#durable = bytes.slice();
    inode.#current = bytes.slice();
    return inode;
  }

  get size(): number {
    return this.#current.length;
  }

  bytes(): Uint8Array {
    return this.#current.slice();
  }

  write(bytes: Uint8Array, position: number): void {
    // A write of no bytes behind the end does not move the end.
    if (bytes.length === 0) return;
    this.#current = written(this.#current, bytes, position);
    this.#changes.push({ position, bytes });
  }

  truncate(size: number): void {
    this.#current = resized(this.#current, size);
    this.#changes.push({ size });
  }

  read(into: Uint8Array, position: number): number {
    const part = this.#current.subarray(position, position + into.length);
    into.set(part);
    return part.length;
  }

  sync(): void {
    for (const change of this.#changes) {
      this.#durable =
        "size" in change ? resized(this.#durable, change.size) : written(this.#durable, change.bytes, change.position);
    }
    this.#changes = [];
  }

  loseUnsynced(): void {
    this.#changes = [];
  }

  afterCrash(mode: "drop" | "keep" | "tear", random: Random): SimulatedInode {
    let bytes: Uint8Array = this.#durable;
    for (const change of mode === "drop" ? [] : this.#changes) {
      if ("size" in change) {
        if (mode === "keep" || random.chance(0.5)) bytes = resized(bytes, change.size);
        continue;
      }
      // Sectors reach the disk in any order, or not.
      for (let at = 0; at < change.bytes.length; ) {
        const position = change.position + at;
        const end = Math.min(change.bytes.length, at + SECTOR_BYTES - (position % SECTOR_BYTES));
        if (mode === "keep" || random.chance(0.5)) bytes = written(bytes, change.bytes.subarray(at, end), position);
        at = end;
      }
    }
    return SimulatedInode.of(bytes);
  }
}

function written(target: Uint8Array, bytes: Uint8Array, position: number): Uint8Array<ArrayBuffer> {
  const next = resized(target, Math.max(target.length, position + bytes.length));
  next.set(bytes, position);
  return next;
}

function resized(bytes: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(size);
  next.set(bytes.subarray(0, size));
  return next;
}
