/**
 * The one seam between the service and the disk: every file that the service keeps is opened, written, synced and renamed through
 * this interface, so that a simulated disk can stand behind it. Nothing else imports node:fs.
 *
 * What the interface promises is what POSIX promises, no more:
 * - a write is positional and may be short; what it wrote is durable only after `datasync` of that file;
 * - a created, renamed or unlinked name is durable only after `syncDirectory` of its folder;
 * - an error is a `FileSystemError` with the system's code (ENOSPC, EIO, ENOENT, …).
 */
import * as fs from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";

/**
 * - `read`: an existing file, for reading.
 * - `update`: an existing file, for reading and writing.
 * - `create`: a new file, for reading and writing; EEXIST when the name is taken.
 * - `createOrUpdate`: an existing file or a new one, for reading and writing; its content stays.
 */
export type OpenMode = "read" | "update" | "create" | "createOrUpdate";

export interface StoreFile {
  /** Writes at `position` and gives the count of bytes written, which may be less than asked, also 0. */
  write(bytes: Uint8Array, position: number): Promise<number>;
  /** Reads at `position` and gives the count of bytes read: less than asked at the end of the file, 0 behind it. */
  read(into: Uint8Array, position: number): Promise<number>;
  /** As `read`, blocking: for small reads that the page cache most likely holds. */
  readSync(into: Uint8Array, position: number): number;
  /** Makes the file's bytes and its size durable (fdatasync). A failure says nothing of what reached the disk: never retry. */
  datasync(): Promise<void>;
  truncate(sizeBytes: number): Promise<void>;
  size(): Promise<number>;
  /** As `FileStatus.identity`, of this file, whatever has its name by now. */
  identity(): Promise<string>;
  close(): Promise<void>;
  /** As `close`, blocking: beside `readSync`. */
  closeSync(): void;
}

/** What stands at a path, behind symbolic links. */
export interface FileStatus {
  kind: "file" | "directory" | "other";
  /** The same for every name of one file or folder, and for no other one of the machine: device and inode. */
  identity: string;
}

export interface DirectoryEntry {
  name: string;
  isDirectory: boolean;
}

/** A folder held open, under a path that is short however long its own is: the path of a Unix socket may have 107 bytes. */
export interface OpenDirectory {
  shortPath: string;
  close(): Promise<void>;
}

export interface FileSystem {
  open(path: string, mode: OpenMode): Promise<StoreFile>;
  /** As `open` with mode `read`, blocking: beside `readSync`. */
  openSync(path: string): StoreFile;
  /** Atomically gives the file the name `to`, replacing what had it. */
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Creates the folder and its missing parents; nothing when it is there. True when it created the last one. */
  makeDirectory(path: string): Promise<boolean>;
  /** Removes the folder if nothing is in it: ENOTEMPTY when something is, ENOENT when there is no folder. */
  removeDirectory(path: string): Promise<void>;
  openDirectory(path: string): Promise<OpenDirectory>;
  /** In no particular order. */
  readDirectory(path: string): Promise<DirectoryEntry[]>;
  exists(path: string): Promise<boolean>;
  /** Size of the file at the path, in bytes; ENOENT when there is none. */
  sizeOf(path: string): Promise<number>;
  /** Null when nothing is there. */
  statusOf(path: string): Promise<FileStatus | null>;
  /**
   * Fails where this account may not do that, EACCES or EPERM, or EROFS: read the file, or `change` it, which of a folder is to read it
   * and to make and remove what is in it.
   */
  assertAccess(path: string, access: "read" | "change"): Promise<void>;
  /** Makes the names in the folder durable (fsync of the folder). */
  syncDirectory(path: string): Promise<void>;
  /** Bytes that this process may still write on the path's file system, and the file system's size. */
  room(path: string): Promise<{ freeBytes: number; totalBytes: number }>;
}

/** A failure of the disk or of the file system under it, with the system's error code. */
export class FileSystemError extends Error {
  readonly code: string;
  readonly operation: string;
  readonly path: string;

  constructor(code: string, operation: string, path: string, detail?: string) {
    super(`${operation} ${path}: ${code}${detail === undefined ? "" : ` (${detail})`}`);
    this.name = "FileSystemError";
    this.code = code;
    this.operation = operation;
    this.path = path;
  }
}

