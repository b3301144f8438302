import { setImmediate as eventLoopTurn } from "node:timers/promises";
import type { RunState } from "../../../core/run/run-state.js";
import type { Timers } from "../../../core/timers.js";
import { captureMonth } from "../../../storage/captures/capture-path.js";
import type { CaptureStore } from "../../../storage/captures/capture-store.js";
import type { SegmentMoves } from "../../../storage/compaction/segment-moves.js";
import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import type { Log } from "../../../storage/log/log.js";
import type { CommittedBatch } from "../../../storage/log/log-batch.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import type { StorageErrorData } from "../../../storage/storage-error.js";
import { Compaction } from "../../compaction/compaction.js";
import type { FrontToRecorder, LogLine, RecorderToFront, RetentionPolicy } from "../recorder-messages.js";
import type { RecorderState } from "../recorder-state.js";
import type { DiskRoom } from "./disk-room.js";
import type { ExclusiveWork } from "./exclusive-work.js";
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
  room: DiskRoom;
  policy: RetentionPolicy;
  /** Keeps compaction and snapshots apart. */
  work: ExclusiveWork;
  appendTombstone(run: RunState): { sequence: number; timeUs: number };
  /** Called when stored bytes of the log are damaged or cannot be read. */
  onReadDamage(error: StorageErrorData): void;
  /** Called when health may have changed. */
  onChange(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/** Keeps the store small: retention of captures and compaction of the log. */
export class Upkeep {
  readonly #options: UpkeepOptions;
  readonly #reader: LogReader;
  readonly #retention: Retention;
  readonly #compaction: Compaction;
  #whenLetGo: (() => void) | null = null;
  #whenHeld: ((isHeld: boolean) => void) | null = null;
  #isStopped = false;

  constructor(options: UpkeepOptions) {
    this.#options = options;
    const { fileSystem, timers, wallUs, log, state, captures, room, line } = options;
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
    this.#compaction = new Compaction({
      fileSystem,
      directory,
      places: state.places,
      work: options.work,
      timers,
      wallUs,
      giveWay: async () => {
        await eventLoopTurn();
        if (log.pendingBytes > 0) await log.whenCommitted(log.nextSequence - 1);
      },
      hasRoom: () => room.level === "enough",
      spend: (bytes) => room.spend(bytes),
      whenDurable: () => log.whenDurable(log.nextSequence - 1),
      syncNames: () => log.syncNames(),
      hold: (segmentBase) => this.#hold(segmentBase),
      moved: (moves) => this.#moved(moves),
      onReadDamage: options.onReadDamage,
      onChange: options.onChange,
      line,
    });
  }

  get counters(): StoreCounters {
    return { retention: this.#retention.removed, compaction: this.#compaction.compacted };
  }

  /** What keeps retention from removing captures; null if nothing does. */
  get retentionFault(): string | null {
    return this.#retention.fault;
  }

  /** Which segments are not compacted, why, and since when; null if compaction has no fault. */
  get compactionFault(): string | null {
    return this.#compaction.fault;
  }

  start(): void {
    this.#retention.start();
    this.#compaction.start();
  }

  /** The record of a run's end was appended: a first one, or a tombstone. */
  endAppended(run: RunState, sequence: number): void {
    this.#retention.endAppended(run, sequence);
  }

  committed(batch: CommittedBatch): void {
    this.#retention.committed(batch);
    this.#compaction.committed(batch.segmentBase);
  }

  roomChanged(): void {
    this.#compaction.roomChanged();
  }

  answered(message: Extract<FrontToRecorder, { kind: "captures_let_go" | "segment_held" }>): void {
    if (message.kind === "captures_let_go") this.#whenLetGo?.();
    else this.#whenHeld?.(message.isHeld);
  }

  /** Resolves when nothing is under way any more. The next start continues what was begun. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const stopped = [this.#retention.stop(), this.#compaction.stop()];
    // The front may be gone and never answer. The next start asks again.
    this.#whenLetGo?.();
    this.#whenHeld?.(false);
    await Promise.all(stopped);
    this.#reader.close();
  }

  /** True for a month that no new run can fall into: run ids ascend. */
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

  async #hold(segmentBase: number): Promise<boolean> {
    await this.#reader.hold(segmentBase);
    if (this.#isStopped) return false;
    const isHeld = await new Promise<boolean>((resolve) => {
      this.#whenHeld = resolve;
      this.#options.send({ kind: "hold_segment", segmentBase });
    });
    if (!isHeld) this.#reader.letGo(segmentBase);
    return isHeld;
  }

  #moved(moves: SegmentMoves): void {
    this.#reader.replaced(moves.segmentBase);
    this.#options.state.captures.moved(moves);
    this.#reader.letGo(moves.segmentBase);
    const { runs, deliveries } = moves;
    const columns = [...Object.values(runs), ...Object.values(deliveries)] as (Uint32Array | Float64Array)[];
    const transfer = columns.map(({ buffer }) => buffer as ArrayBuffer);
    this.#options.send({ kind: "segment_moved", moves }, transfer);
  }
}
