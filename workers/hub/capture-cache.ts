import { type ErrorData, ServiceError } from "../../core/service-errors.js";
import { captureFiles } from "../../storage/captures/capture-inventory.js";
import { capturePath } from "../../storage/captures/capture-path.js";
import { isNoRoom, orWhereMissing } from "../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import { cellOfSubject, decodeSender, logSubject } from "../plant/log-message.js";
import type { PlantClient, StoredMessage } from "../plant/plant-client.js";
import type { LogLines } from "../recorder/status/log-lines.js";
import type { CacheFigures, CaptureRequest } from "./capture-request.js";
import { DamagedChunk, FetchedFile, type FetchedFileHost } from "./fetched-file.js";

/** Chunks that are asked for at a time, by all requests. Each takes about 2 MiB of memory while it is read. */
const PARALLEL_CHUNKS = 8;
/** What remembering one file costs stays small: 100,000 files take about 60 MB. */
const MOST_FILES = 100_000;
/** Room of the disk that is left to the log: a cell's captures wait at the same amount. */
const LEAST_ROOM = { bytes: 1024 ** 3, share: 0.05 };
const RETRY_AFTER_SECONDS = 2;
const DAMAGED = "the plant's copy of these bytes is damaged";
/** How long the address of a cell is remembered. */
const ADDRESS_MS = 60_000;

export interface CaptureCacheOptions {
  fileSystem: FileSystem;
  capturesPath: string;
  /** Most bytes of the files together; null: no bound but the disk's. */
  cacheBytes: number | null;
  /** Null while the plant cannot be reached. */
  plant(): Pick<PlantClient, "lastMessage" | "lastChunk"> | null;
  /** All names under which a store was shipped. */
  namesOf(storeId: string): readonly string[];
  /** Called before a file is removed: whoever has it open closes it when its reads are done. */
  onRemove(path: string): void;
  line: LogLines["line"];
  nowMs?: () => number;
}

/** The captures that a hub has fetched (README.md). */
export class CaptureCache {
  readonly #options: CaptureCacheOptions;
  readonly #host: FetchedFileHost;
  /** By path; what was used last is the last one. */
  readonly #files = new Map<string, FetchedFile>();
  readonly #removing = new Map<string, Promise<void>>();
  readonly #held = new Map<number, FetchedFile>();
  readonly #running = new Set<Promise<unknown>>();
  /** By store id. */
  readonly #addresses = new Map<string, { cell: string; url: string | null; atMs: number }>();
  readonly #waiting: (() => void)[] = [];
  #fetches = 0;
  readonly #figures: CacheFigures = { bytes: 0, files: 0, fetchedChunks: 0, fetchedBytes: 0, evictedBytes: 0 };

