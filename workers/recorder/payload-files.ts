import { crc32 } from "node:zlib";
import type { Extent } from "../../core/capture.js";
import type { RunState } from "../../core/run-state.js";
import type { PayloadStore } from "../../core/world.js";
import type { CaptureFile } from "../../storage/capture-file.js";
import type { CaptureStore } from "../../storage/capture-store.js";

type FileKind = "captures" | "reports";

/** Where in a run's files the bytes end that its records name: what stands behind was never acknowledged. */
function committedEnd(run: RunState, kind: FileKind): number {
  let end = 0;
  const reach = (extent: Extent): void => {
    if (extent.offset + extent.lengthBytes > end) end = extent.offset + extent.lengthBytes;
  };
  if (kind === "reports") {
    run.files.forEach(reach);
  } else {
    for (const frame of run.frames) frame.batches.forEach(reach);
    for (const series of run.series) series.appends.forEach(reach);
  }
  return end;
}

/** The files of active runs. A file is looked up once a run, so that an append costs no walk over the run's extents. */
export class PayloadFiles {
  readonly #store: CaptureStore;
  readonly #activeRun: (id: string) => RunState | undefined;
  readonly #files = new Map<string, Partial<Record<FileKind, CaptureFile>>>();

  constructor(store: CaptureStore, activeRun: (id: string) => RunState | undefined) {
    this.#store = store;
    this.#activeRun = activeRun;
  }

  get(runId: string, kind: FileKind): CaptureFile {
    let files = this.#files.get(runId);
    if (files === undefined) {
      files = {};
      this.#files.set(runId, files);
    }
    let file = files[kind];
    if (file === undefined) {
      const run = this.#activeRun(runId);
      const end = run === undefined ? 0 : committedEnd(run, kind);
      file = this.#store.file(runId, kind === "captures" ? "capture" : "report", end);
      files[kind] = file;
    }
    return file;
  }

  runEnded(runId: string): void {
    if (this.#files.delete(runId)) this.#store.finish(runId);
  }
}

/** The payload of one message: on its way to the disk as soon as the message is accepted. */
export class MessagePayload implements PayloadStore {
  readonly #files: PayloadFiles;
  readonly #bytes: Uint8Array;
  /** The file that took it; what the message's record needs durable. */
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

  store(runId: string, kind: FileKind): Extent {
    this.file = this.#files.get(runId, kind);
    return this.file.append(this.#bytes);
  }
}
