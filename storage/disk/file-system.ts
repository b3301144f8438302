/**
 * The machine's own file system, as `FileSystem` (file-system-interface.ts). This is the only file that imports node:fs, so that every file of the
 * service is opened, written, synced and renamed through that interface. Below it are the few things that only the real system has: owners of an
 * operator's files, descriptors that the process was given, socket paths.
 */
import * as fs from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { FileSystemError, isMissing, orWhereMissing, translated, wrapped } from "./file-system-error.js";
import type { FileSystem, StoreFile } from "./file-system-interface.js";
import { TEMPORARY_SUFFIX, writeFully } from "./whole-files.js";

/** O_NONBLOCK has no effect on files; but with it, opening a FIFO in place of a file does not wait for the other end. */
const OPEN_FLAGS = {
  read: fs.constants.O_RDONLY | fs.constants.O_NONBLOCK,
  update: fs.constants.O_RDWR | fs.constants.O_NONBLOCK,
  create: fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL,
  createOrUpdate: fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_NONBLOCK,
} as const;

/** Only the service's own account may read what it stores: captures and secrets alike. */
const FILE_MODE = 0o600;
const GROUP_SOCKET_MODE = 0o660;
const DIRECTORY_MODE = 0o700;

const openFile = promisify(fs.open);
const closeFile = promisify(fs.close);
const truncateFile = promisify(fs.ftruncate);
const readFile = promisify(fs.read);
const writeFile = promisify(fs.write);
const datasync = promisify(fs.fdatasync);
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

  async write(bytes: Uint8Array, position: number): Promise<number> {
    const written = writeFile(this.#fd, bytes, 0, bytes.length, position);
    return (await translated("write", this.#path, written)).bytesWritten;
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    return (await translated("read", this.#path, readFile(this.#fd, into, 0, into.length, position))).bytesRead;
  }

  readSync(into: Uint8Array, position: number): number {
    try {
      return fs.readSync(this.#fd, into, 0, into.length, position);
    } catch (error) {
      throw wrapped("read", this.#path, error);
    }
  }

  datasync(): Promise<void> {
    return translated("fdatasync", this.#path, datasync(this.#fd));
  }

  truncate(sizeBytes: number): Promise<void> {
    return translated("ftruncate", this.#path, truncateFile(this.#fd, sizeBytes));
  }

  async size(): Promise<number> {
    return Number((await translated("fstat", this.#path, statFile(this.#fd, { bigint: true }))).size);
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
  link: (from, to) => translated("link", from, fs.promises.link(from, to)),
  copyFile(from, to) {
    const { COPYFILE_EXCL, COPYFILE_FICLONE } = fs.constants;
    return translated("copy", from, fs.promises.copyFile(from, to, COPYFILE_EXCL | COPYFILE_FICLONE));
  },
  async makeDirectory(path) {
    const parent = dirname(path);
    try {
      return await makeFolder(path);
    } catch (error) {
      if (!isMissing(error) || parent === path) throw error;
    }
    // Parents are made one by one: Node's own recursive mkdir loops for ever where nothing can be made, as in /proc.
    await nodeFileSystem.makeDirectory(parent);
    return makeFolder(path);
  },
  async removeDirectory(path) {
    try {
      await fs.promises.rmdir(path);
    } catch (error) {
      // POSIX allows EEXIST and ENOTEMPTY for a folder that is not empty.
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
  exists: async (path) => (await statOrNull(path)) !== null,
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
    : new FileSystemError("ENXIO", "open", path, "it is not a file");
}

function identityOf({ dev, ino }: fs.BigIntStats): string {
  return `${dev}:${ino}`;
}

/** False when the folder exists, also when another process has just made it. EEXIST for a link to nothing; ENOTDIR for something that is no folder. */
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

/**
 * As `replaceFile`, for a file that belongs to an operator: owner, group and mode stay. A new file is readable only for its owner.
 *
 * @throws FileSystemError, EPERM when this account cannot make a file of that owner; the file is unchanged then
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
      // fdatasync need not sync owner and mode.
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
      const hint = `it belongs to account ${old.uid}, group ${old.gid}: run this as that account or as root`;
      throw new FileSystemError((error as NodeJS.ErrnoException).code ?? "EIO", "chown", path, hint);
    }
  }
  await translated("chmod", path, changeMode(fd, Number(old.mode & 0o7777n)));
}

function statOrNull(path: string): Promise<fs.BigIntStats | null> {
  return orWhereMissing(translated("stat", path, fs.promises.stat(path, { bigint: true })), null);
}

/** The id of the account that owns the file or folder. */
export async function ownerOf(path: string): Promise<number> {
  return (await translated("stat", path, fs.promises.stat(path))).uid;
}

/**
 * Who may replace and remove files in the folder besides its owner; null for nobody. In a folder with the sticky bit, such as /tmp, nobody may. A
 * group with the owner's own number is taken for a group of that account alone.
 */
export async function otherWritersOf(path: string): Promise<"everybody" | "its group" | null> {
  const { mode, uid, gid } = await translated("stat", path, fs.promises.stat(path));
  if ((mode & 0o1000) !== 0) return null;
  if ((mode & 0o002) !== 0) return "everybody";
  return (mode & 0o020) !== 0 && gid !== uid ? "its group" : null;
}

/** The path after following symbolic links; the path itself when nothing has it. */
export function realPathOf(path: string): Promise<string> {
  return orWhereMissing(translated("realpath", path, fs.promises.realpath(path)), path);
}

/** The target of a symbolic link, such as those in /proc. Blocking. @throws Error of the system */
export function linkTarget(path: string): string {
  return fs.readlinkSync(path);
}

/** How many descriptors this process may have open (`ulimit -n`); null without a limit, or when the system does not say. Blocking. */
export function descriptorLimit(): number | null {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(fs.readFileSync("/proc/self/limits", "utf8"))?.[1]) || null;
  } catch {
    // This is not Linux.
    const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
    return Number(userLimits?.open_files?.soft) || null;
  }
}

/** What has a path on which a socket is about to listen. */
export function socketPathState(path: string): "free" | "socket" | "other" {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return "free";
  return stats.isSocket() ? "socket" : "other";
}

/** Who may connect to a Unix socket: its owner alone, or its group too. */
export type SocketAccess = "owner" | "group";

/** Blocking, so that it follows the bind immediately. */
export function restrictSocket(path: string, access: SocketAccess): void {
  fs.chmodSync(path, access === "owner" ? FILE_MODE : GROUP_SOCKET_MODE);
}

/**
 * Calls `remove`, which removes the name (for example by closing a socket that was bound to it), but keeps another file that has the name by
 * now. That file has another name for some microseconds. Blocking.
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

/** Writes to a descriptor that the process was given, such as stderr, without blocking. `done` is that of fs.write. */
export function writeToDescriptor(
  fd: number,
  bytes: Uint8Array,
  done: (error: NodeJS.ErrnoException | null, written: number) => void,
): void {
  fs.write(fd, bytes, done);
}

/** As `writeToDescriptor`, but blocking. @returns the count of bytes written @throws Error of the system; EAGAIN when nothing can be written now */
export function writeToDescriptorSync(fd: number, bytes: Uint8Array): number {
  return fs.writeSync(fd, bytes);
}

/**
 * Opens the pipe of a descriptor again, so that writes to it never block. For others the pipe does not change.
 * Undefined when it is no pipe, or when the system refuses.
 */
export function openPipeAgain(fd: number): number | undefined {
  try {
    if (!fs.fstatSync(fd).isFIFO()) return undefined;
    return fs.openSync(`/proc/self/fd/${fd}`, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}

/** Closes a descriptor of this process, if it is open. */
export function closeDescriptor(fd: number): void {
  try {
    fs.closeSync(fd);
  } catch {
    // It is closed already.
  }
}
