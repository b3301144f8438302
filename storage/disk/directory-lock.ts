/**
 * Lets only one process use a data directory. Node has no flock, so the lock is a listening Unix socket in the `lock` folder. The kernel closes it
 * when its process ends, in whatever way, and a connection attempt shows at once whether the process lives (also when it is stopped: the kernel
 * accepts for it). Sockets are files, so every process that sees the folder sees them, also from another container.
 *
 * Protocol. Every starter
 * 1. listens on a socket under a temporary name, then renames it to its own entry, `<process id>-<random>.sock`. An entry listens before it
 *    exists, so an entry that refuses a connection belongs to a dead process, and is removed;
 * 2. then lists the folder and connects to all other entries;
 * 3. holds the lock if none of them lives; otherwise removes its own entry.
 *
 * Two processes cannot both hold the lock: of two starters, the one that lists later finds the other's entry, which existed before that one
 * listed. Both may find each other. So an entry answers a connection with whether its process holds the lock or still asks for it, and a
 * starter that met only askers tries again after a random pause.
 *
 * A person or a script may remove the files as leftovers. So the holder looks from time to time, and enters again.
 */
import { connect, createServer, type Server } from "node:net";
import { StorageError } from "../storage-error.js";
import { FileSystemError, orWhereMissing, shortageOf, wrapped } from "./file-system-error.js";
import type { FileSystem } from "./file-system-interface.js";
import { TEMPORARY_SUFFIX } from "./whole-files.js";

export interface DirectoryLock {
  release(): Promise<void>;
  /**
   * Looks whether the lock's entry is still there, and enters again if not. `lost` when another process has taken the directory meanwhile, or when
   * the directory itself is gone. After any failure it can be called again.
   */
  restore(): Promise<"intact" | "restored" | "lost">;
}

const ENTRY = /^(\d+)-[0-9a-f]{16}\.sock$/;
/** A process that does not answer within this time is stopped or busy, but alive. */
const ANSWER_TIMEOUT_MS = 1_000;
/** Askers that meet each other pause at random and try again. So many tries without a winner do not happen by chance. */
const MAXIMUM_ATTEMPTS = 20;
const MAXIMUM_PAUSE_MS = 50;

type EntryState = "dead" | "asking" | "holding";

/**
 * @param directory the lock's folder, inside the existing folder that is to be locked
 * @throws StorageError `directory_locked`; its params name the process id of the holder
 */
export async function lockDirectory(fileSystem: FileSystem, directory: string): Promise<DirectoryLock> {
  const folder = directory.slice(0, directory.lastIndexOf("/")) || "/";
  const identity = (await fileSystem.statusOf(folder))?.identity;
  if (identity === undefined) throw new FileSystemError("ENOENT", "stat", folder);
  let own = await hold(fileSystem, directory);
  let isReleased = false;
  return {
    async release() {
      isReleased = true;
      await own.leave();
    },
    async restore() {
      if ((await fileSystem.statusOf(own.path))?.identity === own.identity) return "intact";
      // A folder that was moved away is not made again.
      if ((await fileSystem.statusOf(folder))?.identity !== identity) return "lost";
      const before = own;
      try {
        own = await hold(fileSystem, directory);
      } catch (error) {
        if (error instanceof StorageError) return "lost";
        throw error;
      }
      await (isReleased ? own : before).leave();
      return "restored";
    },
  };
}

/**
 * The process that has the directory locked, without asking for the lock and without writing: null when there is none.
 *
 * @param directory the lock's folder; it need not exist
 * @throws FileSystemError
 */
export async function lockHolder(fileSystem: FileSystem, directory: string): Promise<number | null> {
  if ((await fileSystem.statusOf(directory)) === null) return null;
  const open = await fileSystem.openDirectory(directory);
  try {
    for (const { name } of await fileSystem.readDirectory(directory)) {
      const match = ENTRY.exec(name);
      if (match !== null && (await stateOf(`${open.shortPath}/${name}`)) !== "dead") return Number(match[1]);
    }
    return null;
  } finally {
    await open.close();
  }
}

function locked(place: string, processId: number): StorageError {
  const message = `the data directory is in use by process ${processId} (${place}): stop that process, or wait until it ends`;
  return new StorageError("directory_locked", message, { process_id: processId, directory: place });
}

