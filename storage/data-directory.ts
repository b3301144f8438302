/**
 * The data directory:
 *
 *     format.json            what wrote it: {"format": 1, "service": "inspection-results-service"}
 *     lock/                  who has it: see directory-lock.ts
 *     meta/                  segments of the log: see segment.ts
 *     captures/<yyyymm>/     stored bytes of runs: see capture-path.ts
 *     ballast.bin            room to give back when the disk is full: see ballast.ts
 *     quarantine/            bytes that were damaged, as they were found
 *     cell.sock              the cell link's socket
 */
import { isPlainObject } from "../core/json.js";
import { lockDirectory } from "./directory-lock.js";
import { type FileSystem, isMissing, nodeFileSystem, readWholeFile, replaceFile } from "./file-system.js";
import { StorageError } from "./storage-error.js";

/** Of the directory as a whole: raised when a release could no longer make sense of what a newer one keeps in it. */
export const DATA_FORMAT = 1;

const FORMAT_FILE = "format.json";
const SERVICE = "inspection-results-service";

export interface DataDirectory {
  path: string;
  metaPath: string;
  capturesPath: string;
  quarantinePath: string;
  /** Lets another process have the directory. Everything in it must be closed. */
  release(): Promise<void>;
}

export interface DataDirectoryOptions {
  path: string;
  /** False to refuse a directory that holds no store (`store_missing`). */
  creates: boolean;
  fileSystem?: FileSystem;
  /** Keeps other processes out; default: a socket in the `lock` folder. */
  lock?: typeof lockDirectory;
}

/**
 * Takes the directory for this process alone, and makes what is missing of its layout.
 *
 * @throws StorageError `directory_locked` while another process has it, `format_unsupported`, `store_missing`, `log_missing`
 */
export async function openDataDirectory(options: DataDirectoryOptions): Promise<DataDirectory> {
  const { creates, fileSystem = nodeFileSystem, lock: takeLock = lockDirectory } = options;
  const path = options.path.length > 1 ? options.path.replace(/\/+$/, "") : options.path;
  if (!creates && !(await fileSystem.exists(`${path}/${FORMAT_FILE}`))) throw missing(path);
  await fileSystem.makeDirectory(path);
  const lock = await takeLock(fileSystem, `${path}/lock`);
  try {
    const hasFormat = await checkFormat(fileSystem, path);
    const paths = { metaPath: `${path}/meta`, capturesPath: `${path}/captures`, quarantinePath: `${path}/quarantine` };
    if (hasFormat) await requireLog(fileSystem, path, paths.metaPath);
    for (const directory of Object.values(paths)) await fileSystem.makeDirectory(directory);
    await fileSystem.syncDirectory(path);
    await fileSystem.syncDirectory(parentOf(path));
    if (!hasFormat) {
      const text = `${JSON.stringify({ format: DATA_FORMAT, service: SERVICE })}\n`;
      await replaceFile(fileSystem, path, FORMAT_FILE, new TextEncoder().encode(text));
    }
    return { path, ...paths, release: () => lock.release() };
  } catch (error) {
    await lock.release();
    throw error;
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
