import { formatTimeUs } from "../../core/timestamps.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { snapshotsIn } from "../snapshot/snapshot-folder.js";
import { SNAPSHOT_SECTIONS, type SnapshotHead } from "../snapshot/snapshot-format.js";
import { SnapshotReader } from "../snapshot/snapshot-reader.js";

const SECTION_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(SNAPSHOT_SECTIONS).map(([name, { id }]) => [id, name]),
);

/**
 * The head of a store's newest snapshot in a readable form; null when there is none.
 *
 * @throws {SnapshotError} when the head is damaged, or of another version
 */
export async function describeSnapshot(fileSystem: FileSystem, snapshotPath: string): Promise<object | null> {
  const { newest } = await snapshotsIn(fileSystem, snapshotPath);
  if (newest === null) return null;
  const reader = await SnapshotReader.open(fileSystem, `${snapshotPath}/${newest}`);
  await reader.close();
  return { file: `snapshot/${newest}`, bytes: reader.sizeBytes, ...describeHead(reader.head) };
}

function describeHead({ position, timeUs, segments, sections }: SnapshotHead): object {
  return {
    sequence: position.sequence,
    time: formatTimeUs(timeUs),
    segment: position.segmentBase,
    offset: position.offset,
    header_crc: hex(position.headerCrc),
    segments: segments.map(({ base, salt }) => ({ base, salt: hex(salt) })),
    sections: sections.map(({ id, crc, offset, length }) => ({
      name: SECTION_NAMES.get(id) ?? id,
      offset,
      length,
      crc: hex(crc),
    })),
  };
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}
