import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Test } from "tap";
import type { ComponentRow } from "../../../core/health.js";
import type { Refusal } from "../../../core/link/refusal.js";
import { foldRun } from "../../../core/run/run-fold.js";
import type { RunState } from "../../../core/run/run-state.js";
import { wallClockUs } from "../../../core/service-clock.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { readFullySync } from "../../../storage/disk/whole-files.js";
import { type CommittedBatch, forEachRecord, type RecordLocation } from "../../../storage/log/committed-batch.js";
import { segmentName } from "../../../storage/log/segment.js";
import { decodeChanges, decodeRefusal } from "../../../storage/records/change-record.js";
import { decodeIndex, isChangeRecordType, type Origin, RECORD_TYPE } from "../../../storage/records/record-index.js";
import type { StorageErrorData } from "../../../storage/storage-error.js";
import type { ArtefactMaker } from "../../../workers/recorder/captures/artefact-maker.js";
import { Recorder } from "../../../workers/recorder/recorder.js";
import type {
  FrontToRecorder,
  LogLine,
  RecorderOptions,
  RecorderReady,
  RecorderToFront,
} from "../../../workers/recorder/recorder-messages.js";
import type { RecorderFigures } from "../../../workers/recorder/status/recorder-figures.js";
import type { WebhookReply, WebhookRequest } from "../../../workers/webhooks/webhook-requests.js";
import { RawProducer } from "../link/raw-producer.js";
import { ManualTimers } from "./manual-timers.js";
import { PLAIN_OPTIONS } from "./plain-options.js";

export interface HarnessOptions extends Partial<RecorderOptions> {
  fileSystem?: FileSystem;
  /** Default: the wall clock. */
  wallUs?: () => number;
  /** False: the front takes no batches until `takeBatches`. */
  takesBatches?: boolean;
  /** Without it captures are not processed. */
  artefacts?: ArtefactMaker;
}

export function temporaryDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), "recorder-"));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A recorder in this thread, over real sockets and files, with the test as its front and its clock. */
export class RecorderHarness {
  readonly timers = new ManualTimers();
  readonly directory: string;
  readonly lines: LogLine[] = [];
  readonly readDamages: StorageErrorData[] = [];
  readonly runs = new Map<string, RunState>();
  readonly programs = new Set<string>();
  readonly origins: Origin[] = [];
  readonly refusals: { origin: Origin | null; refusal: Refusal }[] = [];
  readonly recordTimesUs: number[] = [];
  health: ComponentRow[] = [];
  /** What retention asked the front to let go of. */
  readonly askedToLetGo: (readonly string[])[] = [];
  /** False: the front does not answer. */
  letsGo = true;
  batchBytes = 0;
  #takesBatches: boolean;
  #untaken: FrontToRecorder[] = [];
  #ready: RecorderReady | undefined;
  #receive: (message: FrontToRecorder) => void = () => {};
  #recorder: Recorder | undefined;
  #stopFailure: string | null = null;
  #changed: (() => void)[] = [];
  #figures: RecorderFigures | undefined;
  readonly #replies = new Map<number, (reply: WebhookReply) => void>();
  readonly #fileSystem: FileSystem;

  private constructor(directory: string, fileSystem: FileSystem, takesBatches: boolean) {
    this.directory = directory;
    this.#fileSystem = fileSystem;
    this.#takesBatches = takesBatches;
  }

