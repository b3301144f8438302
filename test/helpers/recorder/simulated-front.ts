import type { RunState } from "../../../core/run/run-state.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { View } from "../../../storage/view/view.js";
import type { FrontToRecorder, RecorderToFront } from "../../../workers/recorder/recorder-messages.js";

/** What the front does with the recorder's messages, as http/service/service.ts and recorder-handle.ts have it, in one thread and without a clock. */
export class SimulatedFront {
  readonly #reader: LogReader;
  readonly #answer: (message: FrontToRecorder) => void;
  readonly #view: View;
  /** One thing after the other, in the order of the messages. */
  #taken: Promise<void> = Promise.resolve();
  /** What it could not do. */
  readonly faults: string[] = [];

  constructor(fileSystem: FileSystem, metaPath: string, answer: (message: FrontToRecorder) => void) {
    this.#answer = answer;
    this.#reader = new LogReader({ fileSystem, directory: metaPath, nowMs: () => 0 });
    // With caches that hold next to nothing: what is asked for is read.
    this.#view = new View({ reader: this.#reader, summaryCacheBytes: 1, runCacheBytes: 1 });
  }

  take(message: RecorderToFront): void {
    switch (message.kind) {
      case "batch":
        this.#then(() => {
          this.#view.fold.applyBatch(message.batch);
          this.#answer({ kind: "batch_taken", memory: message.batch.bytes.buffer as ArrayBuffer });
        });
        return;
      case "let_go_of_captures":
        this.#then(() => this.#answer({ kind: "captures_let_go" }));
        return;
      default:
        return;
    }
  }

  /** The recorder has opened the store: resolves when the view shows all of it. */
  async opened(): Promise<void> {
    await this.#taken;
    this.#view.fold.finishOpening();
  }

  /** These runs as the view shows them once it has taken in what it was sent; undefined for one that it does not know. */
  async runs(ids: Iterable<string>): Promise<Map<string, RunState | undefined>> {
    await this.#taken;
    const runs = new Map<string, RunState | undefined>();
    for (const id of ids) {
      try {
        runs.set(id, await this.#view.run(id));
      } catch (error) {
        this.faults.push(`run ${id} cannot be read: ${(error as Error).message}`);
      }
    }
    return runs;
  }

  get runCount(): number {
    return this.#view.runs.size;
  }

  close(): void {
    this.#reader.close();
  }

  #then(step: () => Promise<void> | void): void {
    this.#taken = this.#taken.then(step).catch((error: Error) => {
      this.faults.push(`the front: ${error.stack}`);
    });
  }
}
