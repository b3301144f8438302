import { isPlainObject } from "../../../core/json/json.js";
import { orWhereMissing } from "../../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { readWholeFile, replaceFile } from "../../../storage/disk/whole-files.js";

/** In the data directory of a store that was made anew from the plant, until somebody has read what it lacks. */
const NOTE_FILE = "restored.json";

export async function writeRestoredNote(fileSystem: FileSystem, path: string, message: string): Promise<void> {
  await replaceFile(fileSystem, path, NOTE_FILE, new TextEncoder().encode(`${JSON.stringify({ message })}\n`));
}

/** What the restored store lacks, for people; null if it was not restored, or if somebody has read it. */
export async function readRestoredNote(fileSystem: FileSystem, path: string): Promise<string | null> {
  const bytes = await orWhereMissing(readWholeFile(fileSystem, `${path}/${NOTE_FILE}`), null);
  if (bytes === null) return null;
  try {
    const note: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (isPlainObject(note) && typeof note.message === "string") return note.message;
  } catch {
    // Whoever changed the file has read it, but the store was restored all the same.
  }
  return `this store was restored from the plant; ${path}/${NOTE_FILE} cannot be read`;
}

/** @returns false if there was nothing to acknowledge */
export async function removeRestoredNote(fileSystem: FileSystem, path: string): Promise<boolean> {
  if (!(await fileSystem.exists(`${path}/${NOTE_FILE}`))) return false;
  await fileSystem.unlink(`${path}/${NOTE_FILE}`);
  await fileSystem.syncDirectory(path);
  return true;
}
