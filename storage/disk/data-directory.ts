/**
 * The data directory:
 *
 *     format.json            what wrote it: {"format": 1, "service": "inspection-results-service"}
 *     lock/                  who has it: see directory-lock.ts
 *     meta/                  segments of the log: see segment.ts
 *     snapshot/              what the log adds up to, a shortcut for opening: see snapshot-format.ts
 *     captures/<yyyymm>/     stored bytes of runs: see capture-path.ts
 *     ballast.bin            room to give back when the disk is full: see ballast.ts
 *     quarantine/            bytes that were damaged, as they were found
 *     cell.sock              the cell link's socket
 */
import { isPlainObject } from "../../core/json/json.js";
import { segmentBaseOf } from "../log/segment.js";
import { StorageError } from "../storage-error.js";
import { requireUsable } from "./directory-condition.js";
import { lockDirectory } from "./directory-lock.js";
import {
  type FileSystem,
  FileSystemError,
  isMissing,
  nodeFileSystem,
  readWholeFile,
  replaceFile,
  TEMPORARY_SUFFIX,
} from "./file-system.js";

/** Of the directory as a whole: raised when a release could no longer make sense of what a newer one keeps in it. */
export const DATA_FORMAT = 1;

const FORMAT_FILE = "format.json";
const SERVICE = "inspection-results-service";
const FORMAT_TEXT = `${JSON.stringify({ format: DATA_FORMAT, service: SERVICE })}\n`;
const LOG_FOLDER = "meta";
/** Made before `format.json`, and empty until it is there. */
const LEFT_BY_FIRST_START: ReadonlySet<string> = new Set([LOG_FOLDER, "captures", "quarantine", "snapshot"]);
/** Of a first start too; and what the root of a file system of its own holds. */
const ALWAYS_ALLOWED: ReadonlySet<string> = new Set(["lock", `${FORMAT_FILE}${TEMPORARY_SUFFIX}`, "lost+found"]);

export interface DataDirectory {
  path: string;
  metaPath: string;
  capturesPath: string;
  quarantinePath: string;
  snapshotPath: string;
  /** Lets another process have the directory. Everything in it must be closed. */
  release(): Promise<void>;
}

export interface LockedDataDirectory extends DataDirectory {
  /** False once somebody has taken the file of the lock away. */
  isLockIntact(): Promise<boolean>;
}

export interface DataDirectoryOptions {
  path: string;
  /** False to refuse a directory that holds no store (`store_missing`). */
  creates: boolean;
  fileSystem?: FileSystem;
  /** Keeps other processes out; default: a socket in the `lock` folder. */
  lock?: typeof lockDirectory;
}

/** A path in the directory, as it stands in that; any other as it is. */
export function nameIn({ path }: Pick<DataDirectory, "path">, inside: string): string {
  return inside.startsWith(`${path}/`) ? inside.slice(path.length + 1) : inside;
}

/**
 * Takes the directory for this process alone, and makes what is missing of its layout.
 *
 * @throws StorageError `directory_locked` while another process has it, `directory_unusable`, `format_unsupported`, `store_missing`,
 *   `log_missing`, `format_missing`
 */
export async function openDataDirectory(options: DataDirectoryOptions): Promise<LockedDataDirectory> {
  const { fileSystem = nodeFileSystem } = options;
  const path = options.path.length > 1 ? options.path.replace(/\/+$/, "") : options.path;
  try {
    return await open(fileSystem, path, options);
  } catch (error) {
    throw error instanceof FileSystemError ? ((await unusable(fileSystem, path, error)) ?? error) : error;
  }
}

