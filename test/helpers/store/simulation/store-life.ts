import type { Random } from "../../../../core/random.js";
import type { RunState } from "../../../../core/run/run-state.js";
import { type CommittedBatch, forEachRecord, type LogRecord } from "../../../../storage/log/committed-batch.js";
import { LOG_RECORD_TYPE } from "../../../../storage/log/record-format.js";
import type { LinkServer } from "../../../../workers/cell-link/link-server.js";
import { Recorder } from "../../../../workers/recorder/recorder.js";
import type {
  FrontToRecorder,
  LogLine,
  RecorderOptions,
  RecorderReady,
  RecorderToFront,
} from "../../../../workers/recorder/recorder-messages.js";
import { type DiskPlace, DiskPlaces } from "../../disk/disk-place.js";
import type { DiskFault, DiskOperation, SimulatedDisk } from "../../disk/simulated-disk.js";
import { slowDisk } from "../../disk/slow-disk.js";
import type { SimulatedProducer } from "../../link/simulated-producer.js";
import { ManualTimers } from "../../recorder/manual-timers.js";
import { SimulatedFront } from "../../recorder/simulated-front.js";
import { type CrashMode, canStrike, type Strike } from "./strike.js";

/** A failed sync of a hint file need not end all writes: nothing acknowledged depends on it. A folder's sync must. */
function isHarmless({ kind }: DiskOperation, place: DiskPlace): boolean {
  return place === "hint" && kind === "datasync";
}

/** Lines that a full disk brings. */
const MEANT_TROUBLE: ReadonlySet<string> = new Set(["the disk is full: all messages wait"]);

export interface LifeOptions {
  disk: SimulatedDisk;
  random: Random;
  wallUs(): number;
  strike: Strike | null;
  /** Every record that the recorder shows the front, those of the log first, but none that comes from a hint file. */
  onRecord(record: LogRecord): void;
  /** Every record that the recorder shows the front from a hint file, some without their body. */
  onHinted(record: LogRecord): void;
  /** False for a store that damage has taken records from. */
  isWhole: boolean;
}

/** One recorder on a simulated disk from its opening to its end, with the front that it serves. */
export class StoreLife {
  readonly disk: SimulatedDisk;
  readonly timers = new ManualTimers();
  readonly faults: string[] = [];
  /** What the strike hit, once it did. */
  struck: DiskPlace | null = null;
  /** The last record that was shown, or that a hint file stands for. */
  lastSequence = 0;
  /** Sealed segments that the opening took from their hint files. */
  hints = 0;
  hintsWritten = 0;
  ready: RecorderReady | null = null;
  /** What health says of the log. */
  logDetail: string | null = null;
  /** The recorder has said that it takes nothing any more, or did not start. */
  hasFailed = false;
  isOpening = true;
  /** The machine or the process has ended. */
  isDead = false;
  readonly #options: LifeOptions;
  readonly #places = new DiskPlaces();
  #recorder: Recorder | null = null;
  #link: LinkServer | null = null;
  #receive: (message: FrontToRecorder) => void = () => {};
  #front: SimulatedFront | null = null;
  #countdown: number;
  /** A sync failed that the store depends on. */
  #hasFailedSync = false;
  #isEnded = false;
  /** What the recorder said of itself that it should not without a strike. */
  readonly #trouble: string[] = [];

  constructor(options: LifeOptions) {
    this.#options = options;
    this.disk = options.disk;
    this.#countdown = options.strike?.after ?? 0;
    this.disk.onOperation = (operation) => this.#befall(operation);
  }

  /** Where its strike is to fall. */
  get place(): Strike["place"] | null {
    return this.#options.strike?.place ?? null;
  }

  /** Its strike has filled the disk. */
  get isFull(): boolean {
    return this.struck !== null && this.#options.strike?.kind === "full";
  }

  /** Nothing more can come of it. */
  get isOver(): boolean {
    return this.isDead || this.hasFailed;
  }

