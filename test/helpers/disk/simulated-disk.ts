import type { Random } from "../../../core/random.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { FileStatus, FileSystem, OpenMode, StoreFile } from "../../../storage/disk/file-system-interface.js";
import { SimulatedInode } from "./simulated-inode.js";

/**
 * A disk in memory that keeps apart what was written and what is durable, as POSIX allows it: a write is durable after `datasync` of its
 * file, a name after `syncDirectory` of its folder. A crash keeps what is durable and, of the rest, what its mode says. A failed
 * `datasync` behaves as ext4's does: the bytes stay readable, count as clean, and no later sync writes them.
 */
export class SimulatedDisk implements FileSystem {
  /** Operations so far that can fail or be the last one: write, truncate, datasync, rename, unlink, create, mkdir, rmdir, syncDirectory. */
  operations = 0;
  /** Decides what befalls an operation; undefined: nothing. */
  onOperation: (operation: DiskOperation) => DiskFault | undefined = () => undefined;
  /** Fails a read with the code that it gives. */
  onRead: (path: string, position: number, lengthBytes: number) => string | undefined = () => undefined;
  /**
   * What fits on it, names included: beyond, a write is short, then it and every new name fail with ENOSPC. What was unlinked is free at
   * once.
   */
  limitBytes = Number.POSITIVE_INFINITY;
  /** What it has refused for want of room. */
  refusals = 0;
  #names: Map<string, SimulatedInode>;
  #durableNames: Map<string, SimulatedInode>;
  #directories: Set<string>;
  #durableDirectories: Set<string>;
  #isDead = false;
  /** No other disk has the same, in any process. */
  readonly #identity = crypto.randomUUID();

  constructor(durable?: { names: Map<string, SimulatedInode>; directories: Set<string> }) {
    this.#names = new Map(durable?.names);
    this.#durableNames = new Map(durable?.names);
    this.#directories = new Set(durable?.directories);
    this.#durableDirectories = new Set(durable?.directories);
  }

  /**
   * The disk as a power cut leaves it; this one is of no use afterwards. `drop`: nothing that was not synced. `keep`: all of it.
   * `tear`: of unsynced writes any sectors, of unsynced names any.
   */
  crash(mode: "drop" | "keep" | "tear", random: Random): SimulatedDisk {
    this.#isDead = true;
    return this.fork(mode, random);
  }

