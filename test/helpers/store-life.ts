import type { Random } from "../../core/random.js";
import { foldRun } from "../../core/run-fold.js";
import type { RunState } from "../../core/run-state.js";
import { decodeChanges } from "../../storage/change-record.js";
import { type CommittedBatch, forEachRecord, type LogRecord } from "../../storage/log-batch.js";
import { walkLog } from "../../storage/log-walk.js";
import { readRecordHeader, recordLength } from "../../storage/record-format.js";
import { isChangeRecordType, RECORD_TYPE } from "../../storage/record-index.js";
import { RecoveryReportBuilder } from "../../storage/recovery-report.js";
import { SnapshotError } from "../../storage/snapshot-format.js";
import type { LinkServer } from "../../workers/cell-link/link-server.js";
import { Recorder } from "../../workers/recorder/recorder.js";
import type {
  FrontToRecorder,
  RecorderOptions,
  RecorderReady,
  RecorderToFront,
} from "../../workers/recorder/recorder-messages.js";
import { makeSnapshot, type SnapshotRequest } from "../../workers/snapshot/make-snapshot.js";
import type { SnapshotWork } from "../../workers/snapshot/snapshot-worker.js";
import { type DiskPlace, DiskPlaces } from "./disk-place.js";
import { ManualTimers } from "./manual-timers.js";
import type { DiskFault, DiskOperation, SimulatedDisk } from "./simulated-disk.js";
import type { SimulatedProducer } from "./simulated-producer.js";
import { slowDisk } from "./slow-disk.js";

export const CRASH_MODES = ["drop", "keep", "tear"] as const;

/** What befalls a life, when it comes to that place. */
export interface Strike {
  place: DiskPlace | "any";
  /** So many operations that it could strike go by before. */
  after: number;
  /** The machine or the process ends; a sync fails; anything that writes fails; the disk is full from here on. */
  kind: "crash" | "kill" | "sync" | "write" | "full";
}

/** Where a failed sync is no reason to end all writes: nothing that was acknowledged depends on it. */
const HARMLESS_SYNCS: ReadonlySet<DiskPlace> = new Set(["snapshot", "compaction"]);
const WRITING: ReadonlySet<DiskOperation["kind"]> = new Set([
  "write",
  "truncate",
  "create",
  "rename",
  "unlink",
  "mkdir",
]);

export interface LifeOptions {
  disk: SimulatedDisk;
  random: Random;
  wallUs(): number;
  strike: Strike | null;
  /** Every record that the recorder shows the front, those that the log held first. */
  onRecord(record: LogRecord): void;
  /** False where damage has taken records that a run cannot be folded without. */
  foldsRuns: boolean;
}

/** One recorder on a simulated disk from its opening to its end, with the front that it serves. */
export class StoreLife {
  readonly disk: SimulatedDisk;
  readonly timers = new ManualTimers();
  /** As the front knows them. */
  readonly runs = new Map<string, RunState>();
  readonly faults: string[] = [];
  /** What the strike hit, once it did. */
  struck: DiskPlace | null = null;
  lastSequence = 0;
  ready: RecorderReady | null = null;
  snapshotsMade = 0;
  snapshotsTaken = 0;
  /** The recorder has said that it takes nothing any more, or did not start. */
  hasFailed = false;
  /** The machine or the process has ended. */
  isDead = false;
  readonly #options: LifeOptions;
  readonly #places = new DiskPlaces();
  #recorder: Recorder | null = null;
  #link: LinkServer | null = null;
  #receive: (message: FrontToRecorder) => void = () => {};
  #countdown: number;
  #isOpening = true;
  /** A sync failed that the store depends on. */
  #hasFailedSync = false;
  #isStopping = false;
  #isEnded = false;

  constructor(options: LifeOptions) {
    this.#options = options;
    this.disk = options.disk;
    this.#countdown = options.strike?.after ?? 0;
    this.disk.onOperation = (operation) => this.#befall(operation);
  }

  /** Its strike has filled the disk. */
  get isFull(): boolean {
    return this.struck !== null && this.#options.strike?.kind === "full";
  }

  /** Nothing more can come of it. */
  get isOver(): boolean {
    return this.isDead || this.hasFailed;
  }

