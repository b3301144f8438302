import { type FileSystem, readFully, type StoreFile, TEMPORARY_SUFFIX, writeFully } from "./file-system.js";

/** Files are copied piece by piece, so that a whole damaged segment takes no more memory than this. */
const PIECE_BYTES = 1024 * 1024;

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
  const name = `${segment}-${offset}-${lengthBytes}.bin`;
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
