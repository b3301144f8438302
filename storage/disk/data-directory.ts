/**
 * The data directory:
 *
 *     format.json            the format, the service and the store's id: {"format": 1, "release": "1.0",
 *                            "service": "inspection-results-service", "store_id": "<UUID>"}
 *     lock/                  which process uses it: see directory-lock.ts
 *     meta/                  segments of the log and their hint files: see segment.ts, hint-format.ts
 *     findings/              columns of checks and defects, made again when missing: see findings-format.ts
 *     captures/<yyyymm>/     stored bytes of runs: see capture-path.ts
 *     ballast.bin            room to give back when the disk is full: see ballast.ts
 *     quarantine/            copies of damaged bytes, as they were found
 *     cell.sock              the cell link's socket
 *     backup.json            only in a backup that nobody has written to since: see storage/backup
 *     webhook-signing-key.pem  only if a webhook asks for it: see workers/webhooks/signing-key.ts
 */
import { randomUUID } from "node:crypto";
import { dirname } from "node:path";
import { isPlainObject } from "../../core/json/json.js";
import { segmentBaseOf } from "../log/segment.js";
import { StorageError } from "../storage-error.js";
import { requireUsable } from "./directory-condition.js";
import { type DirectoryLock, lockDirectory } from "./directory-lock.js";
import { nodeFileSystem } from "./file-system.js";
import { FileSystemError, orWhereMissing } from "./file-system-error.js";
import type { FileSystem } from "./file-system-interface.js";
import { readWholeFile, replaceFile, TEMPORARY_SUFFIX } from "./whole-files.js";

/** Format of the directory as a whole. It is raised when earlier releases could not read it any more. */
export const DATA_FORMAT = 1;
/** The release whose format this is. Older stores name no release. */
const RELEASE = "1.0";

export const FORMAT_FILE = "format.json";
/** Says that the folder is a backup as it was made. Whoever opens the folder to write removes it. */
export const BACKUP_FILE = "backup.json";
const SERVICE = "inspection-results-service";
const FORMAT = { format: DATA_FORMAT, release: RELEASE, service: SERVICE };
const PUT_BACK = `Put that file back from a backup; for a store of this release it holds ${JSON.stringify(FORMAT)}, and the store's id`;
/** A canonical UUID (RFC 9562) in lower case. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const LOG_FOLDER = "meta";
/** A first start makes these before `format.json`, and they are empty until it exists. */
const LEFT_BY_FIRST_START: ReadonlySet<string> = new Set([LOG_FOLDER, "captures", "quarantine"]);
/** A first start can leave these too; `lost+found` is in the root of every ext4 file system. */
const ALWAYS_ALLOWED: ReadonlySet<string> = new Set([
  "lock",
  BACKUP_FILE,
  `${FORMAT_FILE}${TEMPORARY_SUFFIX}`,
  "lost+found",
]);

export interface DataDirectory {
  path: string;
  metaPath: string;
  capturesPath: string;
  quarantinePath: string;
  /** A UUID that no other store has; null for an older store that has not been served since stores have one. */
  storeId: string | null;
  /** Unlocks the directory for other processes. Everything in it must be closed. */
  release(): Promise<void>;
}

export interface LockedDataDirectory extends DataDirectory {
  restoreLock: DirectoryLock["restore"];
}

export interface DataDirectoryOptions {
  path: string;
  /** False to refuse a directory that holds no store (`store_missing`). */
  creates: boolean;
  fileSystem?: FileSystem;
  /** Keeps other processes out; default: a socket in the `lock` folder. */
  lock?: typeof lockDirectory;
}

/** A path relative to the data directory; a path outside of it stays as it is. */
export function nameIn({ path }: Pick<DataDirectory, "path">, inside: string): string {
  return inside.startsWith(`${path}/`) ? inside.slice(path.length + 1) : inside;
}

/**
 * Locks the directory for this process, and makes the missing parts of its layout.
 *
 * @throws StorageError `directory_locked` while another process has it, `directory_unusable`, `format_unsupported`, `store_missing`,
 *   `log_missing`, `format_missing`
 */
export async function openDataDirectory(options: DataDirectoryOptions): Promise<LockedDataDirectory> {
  const { fileSystem = nodeFileSystem } = options;
  const path = withoutSlashes(options.path);
  return orUnusable(fileSystem, path, open(fileSystem, path, options));
}

/**
 * Opens a store to read it: without its lock, and without writing. So it may be on a read-only disk, and it may be served meanwhile.
 *
 * @throws StorageError as `openDataDirectory`, except `directory_locked`
 */
