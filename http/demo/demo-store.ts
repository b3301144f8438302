import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { replaceFile } from "../../storage/disk/whole-files.js";
import { startDemoCell } from "../../workers/demo-cell/demo-cell-process.js";
import { RecorderHandle } from "../../workers/recorder/recorder-handle.js";
import type { RecorderOptions } from "../../workers/recorder/recorder-messages.js";

/** A file beside the store's own: the demo made this store, so it may remove captures from it without asking. */
const MARK = "demo.json";
const OPENING_LIMIT_MS = 20_000;

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

/**
 * Makes one run in a new store and lets retention remove its captures with a limit of one byte. So a client can see a removed capture at once.
 * Ends when that is done, at `stopped`, or after 20 s.
 * @throws an error if the store cannot be opened
 */
export async function makeOpeningRun(options: RecorderOptions, seed: number, stopped: Promise<unknown>): Promise<void> {
  let onRemoved = (): void => {};
  const removed = new Promise<void>((resolve) => (onRemoved = resolve));
  const recorder = new RecorderHandle(
    { ...options, retention: { days: null, bytes: 1 } },
    {
      onBatch() {},
      onHealth() {},
      onLog() {},
      onCapturesRemoved: () => onRemoved(),
      onFailure: () => onRemoved(),
    },
  );
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, OPENING_LIMIT_MS)));
  try {
    const { cellSocketPath: socketPath } = await recorder.ready;
    await markStore(options.dataDirectory);
    const cell = startDemoCell({ socketPath, seed, firstNumber: 0, runs: 1, speed: 0 }, () => {});
    await Promise.race([removed, stopped, late]).finally(() => cell.stop());
  } finally {
    clearTimeout(timer);
    await recorder.stop();
  }
}
