import { monthOf } from "../captures/capture-path.js";
import { hintBaseOf } from "../log/hint-format.js";
import { segmentBaseOf } from "../log/segment.js";
import { StorageError } from "../storage-error.js";
import { FileSystemError } from "./file-system-error.js";
import type { FileSystem } from "./file-system-interface.js";
import { TEMPORARY_SUFFIX } from "./whole-files.js";

const FOLDERS = ["lock", "meta", "captures", "quarantine"] as const;
const FILES = [
  "format.json",
  `format.json${TEMPORARY_SUFFIX}`,
  "ballast.bin",
  `ballast.bin${TEMPORARY_SUFFIX}`,
] as const;

/**
 * Checks before a start that everything in a data directory is a file or a folder as it should be, and may be read and written. Otherwise the
 * service would find out halfway through its start, or while it serves. Missing things are no fault here.
 *
 * @param options `forCaptures`: captures will be stored, so the folder for this month's captures is checked too. `access`: what will be done.
 * @throws StorageError `directory_unusable` for a file in place of a folder, and the like
 * @throws FileSystemError for what this account may not read or write
 */
export async function requireUsable(
  fileSystem: FileSystem,
  path: string,
  { forCaptures, access }: { forCaptures: boolean; access: "read" | "change" },
): Promise<void> {
  if (!(await isThere(fileSystem, path, "directory"))) return;
  await fileSystem.assertAccess(path, access);
  for (const name of FILES) await isThere(fileSystem, `${path}/${name}`, "file");
  const folders: string[] = [...FOLDERS];
  if (forCaptures) folders.push(`captures/${monthOf(Date.now())}`);
  for (const folder of folders) {
    if (await isThere(fileSystem, `${path}/${folder}`, "directory")) {
      await fileSystem.assertAccess(`${path}/${folder}`, access);
    }
  }
  try {
    const segments = await namesOf(fileSystem, `${path}/meta`, segmentBaseOf);
    for (const segment of segments)
      await fileSystem.assertAccess(segment, segment === segments.at(-1) ? access : "read");
    await namesOf(fileSystem, `${path}/meta`, hintBaseOf);
  } catch (error) {
    // Unreadable bytes are not reported here: `check` and `inspect` name them beside all the rest.
    const isOfDisk = error instanceof FileSystemError && !ACCESS_CODES.has(error.code);
    if (forCaptures || !isOfDisk) throw error;
  }
}

const ACCESS_CODES: ReadonlySet<string> = new Set(["EACCES", "EPERM", "EROFS"]);

/** The files of the folder whose names have a number, sorted by it. @throws StorageError when one is not a file */
async function namesOf(
  fileSystem: FileSystem,
  folder: string,
  numberOf: (name: string) => number | undefined,
): Promise<string[]> {
  if ((await fileSystem.statusOf(folder)) === null) return [];
  const names = (await fileSystem.readDirectory(folder)).map(({ name }) => name);
  const numbered = names.filter((name) => numberOf(name) !== undefined).sort();
  const paths = numbered.map((name) => `${folder}/${name}`);
  for (const path of paths) await isThere(fileSystem, path, "file");
  return paths;
}

/** False when nothing has this path. @throws StorageError when it is of another kind than expected */
async function isThere(fileSystem: FileSystem, path: string, expected: "file" | "directory"): Promise<boolean> {
  const status = await fileSystem.statusOf(path);
  if (status === null || status.kind === expected) return status !== null;
  const found = { file: "a file", directory: "a folder", other: "a FIFO, a socket or a device" }[status.kind];
  const wanted = expected === "file" ? "a file" : "a folder";
  throw new StorageError(
    "directory_unusable",
    `${path} is ${found}, but the store needs ${wanted} there: move it away`,
    { path },
  );
}