export async function viewDataDirectory(fileSystem: FileSystem, givenPath: string): Promise<DataDirectory> {
  const path = withoutSlashes(givenPath);
  return orUnusable(fileSystem, path, view(fileSystem, path));
}

async function view(fileSystem: FileSystem, path: string): Promise<DataDirectory> {
  await requireStoreOrRoom(fileSystem, path, false);
  await requireUsable(fileSystem, path, { forCaptures: false, access: "read" });
  const found = await readFormat(fileSystem, path);
  const paths = pathsIn(path);
  await requireLog(fileSystem, path, paths.metaPath);
  return { path, ...paths, storeId: found?.storeId ?? null, release: async () => {} };
}

function withoutSlashes(path: string): string {
  return path.length > 1 ? path.replace(/\/+$/, "") : path;
}

export function pathsIn(path: string): Pick<DataDirectory, "metaPath" | "capturesPath" | "quarantinePath"> {
  return { metaPath: `${path}/${LOG_FOLDER}`, capturesPath: `${path}/captures`, quarantinePath: `${path}/quarantine` };
}

async function orUnusable<T>(fileSystem: FileSystem, path: string, opening: Promise<T>): Promise<T> {
  try {
    return await opening;
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
  await requireUsable(fileSystem, path, { forCaptures: creates, access: "change" });
  await fileSystem.makeDirectory(path);
  const lock = await takeLock(fileSystem, `${path}/lock`);
  try {
    const found = await readFormat(fileSystem, path);
    const hasFormat = found !== null;
    const paths = pathsIn(path);
    if (hasFormat) await requireLog(fileSystem, path, paths.metaPath);
    await orWhereMissing(fileSystem.unlink(`${path}/${BACKUP_FILE}`), undefined);
    for (const directory of Object.values(paths)) await fileSystem.makeDirectory(directory);
    await fileSystem.syncDirectory(path);
    await fileSystem.syncDirectory(dirname(path));
    if (!hasFormat) await syncAbove(fileSystem, dirname(path));
    let storeId = found?.storeId ?? null;
    // A command that only reads leaves an older store as it is.
    if (storeId === null && creates) {
      storeId = randomUUID();
      await replaceFile(fileSystem, path, FORMAT_FILE, formatBytes(storeId));
    }
    return { path, ...paths, storeId, release: () => lock.release(), restoreLock: () => lock.restore() };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/**
 * Refuses a folder that holds other files and no store, before anything is made in it. A folder without `format.json`
 * may only hold what an interrupted first start leaves. So no store begins among somebody's files, and a store that has
 * lost its `format.json` is not silently taken for one of this release's format.
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
  // Another process may have begun the store meanwhile; then its lock decides.
  if (await hasFormat()) return;
  if (logged.length > 0) {
    throw new StorageError(
      "format_missing",
      `${path} holds the log of a store, but not the file ${FORMAT_FILE}, which names the store's format. ${PUT_BACK}`,
      { path },
    );
  }
  if (!creates) throw missing(path);
  if (foreign.length === 0) return;
  const shown = foreign.slice(0, 3).join(", ") + (foreign.length > 3 ? `, … (${foreign.length} in all)` : "");
  throw new StorageError(
    "store_missing",
    `${path} holds no store, but other files (${shown}): give the store a folder of its own; a missing folder is created`,
    { path },
  );
}

/** Names in the folder; none if there is no folder. */
async function namesIn(fileSystem: FileSystem, path: string): Promise<string[]> {
  const entries = await orWhereMissing(fileSystem.readDirectory(path), []);
  return entries.map(({ name }) => name).sort();
}

/** Turns a file system's refusal into an error about the data directory; undefined when the error is about something else. */
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
    // The error names the link, which may lie above the directory or within it.
    if (path.startsWith(`${error.path}/`)) reason = `lies below ${error.path}, which ${reason}`;
    else if (error.path !== path) subject = error.path;
  } else if (error.code === "ELOOP") {
    // The refusal is about the directory itself if that cannot be inspected either; otherwise about something in it.
    const isOwn = await fileSystem.statusOf(path).then(
      () => false,
      () => true,
    );
    if (!isOwn) subject = error.path;
  } else if (error.code === "ENOENT") {
    // Missing folders are made, so only a failed mkdir is about the directory.
    if (error.operation !== "mkdir") return undefined;
  }
  return new StorageError("directory_unusable", `${subject} ${reason} (${error.message})`, { path, cause: error.code });
}

/** The path, or the nearest existing folder above it. */
async function nearestThere(fileSystem: FileSystem, path: string): Promise<string> {
  let at = path;
  while (dirname(at) !== at && (await fileSystem.statusOf(at)) === null) at = dirname(at);
  return at;
}

const UNUSABLE: Readonly<Record<string, string>> = {
  ENOTDIR: "is not a folder",
  EROFS: "is on a read-only file system, and this needs to write there",
  EACCES: "may not be read and written by this account",
  EPERM: "may not be read and written by this account",
  EEXIST: "is a symbolic link whose target does not exist: mount the target, or remove the link",
  ELOOP: "leads through a loop of symbolic links",
  ENOENT: "cannot be made at this place; give another folder",
};

/**
 * Syncs the folders above a new store's folder, because they may be new too: a name is durable only when the folder that holds it is synced. A
 * folder that this account may not read was not made by it, nor was anything above that.
 */
async function syncAbove(fileSystem: FileSystem, path: string): Promise<void> {
  for (let at = path; dirname(at) !== at; at = dirname(at)) {
    try {
      await fileSystem.syncDirectory(dirname(at));
    } catch (error) {
      if (error instanceof FileSystemError && (error.code === "EACCES" || error.code === "EPERM")) return;
      throw error;
    }
  }
}

/** The content of `format.json`. */
export function formatBytes(storeId: string | null): Uint8Array {
  const text = JSON.stringify({ ...FORMAT, ...(storeId !== null && { store_id: storeId }) });
  return new TextEncoder().encode(`${text}\n`);
}

/** What `format.json` says, when it names this release's format; null when the directory is new. @throws StorageError for any other format */
async function readFormat(fileSystem: FileSystem, path: string): Promise<{ storeId: string | null } | null> {
  const bytes = await orWhereMissing(readWholeFile(fileSystem, `${path}/${FORMAT_FILE}`), null);
  if (bytes === null) return null;
  const text = new TextDecoder().decode(bytes);
  const { format, hasRelease, storeId } = formatIn(text);
  if (format === DATA_FORMAT && hasRelease) {
    if (storeId === null || UUID.test(storeId)) return { storeId };
    throw new StorageError(
      "format_unsupported",
      `${path}/${FORMAT_FILE}: store_id should be a UUID in lower case, but is ${JSON.stringify(storeId.slice(0, 100))}. ${PUT_BACK}`,
      { path, format, readable: DATA_FORMAT },
    );
  }
  if (format === DATA_FORMAT) {
    throw new StorageError(
      "format_unsupported",
      `the store in ${path} is older than the format of release ${RELEASE}, the only one that this version reads: ` +
        "open it with the version that wrote it, or give the service another folder",
      { path, format, readable: DATA_FORMAT },
    );
  }
  throw new StorageError(
    "format_unsupported",
    format === null
      ? `${path}/${FORMAT_FILE} should name this service and the store's format, but holds ${JSON.stringify(text.slice(0, 100))}. ${PUT_BACK}`
      : `the store in ${path} has format ${format}; this release reads format ${DATA_FORMAT}: ` +
          "open it with the release that wrote it, or a newer one",
    { path, format, readable: DATA_FORMAT },
  );
}

/** The log's folder is made before `format.json`. So a store without it has lost its log, and must not silently begin a new one. */
async function requireLog(fileSystem: FileSystem, path: string, metaPath: string): Promise<void> {
  if (await fileSystem.exists(metaPath)) return;
  throw new StorageError(
    "log_missing",
    `the store in ${path} has lost its log: the folder ${metaPath} does not exist. Put it back, or start with another directory`,
    { path: metaPath },
  );
}

function formatIn(text: string): { format: number | null; hasRelease: boolean; storeId: string | null } {
  const none = { format: null, hasRelease: false, storeId: null };
  try {
    const value: unknown = JSON.parse(text);
    if (!isPlainObject(value) || (value.service ?? SERVICE) !== SERVICE) return none;
    if (!Number.isSafeInteger(value.format)) return none;
    const storeId = value.store_id === undefined ? null : String(value.store_id);
    return { format: value.format as number, hasRelease: typeof value.release === "string", storeId };
  } catch {
    return none;
  }
}

function missing(path: string): StorageError {
  return new StorageError(
    "store_missing",
    `the folder ${path} holds no store: the file ${FORMAT_FILE} that every store has is not there. Give a store's folder with --data`,
    { path },
  );
}