/** True for the error of a file or folder that does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof FileSystemError && error.code === "ENOENT";
}

/** True when what stands at the path is no file: a folder, a FIFO, a socket. */
export function isNoFile(error: unknown): error is FileSystemError {
  return error instanceof FileSystemError && error.operation === "open" && NO_FILE_CODES.has(error.code);
}

const NO_FILE_CODES: ReadonlySet<string> = new Set(["EISDIR", "ENXIO", "ELOOP"]);

/** EIO, and what file systems say instead of it of a block whose checksum is wrong or that is marked as bad. */
const UNREADABLE_CODES: ReadonlySet<string> = new Set(["EIO", "EUCLEAN", "EBADMSG", "ENODATA"]);

/** True when it is the disk that did not do what was asked of it: not this process, nor its account, for which it may do it later. */
export function isDiskFault(error: unknown): error is FileSystemError {
  return error instanceof FileSystemError && UNREADABLE_CODES.has(error.code);
}

/** True when the disk could not give bytes that it should have: no end of the file, and no answer to what they are. */
export function isUnreadable(error: unknown): error is FileSystemError {
  return isDiskFault(error) && error.operation === "read";
}

const NO_ROOM_CODES: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);
/** What says that there is no room before it does anything: afterwards all is as if it had not been tried, or partly written. */
const REPEATABLE_OPERATIONS: ReadonlySet<string> = new Set(["open", "mkdir", "write", "ftruncate", "rename"]);

/**
 * True when an operation failed for want of room and can be repeated from its start once there is some: the system refused to take the
 * bytes. Never of a sync: ENOSPC from fdatasync or fsync says that bytes which the system *had* taken did not reach the disk, and which
 * of them is not to be known. Nor of a close, which must not be repeated.
 */
export function isNoRoom(error: unknown): error is FileSystemError {
  return (
    error instanceof FileSystemError && NO_ROOM_CODES.has(error.code) && REPEATABLE_OPERATIONS.has(error.operation)
  );
}

/** What was missing when the system said one of these, for people. */
const SHORTAGES: ReadonlyMap<unknown, string> = new Map([
  ["EMFILE", "the process has no file descriptor left"],
  ["ENFILE", "the machine has no file descriptor left"],
  ["ENOMEM", "the machine has no memory left"],
  ["EAGAIN", "the machine has no memory, thread or process left"],
  ["ENOBUFS", "the machine has no buffer left"],
]);

/** What this process, or the machine, had too little of for a moment, for people; null for an error of another kind. Of any system call. */
export function shortageOf(error: unknown): string | null {
  return SHORTAGES.get((error as { code?: unknown } | null | undefined)?.code) ?? null;
}

/** After a failure of one of these nobody knows what reached the disk, or whether the descriptor is still open. */
const UNREPEATABLE_OPERATIONS: ReadonlySet<string> = new Set(["fdatasync", "fsync", "close"]);

/**
 * True when an operation failed because this process, or the machine, had no descriptor or memory left: nothing was done, nothing is wrong with
 * the disk, and the operation can be repeated from its start. Never of a sync, as with `isNoRoom`; the *opening* of a folder that is to be
 * synced is an `open`, which can be repeated.
 */
export function isShortage(error: unknown): error is FileSystemError {
  return error instanceof FileSystemError && SHORTAGES.has(error.code) && !UNREPEATABLE_OPERATIONS.has(error.operation);
}

/** True when the operation can be repeated once the system has what it lacked: room, descriptors or memory. */
export function isRepeatable(error: unknown): error is FileSystemError {
  return isNoRoom(error) || isShortage(error);
}

/** True for the error of a folder that cannot be removed because something is in it. */
export function isNotEmpty(error: unknown): boolean {
  return error instanceof FileSystemError && error.code === "ENOTEMPTY";
}

/**
 * The system copies what it is given, in one stretch that no other thread of that core can interrupt: a millisecond or two for each megabyte, and
 * readers wait for the core meanwhile. Between pieces of this size they have it.
 */
const WRITTEN_PIECE_BYTES = 256 * 1024;

/**
 * Writes all the bytes at `position`, in pieces and going on after short counts: a full disk can answer with a short count before it answers
 * with an error. A count of zero would never end and is an error.
 */