  constructor(options: CaptureCacheOptions) {
    this.#options = options;
    this.#host = {
      fileSystem: options.fileSystem,
      fetch: (subject) => this.#fetch(subject),
      namesOf: options.namesOf,
      makeRoom: (lengthBytes) => this.#makeRoom(lengthBytes),
    };
  }

  get figures(): CacheFigures {
    return { ...this.#figures, files: this.#files.size };
  }

  /** Removes what an earlier process has fetched: which places of its files have bytes is not known any more. */
  async clear(): Promise<void> {
    const { fileSystem, capturesPath } = this.#options;
    for await (const { path, runId } of captureFiles(fileSystem, capturesPath))
      if (runId !== null) await orWhereMissing(fileSystem.unlink(`${capturesPath}/${path}`), undefined);
  }

  /** Fetches what is missing. Then the bytes stay until `release(id)`. @returns why they cannot be read; null if they can */
  hold(id: number, request: CaptureRequest): Promise<ErrorData | null> {
    const holding = this.#hold(request).then(
      (file) => {
        this.#held.set(id, file);
        return null;
      },
      async (error: unknown) => (await this.#answerTo(error, request)).data,
    );
    this.#running.add(holding);
    return holding.finally(() => this.#running.delete(holding));
  }

  /** @param isDamaged the bytes on the disk do not match their CRCs: they are fetched again for the next who wants them */
  release(id: number, isDamaged: boolean): void {
    const file = this.#held.get(id);
    if (file === undefined) return;
    this.#held.delete(id);
    file.isDamaged ||= isDamaged;
    this.#letGo(file);
  }

  /** Resolves when nothing is under way any more: the client must be closed before. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#running, ...this.#removing.values()]);
  }

  async #hold(request: CaptureRequest): Promise<FetchedFile> {
    const { fileSystem, capturesPath } = this.#options;
    if (request.isDamaged === true) throw await this.#notShipped(request, DAMAGED);
    const path = `${capturesPath}/${capturePath(request.runId, request.kind)}`;
    await this.#whenUsable(path);
    const file = this.#files.get(path) ?? new FetchedFile(path, request, this.#host);
    this.#files.delete(path);
    this.#files.set(path, file);
    file.uses++;
    try {
      await fileSystem.makeDirectory(path.slice(0, path.lastIndexOf("/")));
      for (const range of request.ranges) if (!(await file.ensure(range))) throw await this.#notShipped(request, null);
      return file;
    } catch (error) {
      this.#letGo(file);
      throw error;
    }
  }

  /** Waits until a damaged file is gone: those who read it are done in a moment. */
  async #whenUsable(path: string): Promise<void> {
    for (;;) {
      const known = this.#files.get(path);
      const ending = known?.isDamaged ? known.gone : this.#removing.get(path);
      if (ending === undefined) return;
      await ending;
    }
  }

  #letGo(file: FetchedFile): void {
    file.uses--;
    if (file.uses === 0 && (file.isDamaged || file.bytes === 0)) this.#remove(file);
    this.#shrink();
  }

  /** Removes files until all together keep to the bound. Files that are read now stay. */
  #shrink(leastFreedBytes = 0): void {
    const { cacheBytes } = this.#options;
    let freedBytes = 0;
    for (const file of this.#files.values()) {
      const isTooMuch = this.#figures.bytes > (cacheBytes ?? Number.POSITIVE_INFINITY);
      if (!isTooMuch && this.#files.size <= MOST_FILES && freedBytes >= leastFreedBytes) return;
      if (file.uses > 0) continue;
      freedBytes += file.bytes;
      this.#figures.evictedBytes += file.bytes;
      this.#remove(file);
    }
  }

  #remove(file: FetchedFile): void {
    const { path, bytes } = file;
    this.#files.delete(path);
    file.markGone();
    this.#figures.bytes -= bytes;
    if (bytes === 0) return;
    this.#options.onRemove(path);
    const removing = orWhereMissing(this.#options.fileSystem.unlink(path), undefined)
      .catch((error: Error) => this.#options.line("warn", "a cached capture was not removed", { cause: error.message }))
      .finally(() => this.#removing.delete(path));
    this.#removing.set(path, removing);
  }

  /** Keeps to the bound, and leaves room on the disk for the log. @throws ServiceError `unavailable` */
  async #makeRoom(lengthBytes: number): Promise<void> {
    const { fileSystem, capturesPath } = this.#options;
    this.#figures.bytes += lengthBytes;
    this.#shrink();
    const missingBytes = async (): Promise<number> => {
      const { freeBytes, totalBytes } = await fileSystem.room(capturesPath);
      return Math.min(LEAST_ROOM.bytes, totalBytes * LEAST_ROOM.share) + lengthBytes - freeBytes;
    };
    const bytes = await missingBytes();
    if (bytes <= 0) return;
    this.#shrink(bytes);
    await Promise.all(this.#removing.values());
    if ((await missingBytes()) <= 0) return;
    this.#figures.bytes -= lengthBytes;
    throw noRoom();
  }

  /** A few at a time, in the order of the requests' turns. */
  async #fetch(subject: string): Promise<StoredMessage | null> {
    if (this.#fetches >= PARALLEL_CHUNKS) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#fetches++;
    try {
      const message = await this.#plant().lastChunk(subject);
      if (message !== null) {
        this.#figures.fetchedChunks++;
        this.#figures.fetchedBytes += message.bytes.length;
      }
      return message;
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#fetches--;
      else next();
    }
  }

  #plant(): NonNullable<ReturnType<CaptureCacheOptions["plant"]>> {
    const plant = this.#options.plant();
    if (plant === null) throw new Error("the plant cannot be reached");
    return plant;
  }

  async #answerTo(error: unknown, request: CaptureRequest): Promise<ServiceError> {
    if (error instanceof ServiceError) return error;
    if (error instanceof DamagedChunk) {
      this.#options.line("warn", "a capture in the plant is damaged", { subject: error.message });
      return this.#notShipped(request, DAMAGED).catch(unavailable);
    }
    return isNoRoom(error) ? noRoom() : unavailable(error);
  }

  /** @param damage given: the bytes will not come */
  async #notShipped(request: CaptureRequest, damage: string | null): Promise<ServiceError> {
    const { cell, url } = await this.#addressOf(request);
    const where = url === null ? `the cell ${cell}` : `the cell ${cell} at ${url}`;
    const message = `${damage ?? "the plant does not have these bytes"}: ask ${where}`;
    return new ServiceError(
      "not_shipped",
      message,
      { cell, public_url: url },
      damage === null ? {} : { retryable: false },
    );
  }

  /** The last name of the run's store, and its `--public-url`, as its last message says them; null if it was not told one. */
  async #addressOf({ cell, storeId }: CaptureRequest): Promise<{ cell: string; url: string | null }> {
    const nowMs = (this.#options.nowMs ?? Date.now)();
    const known = this.#addresses.get(storeId);
    if (known !== undefined && nowMs - known.atMs < ADDRESS_MS) return known;
    const last = await this.#plant().lastMessage(logSubject("*", storeId));
    const told = last === null ? null : decodeSender(last.header).publicUrl;
    const url = told !== null && /^https?:\/\//.test(told) ? told : null;
    const address = { cell: last === null ? cell : cellOfSubject(last.subject), url, atMs: nowMs };
    this.#addresses.set(storeId, address);
    return address;
  }
}

function noRoom(): ServiceError {
  return new ServiceError("unavailable", "the hub's disk has no room for these captures", {
    retry_after_seconds: RETRY_AFTER_SECONDS,
  });
}

function unavailable(error: unknown): ServiceError {
  const reason = error instanceof Error ? error.message || error.name : String(error);
  return new ServiceError("unavailable", `the captures cannot be fetched from the plant now: ${reason}`, {
    retry_after_seconds: RETRY_AFTER_SECONDS,
  });
}
