import { crc32 } from "node:zlib";
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { TEMPORARY_SUFFIX, writeFully } from "../disk/whole-files.js";
import {
  encodeSnapshotHead,
  type SectionPlace,
  type SectionValues,
  SNAPSHOT_SECTIONS,
  type SnapshotHead,
  type SnapshotSection,
  type SnapshotSink,
  snapshotHeadBytes,
  snapshotName,
  snapshotSequenceOf,
} from "./snapshot-format.js";

/** Small parts are gathered up to this. */
const BUFFER_BYTES = 256 * 1024;
/**
 * After so many bytes a sync: the log shares the disk, and its own syncs must not find hundreds of megabytes of a snapshot before
 * them.
 */
const SYNC_BYTES = 8 * 1024 * 1024;

/**
 * Writes a snapshot file durably and as a whole, then removes the older ones. Of the store's content no more is in memory at a time than
 * one part of a section.
 *
 * Order: temporary file, fdatasync, rename, folder fsync, then unlink.
 *
 * @param fill writes all sections, each once
 * @returns the file's size in bytes
 */
export async function writeSnapshot(
  fileSystem: FileSystem,
  directory: string,
  head: Omit<SnapshotHead, "sections">,
  fill: (sink: SnapshotSink) => Promise<void>,
): Promise<number> {
  const name = snapshotName(head.position.sequence);
  const path = `${directory}/${name}`;
  const temporary = `${path}${TEMPORARY_SUFFIX}`;
  const sectionCount = Object.keys(SNAPSHOT_SECTIONS).length;
  let bytes: number;
  try {
    const file = await fileSystem.open(temporary, "createOrUpdate");
    try {
      await file.truncate(0);
      const writer = new SnapshotWriter(file, temporary, snapshotHeadBytes(head.segments.length, sectionCount));
      await fill(writer);
      await writer.flush();
      if (writer.sections.length !== sectionCount) throw new Error("a snapshot without all of its sections");
      await writeFully(file, encodeSnapshotHead({ ...head, sections: writer.sections }), 0, temporary);
      await file.datasync();
      bytes = writer.offset;
    } finally {
      await file.close();
    }
    await fileSystem.rename(temporary, path);
  } catch (error) {
    await removeQuietly(fileSystem, temporary);
    throw error;
  }
  await fileSystem.syncDirectory(directory);
  for (const { name: other } of await fileSystem.readDirectory(directory)) {
    const sequence = snapshotSequenceOf(other);
    if (sequence !== undefined && other !== name) await fileSystem.unlink(`${directory}/${other}`);
  }
  return bytes;
}

class SnapshotWriter implements SnapshotSink {
  readonly sections: SectionPlace[] = [];
  readonly #file: StoreFile;
  readonly #path: string;
  readonly #buffer = new Uint8Array(BUFFER_BYTES);
  #buffered = 0;
  /** Where what is in the buffer goes. */
  #position: number;
  #unsynced = 0;

  constructor(file: StoreFile, path: string, offset: number) {
    this.#file = file;
    this.#path = path;
    this.#position = offset;
  }

  /** Where the next byte goes. */
  get offset(): number {
    return this.#position + this.#buffered;
  }

  async write<S extends SnapshotSection>(section: S, parts: Iterable<SectionValues<S>>): Promise<void> {
    const place = { id: SNAPSHOT_SECTIONS[section].id, crc: 0, offset: this.offset, length: 0 };
    for (const { buffer, byteOffset, byteLength } of parts) {
      const bytes = new Uint8Array(buffer, byteOffset, byteLength);
      place.crc = crc32(bytes, place.crc);
      place.length += bytes.length;
      if (this.#buffered + bytes.length > BUFFER_BYTES) await this.flush();
      if (bytes.length > BUFFER_BYTES) {
        await this.#put(bytes);
      } else {
        this.#buffer.set(bytes, this.#buffered);
        this.#buffered += bytes.length;
      }
    }
    this.sections.push(place);
  }

  async flush(): Promise<void> {
    const bytes = this.#buffer.subarray(0, this.#buffered);
    this.#buffered = 0;
    await this.#put(bytes);
  }

  async #put(bytes: Uint8Array): Promise<void> {
    if (bytes.length === 0) return;
    await writeFully(this.#file, bytes, this.#position, this.#path);
    this.#position += bytes.length;
    this.#unsynced += bytes.length;
    if (this.#unsynced < SYNC_BYTES) return;
    this.#unsynced = 0;
    await this.#file.datasync();
  }
}

async function removeQuietly(fileSystem: FileSystem, path: string): Promise<void> {
  try {
    await fileSystem.unlink(path);
  } catch {
    // It was not there, or the disk is in trouble: the next start removes what is left.
  }
}
