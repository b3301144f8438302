import type { MemorySnapshot } from "../../../storage/snapshot/memory-snapshot.js";
import type { SnapshotSection } from "../../../storage/snapshot/snapshot-format.js";

/** Names of the sections that are not equal, byte for byte. */
export function sectionDifferences(left: MemorySnapshot, right: MemorySnapshot): SnapshotSection[] {
  const names = new Set([...left.sections.keys(), ...right.sections.keys()]);
  return [...names].filter((name) => {
    const [a, b] = [left.sections.get(name), right.sections.get(name)];
    return a === undefined || b === undefined || Buffer.compare(a, b) !== 0;
  });
}
