import { crc32 } from "node:zlib";
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { readFully } from "../disk/whole-files.js";
import {
  decodeSnapshotHead,
  headBytesOf,
  type SectionPlace,
  type SectionValues,
  SNAPSHOT_FIXED_BYTES,
  SNAPSHOT_SECTIONS,
  SnapshotError,
  type SnapshotHead,
  type SnapshotSection,
  type SnapshotSource,
} from "./snapshot-format.js";

/** Read and checked at a time, so that the CRC is taken of what the processor's cache still has. */
const SLICE_BYTES = 1024 * 1024;

/** Reads a snapshot file, section by section, each verified as it is read. */
export class SnapshotReader implements SnapshotSource {
  /** @throws {SnapshotError} The head is damaged or of another version, or the file has not the size that it says. */
  static async open(fileSystem: FileSystem, path: string): Promise<SnapshotReader> {
    const file = await fileSystem.open(path, "read");
    try {
      const sizeBytes = await file.size();
      const fixed = new Uint8Array(SNAPSHOT_FIXED_BYTES);
      const headBytes = headBytesOf(fixed.subarray(0, await readFully(file, fixed, 0)), sizeBytes);
      const bytes = new Uint8Array(headBytes);
      if ((await readFully(file, bytes, 0)) < headBytes) throw new SnapshotError("it is shorter than its head");
      const head = decodeSnapshotHead(bytes);
      let end = headBytes;
      for (const { offset, length } of head.sections) {
        if (offset !== end) throw new SnapshotError("its sections do not follow one another");
        end += length;
      }
      if (end !== sizeBytes) throw new SnapshotError(`it has ${sizeBytes} bytes instead of ${end}`);
      return new SnapshotReader(file, head, sizeBytes);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  readonly head: SnapshotHead;
  readonly sizeBytes: number;
  readonly #file: StoreFile;
  readonly #places: ReadonlyMap<number, SectionPlace>;

  private constructor(file: StoreFile, head: SnapshotHead, sizeBytes: number) {
    this.#file = file;
    this.head = head;
    this.sizeBytes = sizeBytes;
    this.#places = new Map(head.sections.map((place) => [place.id, place]));
  }

  async read<S extends SnapshotSection>(section: S): Promise<SectionValues<S>> {
    const { id, Type } = SNAPSHOT_SECTIONS[section];
    const place = this.#places.get(id);
    if (place === undefined) throw new SnapshotError(`it has no section ${section}`);
    const bytes = new Uint8Array(place.length);
    let crc = 0;
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      const slice = bytes.subarray(at, at + SLICE_BYTES);
      if ((await readFully(this.#file, slice, place.offset + at)) < slice.length) {
        throw new SnapshotError("it became shorter while it was read");
      }
      crc = crc32(slice, crc);
    }
    if (crc !== place.crc) throw new SnapshotError(`its section ${section} does not match its CRC`);
    if (place.length % Type.BYTES_PER_ELEMENT !== 0) throw new SnapshotError(`its section ${section} ends in a value`);
    return new Type(bytes.buffer) as SectionValues<S>;
  }

  /** Verifies every section, keeping none. @throws {SnapshotError} */
  async verify(): Promise<void> {
    for (const section of Object.keys(SNAPSHOT_SECTIONS) as SnapshotSection[]) await this.read(section);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** @throws {SnapshotError} Columns of one table that have not the same count of rows. */
export function assertRows(table: string, rows: number, ...columns: readonly { length: number }[]): void {
  for (const { length } of columns) {
    if (length !== rows) throw new SnapshotError(`its table of ${table} has columns of ${rows} and of ${length} rows`);
  }
}

/** @throws {SnapshotError} A place in a table that has so many rows which it does not have; `none` is no place. */
export function assertPlaces(table: string, rows: number, places: Uint8Array | Uint32Array, none?: number): void {
  // One loop over a column that may have a million values: the answer first, then what is wrong.
  let highest = -1;
  for (let at = 0; at < places.length; at++) {
    const place = places[at] as number;
    if (place > highest && place !== none) highest = place;
  }
  if (highest >= rows)
    throw new SnapshotError(`it names place ${highest} of its table of ${table}, which has ${rows} rows`);
}

/** @throws {SnapshotError} Ids, four words each and the most significant first, of which one is not above the one before. */
export function assertAscendingIds(table: string, words: Uint32Array): void {
  for (let at = 4; at < words.length; at += 4) {
    let word = 0;
    while (word < 3 && words[at + word] === words[at + word - 4]) word++;
    if (!((words[at + word] as number) > (words[at + word - 4] as number))) {
      throw new SnapshotError(`its table of ${table} is not in order at row ${at / 4}`);
    }
  }
}

/** @throws {SnapshotError} What is no time in microseconds. */
export function assertTimes(table: string, timesUs: Float64Array): void {
  for (let at = 0; at < timesUs.length; at++) {
    const timeUs = timesUs[at] as number;
    if (!(timeUs >= 0 && timeUs <= Number.MAX_SAFE_INTEGER)) {
      throw new SnapshotError(`its table of ${table} has the time ${timeUs} at row ${at}`);
    }
  }
}

/** @throws {SnapshotError} Ends of texts that do not ascend, or not to the end of their bytes. */
export function assertEnds(table: string, ends: Uint32Array, bytes: Uint8Array): void {
  let last = 0;
  for (let at = 0; at < ends.length; at++) {
    const end = ends[at] as number;
    if (end < last) throw new SnapshotError(`its ${table} end at ${end} behind ${last}`);
    last = end;
  }
  if (last !== bytes.length) throw new SnapshotError(`its ${table} end at ${last} of ${bytes.length} bytes`);
}