  /** @throws what the recorder's start does; a life that its strike ended on the way only is over */
  async start(options: RecorderOptions): Promise<void> {
    const { random, wallUs } = this.#options;
    try {
      this.#recorder = await Recorder.start(options, {
        fileSystem: slowDisk(this.disk, random),
        timers: this.timers,
        wallUs,
        send: (message) => this.#take(message),
        onMessage: (receive) => {
          this.#receive = receive;
        },
        makeSnapshot: (request) => this.#makeSnapshot(request),
        sockets: {
          lock: async () => ({ release: async () => {} }),
          listen: (link) => {
            this.#link = link;
          },
        },
      });
    } catch (error) {
      this.hasFailed = true;
      if (this.struck === null) throw error;
      return;
    }
    if (this.#hasFailedSync) this.faults.push("opened in spite of a failed sync");
    this.#isOpening = false;
  }

  connect(producer: SimulatedProducer): void {
    producer.onAnswerWritten = () => {
      if (this.#hasFailedSync && !this.#isEnded) this.faults.push(`${producer.name}: answered after a failed sync`);
    };
    if (this.#link !== null) producer.connect(this.#link);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#recorder?.stop();
  }

  /** The disk as the next life finds it. */
  end(mode: (typeof CRASH_MODES)[number]): SimulatedDisk {
    this.#isEnded = true;
    if (this.ready !== null && this.hasFailed && (this.struck === null || this.isFull))
      this.faults.push("the recorder failed, and nothing befell it");
    if (this.#hasFailedSync && !this.hasFailed) this.faults.push("a failed sync did not end the recorder");
    return this.#options.strike?.kind === "kill" ? this.disk.kill() : this.disk.crash(mode, this.#options.random);
  }

  #befall(operation: DiskOperation): DiskFault | undefined {
    const { strike, random } = this.#options;
    const place = this.#places.placeOf(operation, this.#isOpening, this.disk);
    if (strike === null || this.struck !== null) return undefined;
    // What finds no room while all stops has nothing to wait for, and fails.
    if (strike.kind === "full" && this.#isStopping) return undefined;
    // Where the opening did too little for it, it strikes later.
    if (strike.place !== "any" && strike.place !== place && !(strike.place === "recovery" && !this.#isOpening)) {
      return undefined;
    }
    const isSync = operation.kind === "datasync" || operation.kind === "syncDirectory";
    if (strike.kind === "sync" && !isSync) return undefined;
    if (strike.kind === "write" && !WRITING.has(operation.kind)) return undefined;
    if (this.#countdown-- > 0) return undefined;
    this.struck = place;
    if (strike.kind === "sync") {
      this.#hasFailedSync = !HARMLESS_SYNCS.has(place) && !this.#isOfBallast(operation);
      return { error: random.pick(["EIO", "ENOSPC"]) };
    }
    if (strike.kind === "write") return { error: "EIO" };
    if (strike.kind === "full") {
      this.disk.limitBytes = this.disk.usedBytes + random.integer(0, 600);
      return undefined;
    }
    this.isDead = true;
    return operation.kind === "write" ? { dies: true, short: random.integer(0, 300) } : { dies: true };
  }

  /** Once the store is open, nothing else syncs names in the data directory itself. */
  #isOfBallast({ kind, path }: DiskOperation): boolean {
    if (path.includes("/ballast")) return true;
    return !this.#isOpening && kind === "syncDirectory" && !path.includes("/", 1);
  }

  #take(message: RecorderToFront): void {
    if (this.#isEnded || this.isDead) return;
    switch (message.kind) {
      case "batch":
        this.#takeBatch(message.batch);
        setImmediate(() => this.#receive({ kind: "batch_taken", bytes: message.batch.bytes.length }));
        break;
      case "snapshot":
        void this.#takeSnapshot(message.sequence);
        break;
      case "snapshot_discarded":
        this.runs.clear();
        this.lastSequence = 0;
        break;
      case "let_go_of_captures":
        setImmediate(() => this.#receive({ kind: "captures_let_go" }));
        break;
      case "ready":
        this.ready = message;
        break;
      case "log":
        if (message.line.message === "the recorder takes no more messages") this.hasFailed = true;
        break;
      default:
        break;
    }
  }

  #makeSnapshot(request: SnapshotRequest): SnapshotWork {
    const outcome = makeSnapshot(slowDisk(this.disk, this.#options.random), request).then(
      (made) => {
        this.snapshotsMade++;
        return { made };
      },
      (error: Error) => (error instanceof SnapshotError ? { refused: error.message } : { failed: error.message }),
    );
    return { outcome, cancel: () => {} };
  }

  /** What a front would take out of the snapshot, this one reads from the log, which is to say the same; or it takes none. */
  async #takeSnapshot(sequence: number): Promise<void> {
    let takes = this.#options.random.chance(0.8);
    if (takes) {
      await walkLog({
        fileSystem: this.disk,
        directory: "/data/meta",
        firstSequence: 1,
        understandsType: isChangeRecordType,
        builder: new RecoveryReportBuilder(),
        quarantine: async () => null,
        deliversTail: true,
        onRecords: (batch) => {
          const part = { ...batch, bytes: throughSequence(batch.bytes, sequence) };
          this.#takeBatch({ ...part, lastSequence: Math.min(batch.lastSequence, sequence) });
        },
      }).catch(() => {
        takes = false;
      });
    }
    if (takes) this.snapshotsTaken++;
    setImmediate(() =>
      this.#receive(takes ? { kind: "snapshot_taken" } : { kind: "snapshot_refused", reason: "not this time" }),
    );
  }

  #takeBatch(batch: CommittedBatch): void {
    forEachRecord(batch, (record) => {
      this.#options.onRecord(record);
      if (!this.#options.foldsRuns) return;
      if (!isChangeRecordType(record.type) || record.type === RECORD_TYPE.refusal) return;
      for (const change of decodeChanges(record.type, record.body)) {
        if ("runId" in change) this.runs.set(change.runId, foldRun(this.runs.get(change.runId), change, record.timeUs));
      }
    });
    this.lastSequence = Math.max(this.lastSequence, batch.lastSequence);
  }
}

/** The part of whole records with numbers up to that one. */
function throughSequence(bytes: Uint8Array, sequence: number): Uint8Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  while (at < bytes.length) {
    const header = readRecordHeader(view, at);
    if (header.sequence > sequence) break;
    at += recordLength(header.indexLength, header.bodyLength);
  }
  return bytes.subarray(0, at);
}
