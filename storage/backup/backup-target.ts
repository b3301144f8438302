import { basename, dirname, resolve } from "node:path";
import { isPlainObject } from "../../core/json/json.js";
import { BACKUP_FILE, FORMAT_FILE } from "../disk/data-directory.js";
import { realPathOf } from "../disk/file-system.js";
import { FileSystemError, orWhereMissing } from "../disk/file-system-error.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { readWholeFile, replaceFile } from "../disk/whole-files.js";

/** A backup that was not made. The message says why, in one line. */
export class BackupError extends Error {
  override name = "BackupError";
}

/** What `backup.json` says of a backup. */
export interface BackupNote {
  /** What tells the store from others: the number and the salt of its first segment. */
  store: string;
  /** The folder that it was made for, without the path: a disk may be mounted elsewhere the next time. */
  folder: string;
  /** The last record. */
  lastSequence: number;
  madeAt: string;
}

/** The folder that a backup becomes. The two others stand beside it while a backup is made. */
export interface BackupTarget {
  path: string;
  /** Is being written, or is left from a backup that did not end. */
  incompletePath: string;
  /** The previous backup, for the moment in which the new one takes its place. */
  previousPath: string;
}

/**
 * Says where the backup goes, without a change.
 *
 * @throws BackupError for a place that is not for a backup of this store
 */
export async function backupTarget(
  fileSystem: FileSystem,
  storePath: string,
  to: string,
  store: string,
): Promise<BackupTarget> {
  const path = await realPathOfNew(to);
  const from = await realPathOf(resolve(storePath));
  if (isWithin(path, from))
    throw new BackupError(`--to: ${path} is the store itself, or in it: name a folder elsewhere`);
  if (isWithin(from, path)) throw new BackupError(`--to: the store is in ${path}: name a folder elsewhere`);
  const target = { path, incompletePath: `${path}.incomplete`, previousPath: `${path}.previous` };
  if ((await fileSystem.statusOf(dirname(path))) === null)
    throw new BackupError(`--to: there is no folder ${dirname(path)}: make it, or mount its disk`);
  for (const beside of [target.incompletePath, target.previousPath])
    await requireOwn(fileSystem, beside, { store, folder: basename(path) });
  await presentIn(fileSystem, path, store);
  return target;
}

/**
 * What the present backup says of itself; null when there is none. If a backup was killed while it took its place, the previous one is put back. So
 * the caller has the lock: another backup may be between its two renames.
 *
 * @throws BackupError as `backupTarget`
 */
export async function takeUp(
  fileSystem: FileSystem,
  { path, previousPath }: BackupTarget,
  store: string,
): Promise<BackupNote | null> {
  if ((await fileSystem.statusOf(path)) === null && (await noteIn(fileSystem, previousPath)) !== null) {
    await fileSystem.rename(previousPath, path);
    await fileSystem.syncDirectory(dirname(path));
  }
  const present = await presentIn(fileSystem, path, store);
  const folder = basename(path);
  // It was renamed since it was made. Its note says whose it is, if this backup is killed while it has its other name.
  if (present !== null && present.folder !== folder)
    await replaceFile(fileSystem, path, BACKUP_FILE, encodeNote({ ...present, folder }));
  if (present === null && (await fileSystem.statusOf(path)) !== null) {
    // It shows now whether another folder can take the place of the empty one. A mount point, for example, cannot be renamed.
    await fileSystem.rename(path, previousPath).catch((error: Error) => {
      throw new BackupError(`--to: ${path} cannot be replaced (${error.message}): name a folder in it`);
    });
    await fileSystem.rename(previousPath, path);
  }
  return present;
}

