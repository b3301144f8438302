/**
 * What the service asks of the disk, so that tests can replace the disk by a simulated one. It promises what POSIX promises, no more:
 * - a write has a position and may be short; its bytes are durable only after `datasync` of the file;
 * - a created, renamed or unlinked name is durable only after `syncDirectory` of its folder;
 * - an error is a `FileSystemError` with the system's code (ENOSPC, EIO, ENOENT, …).
 */
/**
 * - `read`: an existing file, for reading.
 * - `update`: an existing file, for reading and writing.
 * - `create`: a new file, for reading and writing; EEXIST when the name is taken.
 * - `createOrUpdate`: an existing file or a new one, for reading and writing; its content stays.
 */
export type OpenMode = "read" | "update" | "create" | "createOrUpdate";

export interface StoreFile {
  /** Writes at `position` and returns the count of bytes written, which may be less than asked, even 0. */
  write(bytes: Uint8Array, position: number): Promise<number>;
  /** Reads at `position` and returns the count of bytes read: less than asked at the end of the file, 0 after it. */
  read(into: Uint8Array, position: number): Promise<number>;
  /** As `read`, but blocking. For small reads that most likely hit the page cache. */
  readSync(into: Uint8Array, position: number): number;
  /** Makes the file's bytes and its size durable (fdatasync). After a failure nobody knows what reached the disk, so never retry it. */
  datasync(): Promise<void>;
  truncate(sizeBytes: number): Promise<void>;
  size(): Promise<number>;
  /** The `FileStatus.identity` of this file, whatever has its name now. */
  identity(): Promise<string>;
  close(): Promise<void>;
  /** As `close`, but blocking, for use with `readSync`. */
  closeSync(): void;
}

/** What has a path, after following symbolic links. */
export interface FileStatus {
  kind: "file" | "directory" | "other";
  /** Device and inode. It is the same for all names of a file or folder, and differs from every other one on the machine. */
  identity: string;
}

export interface DirectoryEntry {
  name: string;
  isDirectory: boolean;
}

/** An open folder with a short path, however long its own is. The path of a Unix socket may have 107 bytes. */
export interface OpenDirectory {
  shortPath: string;
  close(): Promise<void>;
}

export interface FileSystem {
  open(path: string, mode: OpenMode): Promise<StoreFile>;
  /** As `open` with mode `read`, but blocking, for use with `readSync`. */
  openSync(path: string): StoreFile;
  /** Gives the file the name `to` atomically, replacing the file that had it. */
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Gives the file a second name. EEXIST when `to` is taken; EXDEV, EPERM, EMLINK or ENOTSUP where that cannot be done. */
  link(from: string, to: string): Promise<void>;
  /** Makes a new file with the bytes of another, which share their place on the disk if the file system can do that. EEXIST when `to` is taken. */
  copyFile(from: string, to: string): Promise<void>;
  /** Creates the folder and its missing parents, unless it exists. True when it created the folder itself. */
  makeDirectory(path: string): Promise<boolean>;
  /** Removes an empty folder. ENOTEMPTY when something is in it, ENOENT when it does not exist. */
  removeDirectory(path: string): Promise<void>;
  openDirectory(path: string): Promise<OpenDirectory>;
  /** Lists the folder in no particular order. */
  readDirectory(path: string): Promise<DirectoryEntry[]>;
  exists(path: string): Promise<boolean>;
  /** Size of the file in bytes; ENOENT when it does not exist. */
  sizeOf(path: string): Promise<number>;
  /** Null when nothing has this path. */
  statusOf(path: string): Promise<FileStatus | null>;
  /**
   * Fails with EACCES, EPERM or EROFS when this account may not `read` or `change` the file. To change a folder means to list it, and to create
   * and remove what is in it.
   */
  assertAccess(path: string, access: "read" | "change"): Promise<void>;
  /** Makes the names in the folder durable (fsync of the folder). */
  syncDirectory(path: string): Promise<void>;
  /** Bytes that this process may still write on the path's file system, and the file system's size. */
  room(path: string): Promise<{ freeBytes: number; totalBytes: number }>;
}