async function open(
  fileSystem: FileSystem,
  path: string,
  { creates, lock: takeLock = lockDirectory }: DataDirectoryOptions,
): Promise<LockedDataDirectory> {
  await requireStoreOrRoom(fileSystem, path, creates);
  await requireUsable(fileSystem, path, creates);
  await fileSystem.makeDirectory(path);
  const lock = await takeLock(fileSystem, `${path}/lock`);
  try {
    const hasFormat = await checkFormat(fileSystem, path);
    const paths = {
      metaPath: `${path}/${LOG_FOLDER}`,
      capturesPath: `${path}/captures`,
      quarantinePath: `${path}/quarantine`,
      snapshotPath: `${path}/snapshot`,
    };
    if (hasFormat) await requireLog(fileSystem, path, paths.metaPath);
    for (const directory of Object.values(paths)) await fileSystem.makeDirectory(directory);
    await fileSystem.syncDirectory(path);
    await fileSystem.syncDirectory(parentOf(path));
    if (!hasFormat) await syncAbove(fileSystem, parentOf(path));
    if (!hasFormat) await replaceFile(fileSystem, path, FORMAT_FILE, new TextEncoder().encode(FORMAT_TEXT));
    return { path, ...paths, release: () => lock.release(), isLockIntact: () => lock.isIntact() };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/**
 * Refuses, before anything is made there, a folder that is not the store's: one without `format.json` that holds anything but what a
 * first start can have left before it came as far as that file. So no store begins among somebody's files, and a store whose
 * `format.json` got lost is not taken for one of this release's format in silence.
 */
async function requireStoreOrRoom(fileSystem: FileSystem, path: string, creates: boolean): Promise<void> {
  const hasFormat = () => fileSystem.exists(`${path}/${FORMAT_FILE}`);
  if (await hasFormat()) return;
  const entries = await namesIn(fileSystem, path);
  const logged = (await namesIn(fileSystem, `${path}/${LOG_FOLDER}`)).filter(
    (name) => segmentBaseOf(name) !== undefined,
  );
  const foreign: string[] = [];
  for (const name of entries) {
    const isLeft = LEFT_BY_FIRST_START.has(name) && (await namesIn(fileSystem, `${path}/${name}`)).length === 0;
    if (!isLeft && !ALWAYS_ALLOWED.has(name)) foreign.push(name);
  }
  // Another process may have begun the store meanwhile: its lock is what decides then.
  if (await hasFormat()) return;
  if (logged.length > 0) {
    throw new StorageError(
      "format_missing",
      `${path} has the log of a store and no ${FORMAT_FILE}, which says what wrote it: put it back. For a store of this release it holds ` +
        FORMAT_TEXT.trim(),
      { path },
    );
  }
  if (!creates) throw missing(path);
  if (foreign.length === 0) return;
  const shown = foreign.slice(0, 3).join(", ") + (foreign.length > 3 ? `, … (${foreign.length} in all)` : "");
  throw new StorageError(
    "store_missing",
    `${path} holds no store but other files (${shown}): a store needs a folder of its own, which is created if it is missing`,
    { path },
  );
}

/** Names in the folder; none where there is no folder. */
async function namesIn(fileSystem: FileSystem, path: string): Promise<string[]> {
  try {
    const entries = await fileSystem.readDirectory(path);
    return entries.map(({ name }) => name).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** What the file system refuses, said in terms of the data directory; undefined for what is no matter of the directory as such. */
async function unusable(
  fileSystem: FileSystem,
  path: string,
  error: FileSystemError,
): Promise<StorageError | undefined> {
  let reason = UNUSABLE[error.code];
  if (reason === undefined) return undefined;
  let subject = `the data directory ${path}`;
  if (error.code === "ENOTDIR") {
    const found = await nearestThere(fileSystem, path);
    if (found !== path) reason = `lies below ${found}, which ${reason}`;
  } else if (error.code === "EEXIST") {
    // Of the link, which may stand above the directory or within it.
    if (path.startsWith(`${error.path}/`)) reason = `lies below ${error.path}, which ${reason}`;
    else if (error.path !== path) subject = error.path;
  } else if (error.code === "ELOOP") {
    // Of the directory itself, where it cannot be looked at either; else of what is in it.
    const isOwn = await fileSystem.statusOf(path).then(
      () => false,
      () => true,
    );
    if (!isOwn) subject = error.path;
  } else if (error.code === "ENOENT") {
    // Whatever is not there is made: here nothing can be.
    if (error.operation !== "mkdir") return undefined;
  }
  return new StorageError("directory_unusable", `${subject} ${reason} (${error.message})`, { path, cause: error.code });
}

/** The path, or the nearest above it that is there. */
async function nearestThere(fileSystem: FileSystem, path: string): Promise<string> {
  let at = path;
  while (parentOf(at) !== at && (await fileSystem.statusOf(at)) === null) at = parentOf(at);
  return at;
}

const UNUSABLE: Readonly<Record<string, string>> = {
  ENOTDIR: "is not a folder",
  EROFS: "is on a read-only file system; every command takes the directory's lock, which is written there",
  EACCES: "may not be read and written by this account",
  EPERM: "may not be read and written by this account",
  EEXIST: "is a symbolic link to what is not there: mount it, or remove the link",
  ELOOP: "leads through symbolic links that come back to themselves",
  ENOENT: "cannot be made there",
};

/**
 * A new store's folder may have been made with folders above it: the name of each is durable only once the folder that holds it is synced.
 * What this account may not read it has not made, nor anything above that.
 */
async function syncAbove(fileSystem: FileSystem, path: string): Promise<void> {
  for (let at = path; parentOf(at) !== at; at = parentOf(at)) {
    try {
      await fileSystem.syncDirectory(parentOf(at));
    } catch (error) {
      if (error instanceof FileSystemError && (error.code === "EACCES" || error.code === "EPERM")) return;
      throw error;
    }
  }
}

/** True when the format is said and is this release's; false when the directory is new. */
async function checkFormat(fileSystem: FileSystem, path: string): Promise<boolean> {
  let text: string;
  try {
    text = new TextDecoder().decode(await readWholeFile(fileSystem, `${path}/${FORMAT_FILE}`));
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
  const format = formatIn(text);
  if (format === DATA_FORMAT) return true;
  throw new StorageError(
    "format_unsupported",
    format === null
      ? `${path}/${FORMAT_FILE} does not say the format of a store of this service: it holds ${JSON.stringify(text.slice(0, 100))}`
      : `the store in ${path} has format ${format}; this release reads format ${DATA_FORMAT}: ` +
          "open it with the release that wrote it, or a newer one",
    { path, format, readable: DATA_FORMAT },
  );
}

/** The folder of the log is made before the format is said: a store without it has lost it, and must not begin anew in silence. */
async function requireLog(fileSystem: FileSystem, path: string, metaPath: string): Promise<void> {
  if (await fileSystem.exists(metaPath)) return;
  throw new StorageError(
    "log_missing",
    `the store in ${path} has lost its log: there is no ${metaPath}. Put it back, or start with another directory`,
    { path: metaPath },
  );
}

function formatIn(text: string): number | null {
  try {
    const value: unknown = JSON.parse(text);
    if (!isPlainObject(value) || (value.service ?? SERVICE) !== SERVICE) return null;
    return Number.isSafeInteger(value.format) ? (value.format as number) : null;
  } catch {
    return null;
  }
}

function missing(path: string): StorageError {
  return new StorageError("store_missing", `${path} holds no store: it has no ${FORMAT_FILE}`, { path });
}

function parentOf(path: string): string {
  const at = path.lastIndexOf("/");
  if (at < 0) return ".";
  return at === 0 ? "/" : path.slice(0, at);
}