  /** @throws what the recorder's start throws; if the strike ended the life on the way, the life is only over */
  async start(options: RecorderOptions): Promise<void> {
    const { random, wallUs } = this.#options;
    const fileSystem = slowDisk(this.disk, random);
    const front = new SimulatedFront(fileSystem, `${options.dataDirectory}/meta`, (answer) => {
      setImmediate(() => this.#receive(answer));
    });
    this.#front = front;
    try {
      this.#recorder = await Recorder.start(options, {
        fileSystem,
        timers: this.timers,
        wallUs,
        send: (message) => this.#take(message),
        onMessage: (receive) => {
          this.#receive = receive;
        },
        sockets: {
          lock: async () => ({ release: async () => {}, restore: async () => "intact" as const }),
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
    this.isOpening = false;
    if (this.#hasFailedSync) this.faults.push("opened in spite of a failed sync");
    if (this.#options.isWhole) await front.opened();
  }

  connect(producer: SimulatedProducer): void {
    producer.onAnswerWritten = () => {
      if (this.#hasFailedSync && !this.#isEnded) this.faults.push(`${producer.name}: answered after a failed sync`);
    };
    if (this.#link !== null) producer.connect(this.#link);
  }

  /** These runs, as the front shows them. */
  async runs(ids: Iterable<string>): Promise<Map<string, RunState | undefined>> {
    return (await this.#front?.runs(ids)) ?? new Map();
  }

  async stop(): Promise<void> {
    await this.#recorder?.stop();
  }

  /**
   * The disk as the next life finds it: as a power cut leaves it in this mode, or with "restart" as a failed process
   * leaves it. Then the next life reads what a failed sync left in memory alone, and a later power cut takes it.
   */
  end(mode: CrashMode | "restart"): SimulatedDisk {
    this.#isEnded = true;
    this.#front?.close();
    if (this.ready !== null && (this.struck === null || this.isFull) && this.#options.isWhole) {
      this.faults.push(...(this.#front?.faults ?? []), ...this.#trouble);
    }
    if (this.ready !== null && this.hasFailed && (this.struck === null || this.isFull))
      this.faults.push("the recorder failed, and nothing befell it");
    if (this.#hasFailedSync && !this.hasFailed) this.faults.push("a failed sync did not end the recorder");
    const isRestart = mode === "restart" || this.#options.strike?.kind === "kill";
    return isRestart ? this.disk.kill() : this.disk.crash(mode, this.#options.random);
  }

  #befall(operation: DiskOperation): DiskFault | undefined {
    const { strike, random } = this.#options;
    const place = this.#places.placeOf(operation, this.isOpening);
    if (strike === null || this.struck !== null) return undefined;
    if (!canStrike(strike, operation, place, this.isOpening)) return undefined;
    if (this.#countdown-- > 0) return undefined;
    this.struck = place;
    if (strike.kind === "sync") {
      this.#hasFailedSync = !isHarmless(operation, place) && !this.#isOfBallast(operation);
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
    return !this.isOpening && kind === "syncDirectory" && !path.includes("/", 1);
  }

  #take(message: RecorderToFront): void {
    if (this.#isEnded || this.isDead) return;
    switch (message.kind) {
      case "batch":
        this.#takeBatch(message.batch);
        break;
      case "ready":
        this.ready = message;
        break;
      case "health":
        this.logDetail = message.rows.find(({ key }) => key === "log")?.detail ?? null;
        break;
      case "log":
        this.#read(message.line);
        break;
      default:
        break;
    }
    this.#front?.take(message);
  }

  #read({ level, message, fields }: LogLine): void {
    if (message === "the recorder takes no more messages") this.hasFailed = true;
    if (level === "error" && !MEANT_TROUBLE.has(message)) this.#trouble.push(`${message}: ${JSON.stringify(fields)}`);
    if (message === "wrote a hint file") this.hintsWritten++;
  }

  #takeBatch(batch: CommittedBatch): void {
    if (batch.isHint) {
      this.hints++;
      forEachRecord(batch, (record) => this.#options.onHinted(record));
      if (batch.firstSequence !== this.lastSequence + 1 && this.#options.isWhole)
        this.faults.push(`a gap: a hint from ${batch.firstSequence} on is shown behind ${this.lastSequence}`);
      this.lastSequence = batch.lastSequence;
      return;
    }
    forEachRecord(batch, (record) => {
      this.#options.onRecord(record);
      if (record.type === LOG_RECORD_TYPE.openingState) return;
      const { sequence, type } = record;
      if (sequence !== this.lastSequence + 1 && this.#options.isWhole)
        this.faults.push(`a gap: record ${sequence} (type ${type}) is shown behind ${this.lastSequence}`);
      this.lastSequence = sequence;
    });
  }
}