  /** What `crash` would leave now; this disk goes on. */
  fork(mode: "drop" | "keep" | "tear", random: Random): SimulatedDisk {
    const keeps = (): boolean => mode === "keep" || (mode === "tear" && random.chance(0.5));
    const names = new Map(this.#durableNames);
    const directories = new Set(this.#durableDirectories);
    for (const directory of new Set([...this.#directories, ...directories])) {
      const isThere = this.#directories.has(directory);
      if (isThere === directories.has(directory) || !keeps()) continue;
      if (isThere) directories.add(directory);
      else directories.delete(directory);
    }
    for (const path of new Set([...this.#names.keys(), ...names.keys()])) {
      const inode = this.#names.get(path);
      if (inode === names.get(path) || !keeps()) continue;
      if (inode === undefined) names.delete(path);
      else names.set(path, inode);
    }
    for (const directory of directories) if (!isReachable(directory, directories)) directories.delete(directory);
    const after = new Map<SimulatedInode, SimulatedInode>();
    const survived = new Map<string, SimulatedInode>();
    for (const [path, inode] of names) {
      if (!directories.has(parentOf(path))) continue;
      let copy = after.get(inode);
      if (copy === undefined) {
        copy = inode.afterCrash(mode, random);
        after.set(inode, copy);
      }
      survived.set(path, copy);
    }
    return new SimulatedDisk({ names: survived, directories });
  }

  /** The process ends, the machine goes on: everything written stays. */
  kill(): SimulatedDisk {
    this.#isDead = true;
    const next = new SimulatedDisk({ names: this.#durableNames, directories: this.#durableDirectories });
    next.#names = new Map(this.#names);
    next.#directories = new Set(this.#directories);
    return next;
  }

  /** An independent disk with the same bytes, all durable. */
  copy(): SimulatedDisk {
    const names = new Map([...this.#names].map(([path, inode]) => [path, SimulatedInode.of(inode.bytes())]));
    return new SimulatedDisk({ names, directories: this.#directories });
  }

  paths(): string[] {
    return [...this.#names.keys()].sort();
  }

  has(path: string): boolean {
    return this.#names.has(path);
  }

  bytesOf(path: string): Uint8Array {
    const inode = this.#names.get(path);
    if (inode === undefined) throw new FileSystemError("ENOENT", "read", path);
    return inode.bytes();
  }

  /** Sets a file's bytes from outside, durably. */
  setBytes(path: string, bytes: Uint8Array): void {
    const inode = SimulatedInode.of(bytes);
    this.#names.set(path, inode);
    this.#durableNames.set(path, inode);
  }

  removeFile(path: string): void {
    this.#names.delete(path);
    this.#durableNames.delete(path);
  }

  async open(path: string, mode: OpenMode): Promise<StoreFile> {
    const exists = this.#names.has(path);
    if (!exists && (mode === "create" || mode === "createOrUpdate")) {
      if (!this.#directories.has(parentOf(path))) throw new FileSystemError("ENOENT", "open", path);
      this.#operation("create", path);
      this.#takeName("open", path);
      this.#names.set(path, new SimulatedInode());
    } else if (exists && mode === "create") {
      throw new FileSystemError("EEXIST", "open", path);
    }
    return this.#file(path);
  }

  openSync(path: string): StoreFile {
    return this.#file(path);
  }

  async rename(from: string, to: string): Promise<void> {
    const inode = this.#inode("rename", from);
    if (!this.#directories.has(parentOf(to))) throw new FileSystemError("ENOENT", "rename", from);
    this.#operation("rename", from);
    this.#names.delete(from);
    this.#names.set(to, inode);
  }

  async unlink(path: string): Promise<void> {
    this.#inode("unlink", path);
    this.#operation("unlink", path);
    this.#names.delete(path);
  }

  async link(from: string, to: string): Promise<void> {
    this.#addName("link", this.#inode("link", from), to);
  }

  async copyFile(from: string, to: string): Promise<void> {
    this.#addName("copy", SimulatedInode.of(this.#inode("copy", from).bytes()), to);
  }

  #addName(operation: string, inode: SimulatedInode, path: string): void {
    if (this.#names.has(path)) throw new FileSystemError("EEXIST", operation, path);
    this.#operation("create", path);
    this.#takeName(operation, path);
    this.#names.set(path, inode);
  }

  async makeDirectory(path: string): Promise<boolean> {
    if (this.#directories.has(path)) return false;
    this.#operation("mkdir", path);
    this.#takeName("mkdir", path);
    for (let at = path; at !== "" && at !== "."; at = parentOf(at)) this.#directories.add(at);
    return true;
  }

  async removeDirectory(path: string): Promise<void> {
    this.#assertAlive();
    if (!this.#directories.has(path)) throw new FileSystemError("ENOENT", "rmdir", path);
    const held = [...this.#names.keys(), ...this.#directories].some((name) => parentOf(name) === path);
    if (held) throw new FileSystemError("ENOTEMPTY", "rmdir", path);
    this.#operation("rmdir", path);
    this.#directories.delete(path);
  }

  async openDirectory(path: string): Promise<{ shortPath: string; close(): Promise<void> }> {
    return { shortPath: path, close: async () => {} };
  }

  async readDirectory(path: string): Promise<{ name: string; isDirectory: boolean }[]> {
    this.#assertAlive();
    if (!this.#directories.has(path)) throw new FileSystemError("ENOENT", "readdir", path);
    const files = [...this.#names.keys()].filter((name) => parentOf(name) === path);
    const directories = [...this.#directories].filter((name) => parentOf(name) === path);
    const nameOf = (full: string): string => full.slice(path.length + 1);
    return [
      ...files.map((file) => ({ name: nameOf(file), isDirectory: false })),
      ...directories.map((directory) => ({ name: nameOf(directory), isDirectory: true })),
    ];
  }

  async exists(path: string): Promise<boolean> {
    this.#assertAlive();
    return this.#names.has(path) || this.#directories.has(path);
  }

  async sizeOf(path: string): Promise<number> {
    return this.#inode("stat", path).size;
  }

  async statusOf(path: string): Promise<FileStatus | null> {
    this.#assertAlive();
    const inode = this.#names.get(path);
    if (inode !== undefined) return { kind: "file", identity: inode.identity };
    return this.#directories.has(path) ? { kind: "directory", identity: `${this.#identity}${path}` } : null;
  }

  async assertAccess(): Promise<void> {
    this.#assertAlive();
  }

  async syncDirectory(path: string): Promise<void> {
    this.#operation("syncDirectory", path);
    // Syncs the names in the folder. Its own name is for its parent to sync.
    const folder = path === "/" ? "" : path;
    for (const name of new Set([...this.#names.keys(), ...this.#durableNames.keys()])) {
      if (parentOf(name) !== folder) continue;
      const inode = this.#names.get(name);
      if (inode === undefined) this.#durableNames.delete(name);
      else this.#durableNames.set(name, inode);
    }
    for (const directory of new Set([...this.#directories, ...this.#durableDirectories])) {
      if (parentOf(directory) !== folder) continue;
      if (this.#directories.has(directory)) this.#durableDirectories.add(directory);
      else this.#durableDirectories.delete(directory);
    }
  }

  async room(): Promise<{ freeBytes: number; totalBytes: number }> {
    if (this.limitBytes === Number.POSITIVE_INFINITY) return { freeBytes: 2 ** 40, totalBytes: 2 ** 41 };
    return { freeBytes: Math.max(0, this.limitBytes - this.usedBytes), totalBytes: this.limitBytes };
  }

  /** Bytes that count towards `limitBytes`. */
  get usedBytes(): number {
    let bytes = (this.#names.size + this.#directories.size) * NAME_BYTES;
    for (const inode of new Set(this.#names.values())) bytes += inode.size;
    return bytes;
  }

  #takeName(operation: string, path: string): void {
    if (this.usedBytes + NAME_BYTES > this.limitBytes) this.#refuse(operation, path);
  }

  #refuse(operation: string, path: string): never {
    this.refusals++;
    throw new FileSystemError("ENOSPC", operation, path);
  }

  #file(path: string): StoreFile {
    const inode = this.#inode("open", path);
    let isOpen = true;
    const use = (): void => {
      this.#assertAlive();
      if (!isOpen) throw new FileSystemError("EBADF", "use", path);
    };
    return {
      write: async (bytes, position) => {
        use();
        const fault = this.#operation("write", path);
        const count = Math.min(fault?.short ?? bytes.length, this.#fits(inode, bytes.length, position));
        if (count === 0 && bytes.length > 0 && fault?.short === undefined) this.#refuse("write", path);
        inode.write(bytes.slice(0, count), position);
        if (fault?.dies) this.#die();
        return count;
      },
      read: async (into, position) => {
        use();
        this.#assertReadable(path, position, into.length);
        return inode.read(into, position);
      },
      readSync: (into, position) => {
        use();
        this.#assertReadable(path, position, into.length);
        return inode.read(into, position);
      },
      datasync: async () => {
        use();
        try {
          this.#operation("datasync", path);
        } catch (error) {
          // A failed sync leaves in memory what the disk will never get. A sync that a crash ended failed for nobody.
          if (!this.#isDead) inode.loseUnsynced();
          throw error;
        }
        inode.sync();
      },
      truncate: async (sizeBytes) => {
        use();
        this.#operation("truncate", path);
        inode.truncate(sizeBytes);
      },
      size: async () => {
        use();
        return inode.size;
      },
      identity: async () => {
        use();
        return inode.identity;
      },
      close: async () => {
        isOpen = false;
      },
      closeSync: () => {
        isOpen = false;
      },
    };
  }

  #fits(inode: SimulatedInode, lengthBytes: number, position: number): number {
    if (this.limitBytes === Number.POSITIVE_INFINITY) return lengthBytes;
    const end = inode.size + Math.max(0, this.limitBytes - this.usedBytes);
    return Math.max(0, Math.min(lengthBytes, end - position));
  }

  #assertReadable(path: string, position: number, lengthBytes: number): void {
    const code = this.onRead(path, position, lengthBytes);
    if (code !== undefined) throw new FileSystemError(code, "read", path);
  }

  #inode(operation: string, path: string): SimulatedInode {
    this.#assertAlive();
    const inode = this.#names.get(path);
    if (inode === undefined) throw new FileSystemError("ENOENT", operation, path);
    return inode;
  }

  #operation(kind: DiskOperation["kind"], path: string): DiskFault | undefined {
    this.#assertAlive();
    const fault = this.onOperation({ kind, path, number: this.operations++ });
    if (fault?.error !== undefined) throw new FileSystemError(fault.error, SYSTEM_CALLS[kind] ?? kind, path);
    if (fault?.dies && fault.short === undefined) this.#die();
    return fault;
  }

  #die(): never {
    this.#isDead = true;
    throw new FileSystemError("EIO", "crash", "the simulated machine");
  }

  #assertAlive(): void {
    if (this.#isDead) throw new FileSystemError("EIO", "use", "a disk after its crash");
  }
}

export interface DiskOperation {
  kind: "write" | "truncate" | "datasync" | "rename" | "unlink" | "create" | "mkdir" | "rmdir" | "syncDirectory";
  path: string;
  number: number;
}

export interface DiskFault {
  /** The operation fails with this code and does nothing. */
  error?: string;
  /** A write writes so many bytes only. */
  short?: number;
  /** The machine stops: before the operation, or after the `short` part of a write. */
  dies?: boolean;
}

/** What a name takes up. */
const NAME_BYTES = 32;

/** As the machine's own file system names the operations in its errors. */
const SYSTEM_CALLS: Partial<Record<DiskOperation["kind"], string>> = {
  create: "open",
  truncate: "ftruncate",
  datasync: "fdatasync",
  syncDirectory: "fsync",
};

/** A crash that loses a folder also loses the folders in it. The root and the working directory always exist. */
function isReachable(directory: string, directories: ReadonlySet<string>): boolean {
  for (let at = parentOf(directory); at !== "" && at !== "."; at = parentOf(at)) if (!directories.has(at)) return false;
  return true;
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
