import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { readFully, TEMPORARY_SUFFIX, writeFully } from "../disk/whole-files.js";
import { filesIn } from "../repair/check-files.js";
import type { RecoveryReport } from "./recovery-report.js";

/** Files are copied in pieces of this size, so that a whole damaged segment takes no more memory. */
const PIECE_BYTES = 1024 * 1024;

function quarantineName(segment: string, offset: number, lengthBytes: number): string {
  return `${segment}-${offset}-${lengthBytes}.bin`;
}

/** Names in the quarantine folder, in order. Each is damage that no operator has removed yet. */
export async function quarantinedFiles(fileSystem: FileSystem, directory: string): Promise<string[]> {
  const names = (await filesIn(fileSystem, directory)).map(({ name }) => name);
  return names.filter((name) => !name.endsWith(TEMPORARY_SUFFIX));
}

/** The quarantined files without those whose damage is still in the log and was found again. */
export function withoutFoundAgain(names: readonly string[], { findings }: Pick<RecoveryReport, "findings">): string[] {
  const again = new Set(
    findings.map(({ segment, offset, lengthBytes }) => quarantineName(segment, offset, lengthBytes)),
  );
  return names.filter((name) => !again.has(name));
}

/**
 * Copies a part of a file durably into the quarantine folder. The copy's name says where the bytes were. So damage that
 * is found again is not copied again.
 *
 * @returns the name of the copy in the folder
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
  // The new name is made durable before the old one is gone, so that the file always has a name. If a crash leaves both, the next recovery moves it
  // again. Recovery syncs the log's folder once more before it goes on, so nothing depends on the second sync here.
  await fileSystem.syncDirectory(quarantineDirectory);
  await fileSystem.syncDirectory(directory);
}