/** The note of the backup in the folder; null for an empty folder, and for none. */
async function presentIn(fileSystem: FileSystem, path: string, store: string): Promise<BackupNote | null> {
  const status = await fileSystem.statusOf(path);
  if (status === null) return null;
  if (status.kind !== "directory") throw new BackupError(`--to: ${path} is not a folder`);
  if ((await fileSystem.readDirectory(path)).length === 0) return null;
  const note = await noteIn(fileSystem, path);
  if (note === null) {
    const isStore = await fileSystem.exists(`${path}/${FORMAT_FILE}`);
    const what = isStore ? "is a store that was in use, and no backup" : "holds other files, and no backup";
    throw new BackupError(`--to: ${path} ${what}: name another folder; nothing is overwritten`);
  }
  if (note.store !== store) throw new BackupError(`--to: ${path} is the backup of another store: name another folder`);
  return note;
}

/** What was begun for another folder, or of another store, may be somebody's good backup. */
async function requireOwn(
  fileSystem: FileSystem,
  path: string,
  own: Pick<BackupNote, "store" | "folder">,
): Promise<void> {
  const status = await fileSystem.statusOf(path);
  if (status === null) return;
  const entries = status.kind === "directory" ? await orWhereMissing(fileSystem.readDirectory(path), []) : null;
  const names = entries?.map(({ name }) => name) ?? [path];
  const note = await noteIn(fileSystem, path);
  const isOwn =
    note === null
      ? names.every((name) => name === "lock" || name.startsWith(BACKUP_FILE))
      : note.store === own.store && note.folder === own.folder;
  if (isOwn) return;
  const holds = note === null ? "holds other files" : "is another backup";
  throw new BackupError(`--to: ${path} is needed for the backup, but ${holds}: move it away`);
}

/** Null when there is no such file, or when it says something else. */
async function noteIn(fileSystem: FileSystem, path: string): Promise<BackupNote | null> {
  const bytes = await orWhereMissing(readWholeFile(fileSystem, `${path}/${BACKUP_FILE}`), null);
  if (bytes === null) return null;
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (!isPlainObject(value)) return null;
    const { store, folder, last_sequence: lastSequence, made_at: madeAt } = value;
    if (typeof store !== "string" || typeof folder !== "string" || typeof madeAt !== "string") return null;
    return Number.isSafeInteger(lastSequence) ? { store, folder, madeAt, lastSequence: lastSequence as number } : null;
  } catch {
    return null;
  }
}

export function encodeNote({ store, folder, lastSequence, madeAt }: BackupNote): Uint8Array {
  const note = { store, folder, last_sequence: lastSequence, made_at: madeAt };
  return new TextEncoder().encode(`${JSON.stringify(note)}\n`);
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? folder : `${folder}/`);
}

/** The path after following the symbolic links of what exists of it. */
async function realPathOfNew(path: string): Promise<string> {
  const absolute = resolve(path);
  const real = await realPathOf(absolute);
  if (real !== absolute || dirname(absolute) === absolute) return real;
  const parent = await realPathOfNew(dirname(absolute));
  return parent === "/" ? `/${basename(absolute)}` : `${parent}/${basename(absolute)}`;
}

/** Removes a folder with all that is in it, if there is one. Its note goes last, because it says whose the folder is. */
export async function removeTree(fileSystem: FileSystem, path: string, except: readonly string[] = []): Promise<void> {
  const entries = await orWhereMissing(fileSystem.readDirectory(path), null);
  if (entries === null) return;
  const isNote = ({ name }: { name: string }) => name === BACKUP_FILE;
  for (const { name, isDirectory } of [...entries.filter((one) => !isNote(one)), ...entries.filter(isNote)]) {
    if (except.includes(name)) continue;
    if (isDirectory) await removeTree(fileSystem, `${path}/${name}`);
    else await orWhereMissing(fileSystem.unlink(`${path}/${name}`), undefined);
  }
  if (except.length === 0) await orWhereMissing(fileSystem.removeDirectory(path), undefined);
}

const CANNOT_LINK: ReadonlySet<string> = new Set([
  "EXDEV",
  "EPERM",
  "EACCES",
  "EMLINK",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
]);

/** False where these two places cannot share a file. */
export async function linked(fileSystem: FileSystem, from: string, to: string): Promise<boolean> {
  try {
    await fileSystem.link(from, to);
    return true;
  } catch (error) {
    if (error instanceof FileSystemError && CANNOT_LINK.has(error.code)) return false;
    throw error;
  }
}
