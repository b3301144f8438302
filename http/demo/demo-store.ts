import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { replaceFile } from "../../storage/disk/whole-files.js";

/** A file beside the store's own: the demo made this store, so it may remove captures from it without asking. */
const MARK = "demo.json";

/**
 * Whose a data directory is: `new`, there is no store yet; `demo`, an earlier demo made it; `other`, somebody else did, and the demo must not remove
 * or change anything in it.
 */
export type StoreOwner = "new" | "demo" | "other";

export async function storeOwner(dataDirectory: string): Promise<StoreOwner> {
  try {
    if (!(await nodeFileSystem.exists(`${dataDirectory}/format.json`))) return "new";
    return (await nodeFileSystem.exists(`${dataDirectory}/${MARK}`)) ? "demo" : "other";
  } catch {
    // The start itself reports what is wrong with the folder.
    return "other";
  }
}

/** Marks a store that the demo has made. @throws FileSystemError */
export function markStore(dataDirectory: string): Promise<void> {
  return replaceFile(nodeFileSystem, dataDirectory, MARK, Buffer.from('{"made_by": "inspection-service demo"}\n'));
}

/** Removes the mark when `serve` opens the store: a later demo must not treat its results as its own. */
export async function unmarkStore(dataDirectory: string): Promise<void> {
  const mark = `${dataDirectory}/${MARK}`;
  if (await nodeFileSystem.exists(mark).catch(() => false)) await nodeFileSystem.unlink(mark);
}
