import { crc32 } from "node:zlib";
import type { Extent } from "../../../core/capture/capture.js";
import type { PayloadStore } from "../../../core/link/decision-context.js";
import { storedEnd } from "../../../core/run/run-files.js";
import type { RunState, StoredKind } from "../../../core/run/run-state.js";
import type { CaptureFile } from "../../../storage/captures/capture-file.js";
import { FILE_OF_KIND } from "../../../storage/captures/capture-path.js";
import type { CaptureStore } from "../../../storage/captures/capture-store.js";

/**
 * The capture files of active runs, and of runs that are still processed. They are cached, because finding a file's end
 * means going through all extents of the run.
 */
export class PayloadFiles {
  readonly #store: CaptureStore;
  readonly #run: (id: string) => RunState | undefined;
  readonly #files = new Map<string, Partial<Record<StoredKind, CaptureFile>>>();

  constructor(store: CaptureStore, run: (id: string) => RunState | undefined) {
    this.#store = store;
    this.#run = run;
  }

  get(runId: string, kind: StoredKind): CaptureFile {
    let files = this.#files.get(runId);
    if (files === undefined) {
      files = {};
      this.#files.set(runId, files);
    }
    let file = files[kind];
    if (file === undefined) {
      const run = this.#run(runId);
      // Bytes after those that records name were never acknowledged, and are overwritten.
      const end = run === undefined ? 0 : storedEnd(run, kind);
      file = this.#store.file(runId, FILE_OF_KIND[kind], end);
      files[kind] = file;
    }
    return file;
  }

  /** The run stores nothing more. */
  finish(runId: string): void {
    if (this.#files.delete(runId)) this.#store.finish(runId);
  }
}

/** The payload of one message. It goes to the disk as soon as the message is accepted. */
export class MessagePayload implements PayloadStore {
  readonly #files: PayloadFiles;
  readonly #bytes: Uint8Array;
  /** The file that took it. The message's record needs it to be durable. */
  file: CaptureFile | undefined;

  constructor(files: PayloadFiles, bytes: Uint8Array) {
    this.#files = files;
    this.#bytes = bytes;
  }

  get lengthBytes(): number {
    return this.#bytes.length;
  }

  crc32(lengthBytes: number, start: number): number {
    return crc32(this.#bytes.subarray(0, lengthBytes), start);
  }

  store(runId: string, kind: StoredKind): Extent {
    this.file = this.#files.get(runId, kind);
    return this.file.append(this.#bytes);
  }
}
