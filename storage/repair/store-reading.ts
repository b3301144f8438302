import { type DataDirectory, viewDataDirectory } from "../disk/data-directory.js";
import { lockHolder } from "../disk/directory-lock.js";
import { nodeFileSystem } from "../disk/file-system.js";
import type { DirectoryEntry, FileSystem } from "../disk/file-system-interface.js";
import { replacing } from "../disk/tolerant-reads.js";
import { TEMPORARY_SUFFIX } from "../disk/whole-files.js";
import { forEachRecord, isOwnRecord } from "../log/committed-batch.js";
import { RecordDecodeError } from "../records/record-decode-error.js";
import { walkLog } from "../recovery/log-walk.js";
import { RecoveryReportBuilder } from "../recovery/recovery-report.js";
import { RecordVerifier } from "./record-verifier.js";

/**
 * A store that is only read, without its lock. If a service writes to it meanwhile, the list of the log's files is that of the moment of opening.
 * So later files do not confuse a reader. The newest segment may end in bytes that are being written.
 */
export interface StoreReading {
  dataDirectory: DataDirectory;
  fileSystem: FileSystem;
  /** The process that has the store locked: a service, most likely. Null when there is none. */
  servedBy: number | null;
}

/** @throws StorageError as `viewDataDirectory`; FileSystemError */
export async function readStore(path: string, fileSystem: FileSystem = nodeFileSystem): Promise<StoreReading> {
  const dataDirectory = await viewDataDirectory(fileSystem, path);
  const servedBy = await lockHolder(fileSystem, `${dataDirectory.path}/lock`);
  if (servedBy === null) return { dataDirectory, fileSystem, servedBy };
  const { metaPath } = dataDirectory;
  const listed = await settledListing(fileSystem, metaPath);
  const readDirectory = async (folder: string): Promise<DirectoryEntry[]> =>
    folder === metaPath ? listed : fileSystem.readDirectory(folder);
  return { dataDirectory, fileSystem: replacing(fileSystem, { readDirectory }), servedBy };
}

/**
 * The segments and hint files at one moment. A single listing may miss a segment that appears meanwhile, and have the next one. Two listings that
 * agree have all that was there between them.
 */
async function settledListing(fileSystem: FileSystem, metaPath: string): Promise<DirectoryEntry[]> {
  for (let before = ""; ; ) {
    const entries = await fileSystem.readDirectory(metaPath);
    const kept = entries.filter(({ name }) => !name.endsWith(TEMPORARY_SUFFIX));
    const names = kept
      .map(({ name }) => name)
      .sort()
      .join("/");
    if (names === before) return kept;
    before = names;
  }
}

/** Paths of the capture files whose removal the log records, relative to the captures folder. It reads the whole log. */
export async function removedCaptures(path: string, on?: FileSystem): Promise<Set<string>> {
  const { dataDirectory, fileSystem } = await readStore(path, on);
  const verifier = new RecordVerifier();
  const removed = new Set<string>();
  await walkLog({
    fileSystem,
    directory: dataDirectory.metaPath,
    builder: new RecoveryReportBuilder(),
    quarantine: async () => null,
    deliversTail: true,
    onRecords: (batch) =>
      forEachRecord(batch, (record) => {
        for (const { path: named, isRemoved } of namedBy(verifier, record)) if (isRemoved) removed.add(named);
      }),
  });
  return removed;
}

/** None for a record that cannot be decoded: the check itself reports it. */
function namedBy(verifier: RecordVerifier, record: Parameters<RecordVerifier["verify"]>[0]) {
  try {
    return isOwnRecord(record.type) ? [] : verifier.verify(record);
  } catch (error) {
    if (error instanceof RecordDecodeError) return [];
    throw error;
  }
}
