import type { Random } from "../../core/random.js";
import { RecordVerifier } from "../../http/record-verifier.js";
import { type CheckResult, checkStore } from "../../storage/check-store.js";
import type { LogRecord } from "../../storage/log-batch.js";
import { isChangeRecordType } from "../../storage/record-index.js";
import { SnapshotCheck } from "../../workers/snapshot/check-snapshot.js";
import type { SimulatedDisk } from "./simulated-disk.js";

/**
 * The shipped check, of a store at `directory` on a simulated disk.
 *
 * @param onRecord called for each record
 */
export async function checkDisk(
  disk: SimulatedDisk,
  directory: string,
  onRecord: (record: LogRecord) => void = () => {},
): Promise<CheckResult> {
  const { inspectRecord, namedAtEnd } = new RecordVerifier().inspection;
  const dataDirectory = {
    path: directory,
    metaPath: `${directory}/meta`,
    capturesPath: `${directory}/captures`,
    quarantinePath: `${directory}/quarantine`,
    snapshotPath: `${directory}/snapshot`,
    release: async () => {},
  };
  return await checkStore({
    dataDirectory,
    fileSystem: disk,
    folds: await SnapshotCheck.open(disk, dataDirectory),
    understandsType: isChangeRecordType,
    inspectRecord: (record) => {
      onRecord(record);
      return inspectRecord(record);
    },
    namedAtEnd,
  });
}

const SECTOR_BYTES = 512;

/**
 * Damages one file of a store somewhere: flipped bits, a sector of zeros, or another file's sector.
 *
 * @param lengthOf how much of a file matters; 0: nothing
 * @returns what was done, and to which file; null when nothing changed
 */
export function damageDisk(
  disk: SimulatedDisk,
  random: Random,
  lengthOf: (path: string) => number,
): { path: string; what: string } | null {
  const candidates = disk.paths().filter((path) => lengthOf(path) > 0);
  if (candidates.length === 0) return null;
  const path = random.pick(candidates);
  const before = disk.bytesOf(path);
  const bytes = before.slice();
  const length = lengthOf(path);
  const kind = random.pick(["bits", "bits", "zeros", "stray"] as const);
  const at = random.integer(0, length - 1);
  const sector = at - (at % SECTOR_BYTES);
  const end = Math.min(length, sector + SECTOR_BYTES);
  if (kind === "bits") {
    for (let bits = random.integer(1, 3); bits > 0; bits--)
      bytes[random.integer(0, length - 1)]! ^= 1 << random.integer(0, 7);
  } else if (kind === "zeros") {
    bytes.fill(0, sector, end);
  } else {
    bytes.set(disk.bytesOf(random.pick(candidates)).subarray(0, end - sector), sector);
  }
  if (Buffer.compare(before, bytes) === 0) return null;
  disk.setBytes(path, bytes);
  return { path, what: `${kind} at ${kind === "bits" ? "some of" : sector} in ${path}` };
}
