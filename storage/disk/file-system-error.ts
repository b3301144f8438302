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

/** What is wrong with a file that could not be read, for the person who named it. */
export function whyNotRead(error: unknown): string {
  return isMissing(error) ? `${(error as FileSystemError).path} does not exist` : (error as Error).message;
}

/** The answer, or `otherwise` when the file or folder does not exist. */
export async function orWhereMissing<T, Otherwise>(answer: Promise<T>, otherwise: Otherwise): Promise<T | Otherwise> {
  try {
    return await answer;
  } catch (error) {
    if (isMissing(error)) return otherwise;
    throw error;
  }
}

/** True when the path belongs to something other than a file: a folder, a FIFO, a socket. */
export function isNoFile(error: unknown): error is FileSystemError {
  return error instanceof FileSystemError && error.operation === "open" && NO_FILE_CODES.has(error.code);
}

const NO_FILE_CODES: ReadonlySet<string> = new Set(["EISDIR", "ENXIO", "ELOOP"]);

/** EIO, and the codes that file systems use for a block with a wrong checksum, or one that is marked as bad. */
const UNREADABLE_CODES: ReadonlySet<string> = new Set(["EIO", "EUCLEAN", "EBADMSG", "ENODATA"]);

/** True when the disk failed, and not a limit or a right of this process, which may change later. */
export function isDiskFault(error: unknown): error is FileSystemError {
  return error instanceof FileSystemError && UNREADABLE_CODES.has(error.code);
}

/** True when the disk could not read bytes that exist. */
export function isUnreadable(error: unknown): error is FileSystemError {
  return isDiskFault(error) && error.operation === "read";
}

const NO_ROOM_CODES: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);
/** Operations that report a lack of room before they change anything, or after writing a part. */
const REPEATABLE_OPERATIONS: ReadonlySet<string> = new Set(["open", "mkdir", "write", "ftruncate", "rename"]);

/**
 * True when an operation failed for lack of room, and can be repeated from its start when there is some: the system refused the bytes. Never true
 * for a sync: ENOSPC from fdatasync or fsync means that bytes which the system *had* accepted did not reach the disk, and nobody knows which. Nor
 * for a close, which must not be repeated.
 */
export function isNoRoom(error: unknown): error is FileSystemError {
  return (
    error instanceof FileSystemError && NO_ROOM_CODES.has(error.code) && REPEATABLE_OPERATIONS.has(error.operation)
  );
}

/** What was lacking, by error code, for people. */
const SHORTAGES: ReadonlyMap<unknown, string> = new Map([
  ["EMFILE", "the process has no file descriptor left"],
  ["ENFILE", "the machine has no file descriptor left"],
  ["ENOMEM", "the machine has no memory left"],
  ["EAGAIN", "the machine has no memory, thread or process left"],
  ["ENOBUFS", "the machine has no buffer left"],
  // The code of `NoThreadError`. Its message says what the start of the thread lacked.
  ["no_thread", "no thread can be started"],
]);

/** True for what V8 and Node throw when the machine has no memory for a buffer, or for WebAssembly, of an allowed size. Errors of V8 have no code. */
export function isOutOfMemory(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  if ((error as NodeJS.ErrnoException).code === "ERR_MEMORY_ALLOCATION_FAILED") return true;
  return error instanceof RangeError && /allocat|unable to grow|out of memory/i.test(error.message);
}

/** What this process or the machine lacked for a moment, for people; null for any other error. The error may come from any call. */
export function shortageOf(error: unknown): string | null {
  const code = isOutOfMemory(error) ? "ENOMEM" : (error as { code?: unknown } | null | undefined)?.code;
  return SHORTAGES.get(code) ?? null;
}

/** After one of these failed, nobody knows what reached the disk, or whether the descriptor is still open. */
const UNREPEATABLE_OPERATIONS: ReadonlySet<string> = new Set(["fdatasync", "fsync", "close"]);

/**
 * True when an operation failed because this process or the machine had no descriptor or memory left. Nothing was done, the disk is fine, and the
 * operation can be repeated from its start. Never true for a sync, as with `isNoRoom`. The *opening* of a folder that is to be synced is an `open`,
 * which can be repeated.
 */
export function isShortage(error: unknown): error is Error {
  if (!(error instanceof FileSystemError)) return isOutOfMemory(error);
  return SHORTAGES.has(error.code) && !UNREPEATABLE_OPERATIONS.has(error.operation);
}

/** True when the operation can be repeated as soon as the system has what it lacked: room, descriptors or memory. */
export function isRepeatable(error: unknown): error is Error {
  return isNoRoom(error) || isShortage(error);
}

/** True for the error of a folder that cannot be removed because something is in it. */
export function isNotEmpty(error: unknown): boolean {
  return error instanceof FileSystemError && error.code === "ENOTEMPTY";
}

/** `promise`, whose error of the system becomes a `FileSystemError` of `operation` on `path`. */
export async function translated<T>(operation: string, path: string, promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw wrapped(operation, path, error);
  }
}

/** An error of the system as a `FileSystemError`. */
export function wrapped(operation: string, path: string, error: unknown): FileSystemError {
  const code = isOutOfMemory(error) ? "ENOMEM" : (error as NodeJS.ErrnoException).code;
  return new FileSystemError(typeof code === "string" ? code : "EIO", operation, path);
}
