import {
  type SectionValues,
  SNAPSHOT_SECTIONS,
  type SnapshotSection,
  type SnapshotSink,
  type SnapshotSource,
} from "./snapshot-format.js";

/** A snapshot in memory: what was written to it, by section, as bytes. */
export class MemorySnapshot implements SnapshotSink, SnapshotSource {
  readonly sections = new Map<SnapshotSection, Uint8Array>();

  async write<S extends SnapshotSection>(section: S, parts: Iterable<SectionValues<S>>): Promise<void> {
    this.sections.set(section, joinedBytes(parts));
  }

  async read<S extends SnapshotSection>(section: S): Promise<SectionValues<S>> {
    const bytes = this.sections.get(section);
    if (bytes === undefined) throw new Error(`no section ${section}`);
    return new SNAPSHOT_SECTIONS[section].Type(new Uint8Array(bytes).buffer) as SectionValues<S>;
  }
}

/** The parts of a column as one array of bytes. */
export function joinedBytes(parts: Iterable<ArrayBufferView>): Uint8Array<ArrayBuffer> {
  const arrays = Array.from(parts, (part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  const joined = new Uint8Array(arrays.reduce((bytes, array) => bytes + array.length, 0));
  let at = 0;
  for (const array of arrays) {
    joined.set(array, at);
    at += array.length;
  }
  return joined;
}