export async function writeFully(file: StoreFile, bytes: Uint8Array, position: number, path: string): Promise<void> {
  let written = 0;
  do {
    const count = await file.write(bytes.subarray(written, written + WRITTEN_PIECE_BYTES), position + written);
    if (count <= 0) {
      const before = written === 0 ? "nothing" : `${written} of ${bytes.length} bytes, then nothing`;
      throw new FileSystemError("EIO", "write", path, `wrote ${before}`);
    }
    written += count;
  } while (written < bytes.length);
}

/** Reads until `into` is full or the file ends; gives the count. */
export async function readFully(file: Pick<StoreFile, "read">, into: Uint8Array, position: number): Promise<number> {
  let total = 0;
  while (total < into.length) {
    const count = await file.read(total === 0 ? into : into.subarray(total), position + total);
    if (count === 0) break;
    total += count;
  }
  return total;
}

/** As `readFully`, blocking. */
export function readFullySync(file: Pick<StoreFile, "readSync">, into: Uint8Array, position: number): number {
  let total = 0;
  while (total < into.length) {
    const count = file.readSync(total === 0 ? into : into.subarray(total), position + total);
    if (count === 0) break;
    total += count;
  }
  return total;
}

/** Opens the file for reading, and closes it whatever comes of its use. */
export async function withFile<T>(
  fileSystem: FileSystem,
  path: string,
  use: (file: StoreFile) => Promise<T>,
): Promise<T> {
  const file = await fileSystem.open(path, "read");
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

/** The whole file; for small ones. */
export function readWholeFile(fileSystem: FileSystem, path: string): Promise<Uint8Array> {
  return withFile(fileSystem, path, async (file) => {
    const bytes = new Uint8Array(await file.size());
    return bytes.subarray(0, await readFully(file, bytes, 0));
  });
}

/** What a symbolic link says, blocking: of those in /proc. @throws Error of the system */
export function linkTarget(path: string): string {
  return fs.readlinkSync(path);
}

/** Of a file that says no size of its own, as those of /proc do. */
export function readToEnd(fileSystem: FileSystem, path: string): Promise<Uint8Array> {
  return withFile(fileSystem, path, async (file) => {
    const pieces: Uint8Array[] = [];
    for (let position = 0; ; ) {
      const piece = new Uint8Array(64 * 1024);
      const count = await file.read(piece, position);
      if (count === 0) return Buffer.concat(pieces);
      pieces.push(piece.subarray(0, count));
      position += count;
    }
  });
}

/** Size of the directory's own files together; one that goes meanwhile counts nothing. */
export async function directoryBytes(fileSystem: FileSystem, directory: string): Promise<number> {
  let bytes = 0;
  for (const { name } of await fileSystem.readDirectory(directory)) {
    try {
      bytes += await fileSystem.sizeOf(`${directory}/${name}`);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return bytes;
}

/**
 * Gives the path these bytes, durably and as a whole: whoever opens it, now or after a crash, finds the old bytes or the new ones.
 * Order: temporary file, fdatasync, rename, folder fsync.
 */
export async function replaceFile(
  fileSystem: FileSystem,
  directory: string,
  name: string,
  bytes: Uint8Array,
): Promise<void> {
  const path = `${directory}/${name}`;
  const temporary = `${path}${TEMPORARY_SUFFIX}`;
  const file = await fileSystem.open(temporary, "createOrUpdate");
  try {
    await file.truncate(0);
    if (bytes.length > 0) await writeFully(file, bytes, 0, temporary);
    await file.datasync();
  } finally {
    await file.close();
  }
  await fileSystem.rename(temporary, path);
  await fileSystem.syncDirectory(directory);
}

/**
 * As `replaceFile`, for a file that belongs to an operator: its owner, group and mode stay as they were; a new one is for its owner alone.
 *
 * @throws FileSystemError, EPERM when this account cannot make a file of that owner; the file is then as it was
 */
export async function replaceKeepingOwner(path: string, bytes: Uint8Array): Promise<void> {
  const old = await statOrNull(path);
  const random = Buffer.from(crypto.getRandomValues(new Uint8Array(6))).toString("hex");
  const temporary = `${path}.${random}${TEMPORARY_SUFFIX}`;
  const fd = await translated("open", temporary, openFile(temporary, OPEN_FLAGS.create, FILE_MODE));
  try {
    try {
      if (old !== null) await giveOwner(fd, path, old);
      await writeFully(new NodeFile(fd, temporary), bytes, 0, temporary);
      // Of the owner and the mode too, which fdatasync need not do.
      await translated("fsync", temporary, fsync(fd));
    } finally {
      await closeFile(fd);
    }
    await nodeFileSystem.rename(temporary, path);
  } catch (error) {
    await nodeFileSystem.unlink(temporary).catch(() => {});
    throw error;
  }
  await nodeFileSystem.syncDirectory(dirname(path));
}

async function giveOwner(fd: number, path: string, old: fs.BigIntStats): Promise<void> {
  const made = await translated("fstat", path, statFile(fd, { bigint: true }));
  if (made.uid !== old.uid || made.gid !== old.gid) {
    try {
      await changeOwner(fd, Number(old.uid), Number(old.gid));
    } catch (error) {
      const hint = `it belongs to account ${old.uid}, group ${old.gid}: do this as that account or as root`;
      throw new FileSystemError((error as NodeJS.ErrnoException).code ?? "EIO", "chown", path, hint);
    }
  }
  await translated("chmod", path, changeMode(fd, Number(old.mode & 0o7777n)));
}

async function statOrNull(path: string): Promise<fs.BigIntStats | null> {
  try {
    return await translated("stat", path, fs.promises.stat(path, { bigint: true }));
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** The account that the file or folder belongs to. */
export async function ownerOf(path: string): Promise<number> {
  return (await translated("stat", path, fs.promises.stat(path))).uid;
}

/**
 * Who beside the owner may replace and remove what is in the folder; null for nobody. In a folder with the sticky bit, as /tmp, nobody may. A group
 * of the owner's own number is that of the account alone.
 */
export async function otherWritersOf(path: string): Promise<"everybody" | "its group" | null> {
  const { mode, uid, gid } = await translated("stat", path, fs.promises.stat(path));
  if ((mode & 0o1000) !== 0) return null;
  if ((mode & 0o002) !== 0) return "everybody";
  return (mode & 0o020) !== 0 && gid !== uid ? "its group" : null;
}

/** Where the path leads to behind symbolic links; the path itself while nothing is there. */
export async function realPathOf(path: string): Promise<string> {
  try {
    return await translated("realpath", path, fs.promises.realpath(path));
  } catch (error) {
    if (isMissing(error)) return path;
    throw error;
  }
}

/** A file of this ending was being written when the process ended; nothing refers to it. */
export const TEMPORARY_SUFFIX = ".tmp";

/** With O_NONBLOCK a FIFO in place of a file keeps nobody waiting for its other end; of a file it says nothing. */
const OPEN_FLAGS = {
  read: fs.constants.O_RDONLY | fs.constants.O_NONBLOCK,
  update: fs.constants.O_RDWR | fs.constants.O_NONBLOCK,
  create: fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL,
  createOrUpdate: fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_NONBLOCK,
} as const;

/** What the service stores is for its own account's eyes: captures and secrets alike. */
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

const openFile = promisify(fs.open);
const closeFile = promisify(fs.close);
const truncateFile = promisify(fs.ftruncate);
const fsync = promisify(fs.fsync);
const changeOwner = promisify(fs.fchown);
const changeMode = promisify(fs.fchmod);
const statFile = promisify(fs.fstat) as (fd: number, options: { bigint: true }) => Promise<fs.BigIntStats>;

class NodeFile implements StoreFile {
  readonly #fd: number;
  readonly #path: string;

  constructor(fd: number, path: string) {
    this.#fd = fd;
    this.#path = path;
  }

  write(bytes: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.write(this.#fd, bytes, 0, bytes.length, position, (error, count) => {
        if (error) reject(wrapped("write", this.#path, error));
        else resolve(count);
      });
    });
  }

  read(into: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.read(this.#fd, into, 0, into.length, position, (error, count) => {
        if (error) reject(wrapped("read", this.#path, error));
        else resolve(count);
      });
    });
  }

  readSync(into: Uint8Array, position: number): number {
    try {
      return fs.readSync(this.#fd, into, 0, into.length, position);
    } catch (error) {
      throw wrapped("read", this.#path, error);
    }
  }

  datasync(): Promise<void> {
    return new Promise((resolve, reject) => {
      fs.fdatasync(this.#fd, (error) => {
        if (error) reject(wrapped("fdatasync", this.#path, error));
        else resolve();
      });
    });
  }

  truncate(sizeBytes: number): Promise<void> {
    return translated("ftruncate", this.#path, truncateFile(this.#fd, sizeBytes));
  }

  size(): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.fstat(this.#fd, (error, stats) => {
        if (error) reject(wrapped("fstat", this.#path, error));
        else resolve(stats.size);
      });
    });
  }

  async identity(): Promise<string> {
    return identityOf(await translated("fstat", this.#path, statFile(this.#fd, { bigint: true })));
  }

  close(): Promise<void> {
    return translated("close", this.#path, closeFile(this.#fd));
  }

  closeSync(): void {
    try {
      fs.closeSync(this.#fd);
    } catch (error) {
      throw wrapped("close", this.#path, error);
    }
  }
}

function statusSync(fd: number, path: string): fs.BigIntStats {
  try {
    return fs.fstatSync(fd, { bigint: true });
  } catch (error) {
    throw wrapped("fstat", path, error);
  }
}

/** The machine's own file system. */
export const nodeFileSystem: FileSystem = {
  async open(path, mode) {
    const fd = await translated("open", path, openFile(path, OPEN_FLAGS[mode], FILE_MODE));
    try {
      if (mode !== "create") assertFile(path, await translated("fstat", path, statFile(fd, { bigint: true })));
      return new NodeFile(fd, path);
    } catch (error) {
      await closeFile(fd);
      throw error;
    }
  },
  openSync(path) {
    let fd: number;
    try {
      fd = fs.openSync(path, OPEN_FLAGS.read);
    } catch (error) {
      throw wrapped("open", path, error);
    }
    try {
      assertFile(path, statusSync(fd, path));
      return new NodeFile(fd, path);
    } catch (error) {
      fs.closeSync(fd);
      throw error;
    }
  },
  rename: (from, to) => translated("rename", from, fs.promises.rename(from, to)),
  unlink: (path) => translated("unlink", path, fs.promises.unlink(path)),
  async makeDirectory(path) {
    const parent = dirname(path);
    try {
      return await makeFolder(path);
    } catch (error) {
      if (!isMissing(error) || parent === path) throw error;
    }
    // One above the other, and each once: Node's own recursive mkdir goes round for ever where nothing can be made, as in /proc.
    await nodeFileSystem.makeDirectory(parent);
    return makeFolder(path);
  },
  async removeDirectory(path) {
    try {
      await fs.promises.rmdir(path);
    } catch (error) {
      // POSIX allows either for a folder that is not empty.
      const isNotEmpty = (error as NodeJS.ErrnoException).code === "EEXIST";
      throw isNotEmpty ? new FileSystemError("ENOTEMPTY", "rmdir", path) : wrapped("rmdir", path, error);
    }
  },
  async openDirectory(path) {
    const fd = await translated("open", path, openFile(path, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY));
    return {
      shortPath: process.platform === "linux" ? `/proc/self/fd/${fd}` : path,
      close: () => translated("close", path, closeFile(fd)),
    };
  },
  async readDirectory(path) {
    const entries = await translated("readdir", path, fs.promises.readdir(path, { withFileTypes: true }));
    return entries.map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }));
  },
  async exists(path) {
    try {
      await translated("stat", path, fs.promises.stat(path));
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  },
  async sizeOf(path) {
    return (await translated("stat", path, fs.promises.stat(path))).size;
  },
  async statusOf(path) {
    try {
      const stats = await translated("stat", path, fs.promises.stat(path, { bigint: true }));
      const kind = stats.isFile() ? "file" : stats.isDirectory() ? "directory" : "other";
      return { kind, identity: identityOf(stats) };
    } catch (error) {
      if (isMissing(error) || (error as FileSystemError).code === "ENOTDIR") return null;
      throw error;
    }
  },
  async assertAccess(path, access) {
    const { R_OK, W_OK, X_OK } = fs.constants;
    const change = (await fs.promises.stat(path).catch(() => null))?.isDirectory() ? R_OK | W_OK | X_OK : R_OK | W_OK;
    await translated("access", path, fs.promises.access(path, access === "read" ? R_OK : change));
  },
  async syncDirectory(path) {
    const fd = await translated("open", path, openFile(path, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY));
    try {
      await translated("fsync", path, fsync(fd));
    } finally {
      await closeFile(fd);
    }
  },
  async room(path) {
    const stats = await translated("statfs", path, fs.promises.statfs(path));
    return { freeBytes: stats.bavail * stats.bsize, totalBytes: stats.blocks * stats.bsize };
  },
};

function assertFile(path: string, stats: fs.BigIntStats): void {
  if (stats.isFile()) return;
  throw stats.isDirectory()
    ? new FileSystemError("EISDIR", "open", path)
    : new FileSystemError("ENXIO", "open", path, "no file stands there");
}

function identityOf({ dev, ino }: fs.BigIntStats): string {
  return `${dev}:${ino}`;
}

/** False when it is there, also where another process made it just now. EEXIST: a link that leads nowhere; ENOTDIR: it is no folder. */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await fs.promises.mkdir(path, { mode: DIRECTORY_MODE });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw wrapped("mkdir", path, error);
    const status = await nodeFileSystem.statusOf(path);
    if (status?.kind === "directory") return false;
    throw new FileSystemError(status === null ? "EEXIST" : "ENOTDIR", "mkdir", path);
  }
}

async function translated<T>(operation: string, path: string, promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw wrapped(operation, path, error);
  }
}

function wrapped(operation: string, path: string, error: unknown): FileSystemError {
  const code = (error as NodeJS.ErrnoException).code;
  return new FileSystemError(typeof code === "string" ? code : "EIO", operation, path);
}

/** Descriptors that this process may have open at a time (`ulimit -n`); null without a limit, or where the system does not say. Blocking. */
export function descriptorLimit(): number | null {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(fs.readFileSync("/proc/self/limits", "utf8"))?.[1]) || null;
  } catch {
    // Not on Linux.
    const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
    return Number(userLimits?.open_files?.soft) || null;
  }
}

/** What stands at a path, for a socket that is about to listen there. */
export function socketPathState(path: string): "free" | "socket" | "other" {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return "free";
  return stats.isSocket() ? "socket" : "other";
}

/** Lets only the service's own account connect to a socket. Blocking, so that it follows the bind at once. */
export function restrictToOwner(path: string): void {
  fs.chmodSync(path, FILE_MODE);
}

/**
 * Does what removes the name, such as closing a socket that was bound to it, but leaves it to another file that has it by now. Blocking: for some
 * microseconds that file has another name.
 */
export function removeOwnName(path: string, identity: string, remove: () => void): void {
  const stats = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined || identityOf(stats) === identity) {
    remove();
    return;
  }
  const aside = `${path}.aside`;
  fs.renameSync(path, aside);
  try {
    remove();
  } finally {
    fs.renameSync(aside, path);
  }
}

/** Writes to what the process was given, such as stderr, beside the event loop; `done` as that of fs.write. */
export function writeToDescriptor(
  fd: number,
  bytes: Uint8Array,
  done: (error: NodeJS.ErrnoException | null, written: number) => void,
): void {
  fs.write(fd, bytes, done);
}

/** The same, blocking. @returns how many bytes were taken. @throws Error of the system: EAGAIN where nothing is taken now */
export function writeToDescriptorSync(fd: number, bytes: Uint8Array): number {
  return fs.writeSync(fd, bytes);
}

/**
 * A descriptor of its own for the pipe behind this one, on which no write waits, whoever else has the pipe. Undefined for what is no pipe, or
 * where the system does not give one.
 */
export function openPipeAgain(fd: number): number | undefined {
  try {
    if (!fs.fstatSync(fd).isFIFO()) return undefined;
    return fs.openSync(`/proc/self/fd/${fd}`, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}

/** Closes a descriptor of the process's own, if it is open. */
export function closeDescriptor(fd: number): void {
  try {
    fs.closeSync(fd);
  } catch {
    // It is closed already.
  }
}