/** Enters when nobody else holds the lock. */
async function hold(fileSystem: FileSystem, directory: string) {
  await fileSystem.makeDirectory(directory);
  const open = await fileSystem.openDirectory(directory);
  let own: Awaited<ReturnType<typeof enter>> | undefined;
  const leave = async (): Promise<void> => {
    try {
      await own?.leave();
    } finally {
      await open.close();
    }
  };
  try {
    own = await acquire(fileSystem, directory, open.shortPath);
    const path = `${directory}/${own.entry}`;
    const status = await fileSystem.statusOf(path);
    if (status === null) throw new FileSystemError("ENOENT", "stat", path);
    return { path, identity: status.identity, leave };
  } catch (error) {
    await leave().catch(() => {});
    throw error;
  }
}

async function acquire(fileSystem: FileSystem, directory: string, shortPath: string) {
  for (let attempt = 1; ; attempt++) {
    const own = await enter(fileSystem, shortPath);
    let rival: Awaited<ReturnType<typeof findRival>>;
    try {
      rival = await findRival(fileSystem, shortPath, own.entry);
    } catch (error) {
      // Otherwise the next attempt would meet this entry, and take it for that of another process.
      await own.leave().catch(() => {});
      throw error;
    }
    if (rival === null) {
      own.hold();
      return own;
    }
    await own.leave();
    if (rival.state === "holding" || attempt === MAXIMUM_ATTEMPTS) {
      throw locked(`${directory}/${rival.entry}`, rival.processId);
    }
    await pause();
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * MAXIMUM_PAUSE_MS));
}

async function enter(fileSystem: FileSystem, directory: string) {
  let isHolding = false;
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    // A stopped process at the other end must not keep this one from ending.
    socket.end(isHolding ? "holding" : "asking", () => socket.destroy());
  });
  const random = Buffer.from(crypto.getRandomValues(new Uint8Array(8))).toString("hex");
  const entry = `${process.pid}-${random}.sock`;
  const path = `${directory}/${entry}`;
  await listen(server, `${path}${TEMPORARY_SUFFIX}`);
  server.unref();
  const leave = async (): Promise<void> => {
    try {
      // The entry goes first: an entry must never refuse a connection while its process may still count on it.
      await orWhereMissing(fileSystem.unlink(path), undefined);
    } finally {
      // An entry that could not be removed is one of the dead from now on.
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
  };
  try {
    await fileSystem.rename(`${path}${TEMPORARY_SUFFIX}`, path);
  } catch (error) {
    await leave().catch(() => {});
    throw error;
  }
  return {
    entry,
    leave,
    hold: () => {
      isHolding = true;
    },
  };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void =>
      reject(new FileSystemError(error.code ?? "EIO", "listen", path));
    server.once("error", fail);
    server.listen(path, () => {
      server.off("error", fail);
      // A connection that could not be accepted: whoever asks sees it closed, and takes the entry for one that lives.
      server.on("error", () => {});
      resolve();
    });
  });
}

/**
 * Finds another entry whose process lives, preferring one that holds the lock. Removes the entries of dead processes.
 *
 * @throws FileSystemError
 */
async function findRival(fileSystem: FileSystem, directory: string, own: string) {
  let asking: { entry: string; processId: number; state: EntryState } | null = null;
  for (const { name } of await fileSystem.readDirectory(directory)) {
    const match = ENTRY.exec(name);
    if (match === null || name === own) continue;
    const state = await stateOf(`${directory}/${name}`);
    if (state === "dead") {
      await orWhereMissing(fileSystem.unlink(`${directory}/${name}`), undefined);
      continue;
    }
    const rival = { entry: name, processId: Number(match[1]), state };
    if (state === "holding") return rival;
    asking = rival;
  }
  return asking;
}

function stateOf(path: string): Promise<EntryState> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let answer = "";
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => {
      socket.destroy();
      resolve("holding");
    });
    socket.setEncoding("utf8");
    socket.on("data", (text) => {
      answer += text;
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      // Only these two errors mean that nobody listens.
      if (error.code === "ECONNREFUSED" || error.code === "ENOENT") resolve("dead");
      // Nobody was asked. EAGAIN comes from a process that lives: more ask it than it has answered.
      else if (shortageOf(error) !== null && error.code !== "EAGAIN") reject(wrapped("connect", path, error));
      // Whatever else fails, the entry counts as alive.
      else resolve(error.code === "ECONNRESET" ? "asking" : "holding");
    });
    socket.on("close", () => resolve(answer === "asking" ? "asking" : "holding"));
  });
}
