import { basename, dirname } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { since } from "../../core/health.js";
import { nodeFileSystem, realPathOf, replaceKeepingOwner } from "../../storage/disk/file-system.js";
import { FileSystemError, isMissing, shortageOf } from "../../storage/disk/file-system-error.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";
import type { ServiceLog } from "../log/service-log.js";
import { sayOnStandardError } from "../log/standard-error.js";
import { ApiKeys, ApiKeysError, formatKeys, parseKeys, type StoredKey } from "./api-keys.js";

/** How often a running service looks whether its key file has changed. */
const LOOK_MS = 2_000;
/** A file that was not read after so many looks lies on a disk that does not answer. Nobody knows what it says. */
const HUNG_LOOKS = 5;
/** How long to wait for another command that changes the file, and how often to try. */
const LOCK_WAIT_MS = 20_000;
const LOCK_PAUSE_MS = 30;

/** @throws ApiKeysError, FileSystemError */
export async function readKeyFile(path: string): Promise<StoredKey[]> {
  return parseFile(path, await readText(path));
}

/**
 * The keys that a service starts with. While the file's disk does not answer, the service waits; the log then says for what.
 *
 * @throws ApiKeysError, FileSystemError
 */
export async function readFirstKeys(
  path: string,
  log: ServiceLog,
  tellAfterMs = HUNG_LOOKS * LOOK_MS,
): Promise<ApiKeys> {
  const teller = setTimeout(() => {
    log.warn({ file: path }, "the disk of the key file does not answer: the service waits for it before it starts");
  }, tellAfterMs);
  try {
    return new ApiKeys(await readKeyFile(path));
  } finally {
    clearTimeout(teller);
  }
}

/**
 * Replaces the keys of the file by the result of `change`, atomically. Owner and mode of the file stay; only its owner may read a new file.
 * Commands that change the same file at the same time wait for each other.
 *
 * @throws ApiKeysError, FileSystemError, and what `change` throws; the file is then unchanged
 */
export async function changeKeyFile(
  path: string,
  missing: "createIfMissing" | "mustExist",
  change: (keys: readonly StoredKey[]) => readonly StoredKey[],
  lockWaitMs = LOCK_WAIT_MS,
): Promise<void> {
  // If the path is a symbolic link, its target is replaced and the link stays.
  const target = await realPathOf(path);
  const lock = `${target}.lock`;
  await makeLock(target, lock, performance.now() + lockWaitMs);
  try {
    const keys = await readKeyFile(target).catch((error: unknown) => {
      if (missing === "createIfMissing" && isMissing(error)) return [];
      throw error;
    });
    await replaceKeepingOwner(target, Buffer.from(formatKeys(change(keys))));
  } finally {
    // This is no failure: the keys are changed as asked, and whoever added a key must see it.
    await nodeFileSystem.unlink(lock).catch((error: Error) => {
      if (!isMissing(error))
        sayOnStandardError(`inspection-service: remove ${lock}, which is in the way: ${error.message}\n`);
    });
  }
}

/** Makes the file that only one command can make. If a command is killed while it has it, somebody has to remove it. */
async function makeLock(path: string, lock: string, deadlineMs: number): Promise<void> {
  for (;;) {
    try {
      await (await nodeFileSystem.open(lock, "create")).close();
      return;
    } catch (error) {
      if (isMissing(error)) throw new ApiKeysError(`the folder ${dirname(path)} does not exist`);
      if ((error as FileSystemError).code !== "EEXIST") throw error;
      if (performance.now() > deadlineMs) {
        const hint = `if no other command is running, remove ${lock}`;
        throw new ApiKeysError(`another command is changing ${path}, so this one changed nothing: try again; ${hint}`);
      }
    }
    await pause(LOCK_PAUSE_MS * (0.5 + Math.random()));
  }
}

/**
 * Follows changes of the file for as long as the process lives. While the file is missing, unreadable or damaged, or its disk does not
 * answer, every key is refused, because nobody can tell which keys were removed.
 *
 * @returns the timer of its looks
 */
export function watchKeys(path: string, keys: ApiKeys, log: ServiceLog, lookMs = LOOK_MS): NodeJS.Timeout {
  let last: string | undefined;
  let isLooking = false;
  let missedLooks = 0;
  const look = async (): Promise<void> => {
    try {
      const text = await readText(path);
      if (text === last) return;
      const valid = parseKeys(text);
      if (keys.fault !== null) log.info({ file: path }, "the key file can be used again: its API keys are accepted");
      if (valid.length === 0)
        log.warn({ file: path }, "the key file has no keys: requests that need an API key are refused");
      keys.replace(valid);
      last = text;
    } catch (error) {
      last = undefined;
      takeFault(error);
    }
  };
  const takeFault = (error: unknown): void => {
    // A passing shortage says nothing about the file. It may be unchanged; the next look will tell.
    if (shortageOf(error) !== null) {
      log.warn({ err: error }, "the key file cannot be read now: the API keys stay as they are");
      return;
    }
    if (keys.fault !== null) return;
    keys.suspend(since(Date.now() * 1000, faultOf(path, error)));
    log.error({ err: error, file: path }, "the key file cannot be used: requests that need an API key are refused");
  };
  return setInterval(() => {
    if (isLooking) {
      if (++missedLooks !== HUNG_LOOKS) return;
      last = undefined;
      takeFault(new FileSystemError("ETIMEDOUT", "read", path, "the disk does not answer"));
      return;
    }
    isLooking = true;
    missedLooks = 0;
    void look().finally(() => {
      isLooking = false;
    });
  }, lookMs).unref();
}

function faultOf(path: string, error: unknown): string {
  const what =
    error instanceof FileSystemError ? `cannot be read (${error.code})` : `is damaged (${(error as Error).message})`;
  return `the key file ${basename(path)} ${what}; requests that need an API key are refused until it can be used again`;
}

async function readText(path: string): Promise<string> {
  return new TextDecoder().decode(await readWholeFile(nodeFileSystem, path));
}

function parseFile(path: string, text: string): StoredKey[] {
  try {
    return parseKeys(text);
  } catch (error) {
    throw error instanceof ApiKeysError ? new ApiKeysError(`${path} ${error.message}`) : error;
  }
}
