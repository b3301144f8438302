import type { RunState } from "../../core/run/run-state.js";
import { unknownId } from "../../core/service-errors.js";
import { StorageError } from "../../storage/storage-error.js";
import type { LargeDocuments } from "../documents/large-documents.js";
import { type DownloadEntry, type EntrySources, entryContent } from "../downloads/entry-body.js";
import { downloadReply, type Reply } from "../replies/reply.js";
import type { HandlerRequest } from "../requests/route.js";

/** What the routes that download files of runs have in common. */
export class RunDownloads {
  readonly #large: LargeDocuments;
  readonly #sources: EntrySources;

  constructor(large: LargeDocuments, sources: EntrySources) {
    this.#large = large;
    this.#sources = sources;
  }

  /** Undefined for an unknown run. */
  run(id: string, request: HandlerRequest): Promise<RunState | undefined> {
    return this.#large.run(id, request);
  }

  /** @throws ServiceError run_not_found */
  async requireRun(id: string, request: HandlerRequest): Promise<RunState> {
    const run = await this.run(id, request);
    if (run === undefined) throw unknownId("run", id);
    return run;
  }

  /** The bytes of a file of the run. @throws StorageError `capture_missing` */
  async reply(run: RunState, entry: DownloadEntry, contentType: string): Promise<Reply> {
    const { validators, open } = entryContent(run, entry, this.#sources);
    return downloadReply(await open(), contentType, entry.name, validators, entry.headers);
  }
}

/**
 * Makes a reply, and once more if the file is missing: retention may have removed it after the run was read. The second try then finds the
 * removal in the run; if it does not, the bytes are lost, which is an error.
 */
export async function retriedIfMissing(reply: () => Promise<Reply>): Promise<Reply> {
  try {
    return await reply();
  } catch (error) {
    if (error instanceof StorageError && error.code === "capture_missing") return reply();
    throw error;
  }
}
