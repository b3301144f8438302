import { basename, dirname } from "node:path";
import { isMissing, nodeFileSystem, readWholeFile, replaceFile } from "../storage/file-system.js";
import { type ApiKeys, ApiKeysError, formatKeys, parseKeys, type StoredKey } from "./api-keys.js";
import type { ServiceLog } from "./service-log.js";

/** How soon a running service sees that its key file changed. */
const LOOK_MS = 5_000;

/** @throws ApiKeysError, FileSystemError */
export async function readKeyFile(path: string): Promise<StoredKey[]> {
  return parseFile(path, await readText(path));
}

/** The keys of the file, none when there is no such file yet. */
export async function readKeyFileIfAny(path: string): Promise<StoredKey[]> {
  try {
    return await readKeyFile(path);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Replaces the file as a whole. */
export async function writeKeyFile(path: string, keys: readonly StoredKey[]): Promise<void> {
  await replaceFile(nodeFileSystem, dirname(path), basename(path), Buffer.from(formatKeys(keys)));
}

/** Takes over what changes in the file, for as long as the process lives. A file that cannot be read leaves the keys as they are. */
export function watchKeys(path: string, keys: ApiKeys, log: ServiceLog): void {
  let last = "";
  const look = async () => {
    try {
      const text = await readText(path);
      if (text === last) return;
      last = text;
      keys.replace(parseFile(path, text));
    } catch (error) {
      log.error({ err: error }, "the API keys cannot be read again: those that were read before stay valid");
    }
  };
  setInterval(() => void look(), LOOK_MS).unref();
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