  static async start(t: Test, directory: string, options: HarnessOptions = {}): Promise<RecorderHarness> {
    const {
      fileSystem = nodeFileSystem,
      wallUs = wallClockUs,
      takesBatches = true,
      artefacts,
      ...recorderOptions
    } = options;
    const harness = new RecorderHarness(directory, fileSystem, takesBatches);
    harness.#recorder = await Recorder.start(
      {
        dataDirectory: directory,
        ...PLAIN_OPTIONS,
        // Each start writes it, and a simulated disk keeps a copy for every crash.
        diskRoom: { low: null, critical: null, ballastBytes: 64 * 1024 },
        ...recorderOptions,
      },
      {
        fileSystem,
        timers: harness.timers,
        wallUs,
        ...(artefacts && { artefacts }),
        send: (message) => harness.#take(message),
        onMessage: (receive) => {
          harness.#receive = receive;
        },
      },
    );
    t.teardown(() => harness.stop());
    return harness;
  }

  get ready(): RecorderReady {
    if (this.#ready === undefined) throw new Error("the recorder is not ready");
    return this.#ready;
  }

  get address(): { path: string } {
    return { path: this.ready.cellSocketPath };
  }

  connect(producer: string, instance?: string): Promise<RawProducer> {
    return RawProducer.connect(this.address, producer, instance === undefined ? {} : { instance });
  }

  run(id: string): RunState {
    const run = this.runs.get(id);
    if (run === undefined) throw new Error(`no record of run ${id}`);
    return run;
  }

  row(key: string): ComponentRow {
    const row = this.health.find((one) => one.key === key);
    if (row === undefined) throw new Error(`no row of health ${key}`);
    return row;
  }

  /** Resolves when what the recorder has sent fulfils the condition. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#changed.push(resolve));
  }

  /** A write of webhooks, as the front asks for it. */
  request(request: WebhookRequest): Promise<WebhookReply> {
    const id = this.#replies.size + 1;
    return new Promise((resolve) => {
      this.#replies.set(id, resolve);
      this.#receive({ kind: "request", id, request });
    });
  }

  /** The front takes what it was sent, and from now on everything. */
  takeBatches(): void {
    this.#takesBatches = true;
    for (const taken of this.#untaken.splice(0)) this.#receive(taken);
  }

  /** What the recorder has counted: it answers at once. */
  get figures(): RecorderFigures | undefined {
    this.#receive({ kind: "figures" });
    return this.#figures;
  }

  /** @returns what the stop has to say of the recording, for people; null after a clean end */
  async stop(): Promise<string | null> {
    // These ticks end connections which do not end themselves.
    const ticking = setInterval(() => this.timers.advance(1_000), 20);
    await this.#recorder?.stop();
    clearInterval(ticking);
    return this.#stopFailure;
  }

  #take(message: RecorderToFront): void {
    switch (message.kind) {
      case "batch":
        this.#takeBatch(message.batch);
        break;
      case "stopped":
        this.#stopFailure = message.failure;
        break;
      case "health":
        this.health = message.rows;
        break;
      case "figures":
        this.#figures = message.figures;
        break;
      case "log":
        this.lines.push(message.line);
        break;
      case "reply":
        this.#replies.get(message.id)?.(message.reply);
        break;
      case "read_damage":
        this.readDamages.push(message.error);
        break;
      case "ready":
        this.#ready = message;
        break;
      case "let_go_of_captures":
        this.askedToLetGo.push(message.runIds);
        if (this.letsGo) queueMicrotask(() => this.#receive({ kind: "captures_let_go" }));
        break;
      default:
        break;
    }
    for (const changed of this.#changed.splice(0)) changed();
  }

  /** The body of a record in the log: a hint leaves out what a start does not need. */
  #bodyAt({ segmentBase, offset, length }: RecordLocation): Uint8Array {
    const file = this.#fileSystem.openSync(`${this.directory}/meta/${segmentName(segmentBase)}`);
    const bytes = new Uint8Array(length);
    readFullySync(file, bytes, offset);
    file.closeSync();
    let body: Uint8Array = bytes;
    forEachRecord({ bytes, segmentBase, offset }, (record) => {
      body = record.body;
    });
    return body;
  }

  #takeBatch(batch: CommittedBatch): void {
    this.batchBytes += batch.bytes.length;
    // Other memory of the same size goes back: a test may read the batch later, and must find it as it came.
    const taken = { kind: "batch_taken", memory: new ArrayBuffer(batch.bytes.buffer.byteLength) } as const;
    if (this.#takesBatches) queueMicrotask(() => this.#receive(taken));
    else this.#untaken.push(taken);
    forEachRecord(batch, ({ type, index, body: given, timeUs }, location) => {
      if (!isChangeRecordType(type)) return;
      const body = batch.isHint && given.length === 0 ? this.#bodyAt(location) : given;
      this.recordTimesUs.push(timeUs);
      const { origin } = decodeIndex(type, index);
      if (origin !== null) this.origins.push(origin);
      if (type === RECORD_TYPE.refusal) {
        this.refusals.push({ origin, refusal: decodeRefusal(body) });
        return;
      }
      for (const change of decodeChanges(type, body)) {
        if (change.kind === "program_put") this.programs.add(change.program.id);
        if (!("runId" in change)) continue;
        this.runs.set(change.runId, foldRun(this.runs.get(change.runId), change, timeUs));
      }
    });
  }
}
