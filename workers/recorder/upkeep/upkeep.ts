import type { RunState } from "../../../core/run/run-state.js";
import type { Timers } from "../../../core/timers.js";
import { captureMonth } from "../../../storage/captures/capture-path.js";
import type { CaptureStore } from "../../../storage/captures/capture-store.js";
import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import type { CommittedBatch } from "../../../storage/log/committed-batch.js";
import type { Log } from "../../../storage/log/log.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import type { StorageErrorData } from "../../../storage/storage-error.js";
import type { LogLine, RecorderToFront, RetentionPolicy } from "../recorder-messages.js";
import type { RecorderState } from "../recorder-state.js";
import { HintFiles } from "./hint-files.js";
import { Retention } from "./retention.js";
import type { StoreCounters } from "./store-counters.js";

export interface UpkeepOptions {
  fileSystem: FileSystem;
  timers: Timers;
  wallUs(): number;
  send(message: RecorderToFront, transfer?: ArrayBuffer[]): void;
  directory: DataDirectory;
  log: Log;
  state: RecorderState;
  captures: CaptureStore;
  policy: RetentionPolicy;
  /** Called before this many bytes are written. */
  spend(bytes: number): void;
  /** Called when a segment is damaged. */
  onReadDamage(error: StorageErrorData): void;
  appendTombstone(run: RunState): { sequence: number; timeUs: number };
  /** Called when health may have changed. */
  onChange(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/** The work on the store beside recording: retention of captures, and hint files of sealed segments. */
export class Upkeep {
  readonly #options: UpkeepOptions;
  readonly #reader: LogReader;
  readonly #retention: Retention;
  readonly #hints: HintFiles;
  #whenLetGo: (() => void) | null = null;
  #isStopped = false;

  constructor(options: UpkeepOptions) {
    this.#options = options;
    const { fileSystem, timers, wallUs, log, state, captures, line } = options;
    const directory = options.directory.metaPath;
    this.#reader = new LogReader({ fileSystem, directory });
    this.#retention = new Retention({
      policy: options.policy,
      dataDirectory: options.directory.path,
      captureIndex: state.captures,
      timers,
      wallUs,
      lastTimeUs: () => state.lastTimeUs,
      read: (location) => this.#reader.read(location),
      appendTombstone: options.appendTombstone,
      whenDurable: (sequence) => log.whenDurable(sequence),
      letGo: (runIds) => this.#letGo(runIds),
      removeCaptures: (runIds) => captures.removeCaptures(runIds, (month) => this.#isPastMonth(month)),
      onChange: options.onChange,
      line,
    });
    this.#hints = new HintFiles({ ...options, directory });
  }

  get counters(): StoreCounters {
    return { retention: this.#retention.removed };
  }

  /** What keeps retention from removing captures; null if nothing does. */
  get retentionFault(): string | null {
    return this.#retention.fault;
  }

  start(): void {
    this.#retention.start();
    this.#hints.start();
  }

  /** The record of a run's end was appended: its first one, or a tombstone. */
  endAppended(run: RunState, sequence: number): void {
    this.#retention.endAppended(run, sequence);
  }

  committed(batch: CommittedBatch): void {
    this.#retention.committed(batch);
    this.#hints.committed(batch.segmentBase);
  }

  /** The front has answered `let_go_of_captures`. */
  capturesLetGo(): void {
    this.#whenLetGo?.();
  }

  /** Resolves when nothing is under way any more. The next start continues what was begun. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const stopped = [this.#retention.stop(), this.#hints.stop()];
    // The front may be gone and never answer. The next start asks again.
    this.#whenLetGo?.();
    await Promise.all(stopped);
    this.#reader.close();
  }

  /** True for a month that no new run can belong to, because run ids ascend. */
  #isPastMonth(month: string): boolean {
    const { lastRunId } = this.#options.state;
    return lastRunId !== null && month < captureMonth(lastRunId);
  }

  #letGo(runIds: readonly string[]): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenLetGo = resolve;
      this.#options.send({ kind: "let_go_of_captures", runIds });
    });
  }
}
