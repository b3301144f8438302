import { formatTimeUs } from "../../core/timestamps.js";
import { openDataDirectory } from "../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { type ProducersOutcome, readProducers } from "../../workers/recorder/stopped/stored-producers.js";
import type { ProducersListOptions, ProducersRemoveOptions } from "./command-options.js";
import { printLine } from "./command-output.js";
import { UsageError } from "./resolve-options.js";

/** `producers list`: one line for each name, longest unused first. */
export async function listProducers({ data }: ProducersListOptions): Promise<void> {
  const { producers } = await withStore(data, []);
  for (const { name, committed, lastUsedUs } of producers) {
    printLine(`${name} ${committed} ${formatTimeUs(lastUsedUs)}`);
  }
}

/** `producers remove`: the sequence numbers of the name start again. */
export async function removeProducer({ data, name }: ProducersRemoveOptions): Promise<void> {
  if (name === null) throw new UsageError("--name is required: the name of the producer to remove");
  const { removed } = await withStore(data, [name]);
  if (removed.length === 0) throw new UsageError(`--name: ${data} has no producer ${name}`);
}

async function withStore(data: string, remove: readonly string[]): Promise<ProducersOutcome> {
  const directory = await openDataDirectory({ path: data, creates: false });
  try {
    return await readProducers(nodeFileSystem, directory, { remove, wallUs: () => Date.now() * 1_000 });
  } finally {
    await directory.release();
  }
}
