import { type FileSystem, readFully, type StoreFile, TEMPORARY_SUFFIX, writeFully } from "../disk/file-system.js";
import type { RecoveryReport } from "../recovery/recovery-report.js";
import { filesIn } from "../repair/check-files.js";

/** Files are copied piece by piece, so that a whole damaged segment takes no more memory than this. */
const PIECE_BYTES = 1024 * 1024;

function quarantineName(segment: string, offset: number, lengthBytes: number): string {
  return `${segment}-${offset}-${lengthBytes}.bin`;
}

/** Names in the folder, in order: each is a piece of damage that an operator has not taken away. */
export async function quarantinedFiles(fileSystem: FileSystem, directory: string): Promise<string[]> {
  const names = (await filesIn(fileSystem, directory)).map(({ name }) => name);
  return names.filter((name) => !name.endsWith(TEMPORARY_SUFFIX));
}

/** Without what still stands in the log too, and was found there again. */
export function withoutFoundAgain(names: readonly string[], { findings }: Pick<RecoveryReport, "findings">): string[] {
  const again = new Set(
    findings.map(({ segment, offset, lengthBytes }) => quarantineName(segment, offset, lengthBytes)),
  );
  return names.filter((name) => !again.has(name));
}

/**
 * Copies a part of a file durably into the quarantine folder. The name says where the bytes stood, and the same damage found again
 * is not copied again.
 *
 * @returns the file's name in the folder
 */
export async function quarantineBytes(
  fileSystem: FileSystem,
  directory: string,
  segment: string,
  source: StoreFile,
  offset: number,
  lengthBytes: number,
): Promise<string> {
  const name = quarantineName(segment, offset, lengthBytes);
  const path = `${directory}/${name}`;
  if (await fileSystem.exists(path)) return name;
  const temporary = `${path}${TEMPORARY_SUFFIX}`;
  const target = await fileSystem.open(temporary, "createOrUpdate");
  try {
    await target.truncate(0);
    const piece = new Uint8Array(Math.min(PIECE_BYTES, lengthBytes));
    for (let done = 0; done < lengthBytes; ) {
      const count = await readFully(
        source,
        piece.subarray(0, Math.min(piece.length, lengthBytes - done)),
        offset + done,
      );
      if (count === 0) break;
      await writeFully(target, piece.subarray(0, count), done, temporary);
      done += count;
    }
    await target.datasync();
  } finally {
    await target.close();
  }
  await fileSystem.rename(temporary, path);
  await fileSystem.syncDirectory(directory);
  return name;
}

/** Moves a file of the log's folder to the quarantine folder, durably. */
export async function setAside(
  fileSystem: FileSystem,
  directory: string,
  quarantineDirectory: string,
  name: string,
): Promise<void> {
  await fileSystem.rename(`${directory}/${name}`, `${quarantineDirectory}/${name}-stray.bin`);
  // The name that it gets before the one that it loses, so that it always has one. Should it keep both, the next recovery moves it again;
  // and recovery syncs the log's folder once more before it goes on, so that nothing depends on the second sync here.
  await fileSystem.syncDirectory(quarantineDirectory);
  await fileSystem.syncDirectory(directory);
}
