import { storedEnd } from "../../../core/run/run-files.js";
import type { RunState } from "../../../core/run/run-state.js";
import { type CaptureKind, capturePath } from "../../../storage/captures/capture-path.js";
import { verifyExtents } from "../../../storage/captures/capture-reader.js";
import { extentsOfRun } from "../../../storage/captures/stored-extents.js";
import { orWhereMissing } from "../../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { writeFully } from "../../../storage/disk/whole-files.js";
import { CAPTURE_STREAM, CHUNK_BYTES, chunkCount, chunkSubject, decodeChunk } from "../capture-message.js";
import type { PlantClient } from "../plant-client.js";

export interface CaptureSource {
  plant: Pick<PlantClient, "lastMessage">;
  cell: string;
  storeId: string;
}

/** Fetches the files of runs whole from the plant, and verifies them. */
export class RestoredCaptures {
  files = 0;
  bytes = 0;
  readonly #source: CaptureSource;
  readonly #fileSystem: FileSystem;
  readonly #capturesPath: string;
  readonly #folders = new Set<string>();

  constructor(source: CaptureSource, fileSystem: FileSystem, capturesPath: string) {
    this.#source = source;
    this.#fileSystem = fileSystem;
    this.#capturesPath = capturesPath;
  }

  /** @returns false if the plant has not all that the run's records name of this file */
  async fetch(run: RunState, kind: CaptureKind): Promise<boolean> {
    const path = capturePath(run.id, kind);
    const extents = extentsOfRun(run).find((named) => named.path === path)?.extents ?? [];
    if (extents.length === 0) return true;
    const sizeBytes = storedEnd(run, kind === "capture" ? "captures" : "reports");
    const full = `${this.#capturesPath}/${path}`;
    if (!(await this.#write(run.id, kind, sizeBytes, full))) return false;
    const damages = await verifyExtents(this.#fileSystem, full, extents);
    if (damages.length > 0) {
      await this.remove(path);
      return false;
    }
    this.files++;
    this.bytes += sizeBytes;
    return true;
  }

  async remove(path: string): Promise<void> {
    await orWhereMissing(this.#fileSystem.unlink(`${this.#capturesPath}/${path}`), undefined);
  }

  async #write(runId: string, kind: CaptureKind, sizeBytes: number, path: string): Promise<boolean> {
    const first = await this.#chunk(runId, kind, 1, sizeBytes);
    if (first === null) return false;
    await this.#ensureFolder(path.slice(0, path.lastIndexOf("/")));
    const file = await this.#fileSystem.open(path, "createOrUpdate");
    let isWhole = true;
    try {
      await file.truncate(0);
      for (let index = 1; index <= chunkCount(sizeBytes) && isWhole; index++) {
        const bytes = index === 1 ? first : await this.#chunk(runId, kind, index, sizeBytes);
        if (bytes === null) isWhole = false;
        else await writeFully(file, bytes, (index - 1) * CHUNK_BYTES, path);
      }
      await file.datasync();
    } finally {
      await file.close();
    }
    if (!isWhole) await this.#fileSystem.unlink(path);
    return isWhole;
  }

  async #chunk(runId: string, kind: CaptureKind, index: number, sizeBytes: number): Promise<Uint8Array | null> {
    const { plant, cell, storeId } = this.#source;
    // What a store shipped under another name is there under that one only.
    for (const name of [cell, "*"]) {
      const subject = chunkSubject(name, storeId, { runId, kind, offset: 0 }, index);
      const message = await plant.lastMessage(subject, CAPTURE_STREAM);
      const fields = message && decodeChunk(message.header, message.bytes);
      if (message !== null && fields !== null && fields.sizeBytes >= sizeBytes && fields.index === index)
        return message.bytes;
    }
    return null;
  }

  async #ensureFolder(path: string): Promise<void> {
    if (this.#folders.has(path)) return;
    await this.#fileSystem.makeDirectory(path);
    this.#folders.add(path);
  }

  /** Makes the names of all files durable. */
  async sync(): Promise<void> {
    for (const path of [...this.#folders, this.#capturesPath]) await this.#fileSystem.syncDirectory(path);
  }
}
