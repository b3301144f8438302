import { since } from "../../core/health.js";
import { LIMITS } from "../../core/limits.js";
import { storedEnd } from "../../core/run/run-files.js";
import type { RunState } from "../../core/run/run-state.js";
import { clockFault, createServiceClock, type ServiceClock } from "../../core/service-clock.js";
import type { Timers } from "../../core/timers.js";
import { CaptureIndex } from "../../storage/captures/capture-index.js";
import { capturePath } from "../../storage/captures/capture-path.js";
import { CaptureStore } from "../../storage/captures/capture-store.js";
import type { SegmentMoves } from "../../storage/compaction/segment-moves.js";
import {
  type DataDirectoryOptions,
  type LockedDataDirectory,
  openDataDirectory,
} from "../../storage/disk/data-directory.js";
import type { FileSystem } from "../../storage/disk/file-system.js";
import type { Log } from "../../storage/log/log.js";
import type { CommittedBatch } from "../../storage/log/log-batch.js";
import { StorageError, type StorageErrorData } from "../../storage/storage-error.js";
import { LinkServer } from "../cell-link/link-server.js";
import type { IncomingMessage, MessageIntake, ProducerProgress } from "../cell-link/message-intake.js";
import type { LoopDelay } from "../loop-delay.js";
import type { SnapshotRequest } from "../snapshot/make-snapshot.js";
import { type OpenedSnapshot, SnapshotUnreadError } from "../snapshot/snapshot-opening.js";
import { SnapshotSchedule } from "../snapshot/snapshot-schedule.js";
import type { SnapshotWork } from "../snapshot/snapshot-worker.js";
import { WebhookService } from "../webhooks/deliveries/webhook-service.js";
import type { startDispatcher } from "../webhooks/dispatcher-handle.js";
import type { ArtefactMaker } from "./captures/artefact-maker.js";
import { BatchStream } from "./captures/batch-stream.js";
import { CaptureProcessing } from "./captures/capture-processing.js";
import { PayloadFiles } from "./captures/payload-files.js";
import { openStore } from "./open-store.js";
import { RecordWriter } from "./record-writer.js";
import { MessageFigures, type RecorderFigures } from "./recorder-figures.js";
import { RecorderHealth } from "./recorder-health.js";
import type { FrontToRecorder, LogLine, RecorderOptions, RecorderToFront } from "./recorder-messages.js";
import { RecorderState } from "./recorder-state.js";
import { RunEndings } from "./run-endings.js";
import { SharedNames } from "./shared-names.js";
import { DiskRoom, type RoomLevel } from "./upkeep/disk-room.js";
import { ExclusiveWork } from "./upkeep/exclusive-work.js";
import { ResourceShortage } from "./upkeep/resource-shortage.js";
import { StoreWatch } from "./upkeep/store-watch.js";
import { Upkeep } from "./upkeep/upkeep.js";

const DAY_US = 86_400_000_000;
/** As many as one record has of them: a new name needs one place. */
const FORGOTTEN_AT_ONCE = 100;

/** What surrounds the recorder, so that a test can stand in for the disk, the time and the front. */
export interface RecorderEnvironment {
  fileSystem: FileSystem;
  timers: Timers;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  send(message: RecorderToFront, transfer?: ArrayBuffer[]): void;
  /** Has the front's messages delivered, from the first one on. */
  onMessage(receive: (message: FrontToRecorder) => void): void;
  /** Makes a snapshot beside the recorder; without it none is made. */
  makeSnapshot?(request: SnapshotRequest): SnapshotWork;
  /** Computes what is made of captures; without it none are processed. */
  artefacts?: ArtefactMaker;
  /** Without it deliveries are recorded and not made. */
  startDispatcher?: typeof startDispatcher;
  /** How late the event loop was since the last call. */
  loopDelay?(): LoopDelay;
  /** What a simulation has in place of the machine's sockets: of the directory's lock, and of those that producers come to. */
  sockets?: { lock: NonNullable<DataDirectoryOptions["lock"]>; listen(link: LinkServer): void };
}

/**
 * The store's only writer: decides what producers say, appends it to the log and answers when it is committed. Everything that it
 * knows is in its state, which the log rebuilds.
 */
export class Recorder implements MessageIntake {
  /**
   * Opens the data directory, sends all that its log holds to the front, takes up the runs that have not ended, and
   * listens for producers.
   *
   * @throws StorageError, LinkListenError; nothing is left open then
   */
  static async start(options: RecorderOptions, environment: RecorderEnvironment): Promise<Recorder> {
    const directory = await openDataDirectory({
      path: options.dataDirectory,
      creates: true,
      fileSystem: environment.fileSystem,
      ...(environment.sockets && { lock: environment.sockets.lock }),
    });
    const recorder = new Recorder(options, environment, directory);
    // The front takes batches, and may say stop, while the log is still being read.
    environment.onMessage((message) => recorder.#receive(message));
    try {
      recorder.#opening = recorder.#open();
      await recorder.#opening;
      return recorder;
    } catch (error) {
      await recorder.#closeAfterFailedStart();
      throw error;
    }
  }

  readonly #options: RecorderOptions;
  readonly #environment: RecorderEnvironment;
  readonly #directory: LockedDataDirectory;
  /** An empty one until the store is open. */
  #state = new RecorderState();
  readonly #stream: BatchStream;
  readonly #link: LinkServer;
  readonly #endings: RunEndings;
  readonly #captures: CaptureStore;
  readonly #files: PayloadFiles;
  readonly #room: DiskRoom;
  readonly #shortage: ResourceShortage;
  readonly #watch: StoreWatch;
  /** Undefined where captures are not processed. */
  #processing: CaptureProcessing | undefined;
  readonly #messages = new MessageFigures();
  readonly #sharedNames: SharedNames;
  /** Of capture files, as the records that the store was opened with name them. */
  #openedCaptureBytes = 0;
  #roomLevel: RoomLevel = "enough";
  readonly #exclusiveWork = new ExclusiveWork();
  #snapshots: SnapshotSchedule | undefined;
  #whenSnapshotAnswered: ((refusal: Error | null) => void) | null = null;
  #upkeep: Upkeep | undefined;
  /** Last sequence numbers of the batches that the front has not taken yet. */
  readonly #untaken: number[] = [];
  #webhooks: WebhookService | undefined;
  #log: Log | undefined;
  #writer: RecordWriter | undefined;
  #health: RecorderHealth | undefined;
  #unavailable: string | null = "the service is starting";
  #failure: string | null = null;
  /** Of the stop there is to be said that the recording had ended before: not where it only found no room for what nobody was told of. */
  #stopFailure: string | null = null;
  #opening: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | undefined;
  #setStopped: () => void = () => {};
  /** Resolves when the recorder was stopped and everything is closed. */
  readonly stopped = new Promise<void>((resolve) => {
    this.#setStopped = resolve;
  });

  private constructor(options: RecorderOptions, environment: RecorderEnvironment, directory: LockedDataDirectory) {
    this.#options = options;
    this.#environment = environment;
    this.#directory = directory;
    this.#stream = new BatchStream({
      send: (batch, buffer) => {
        this.#untaken.push(batch.lastSequence);
        environment.send({ kind: "batch", batch }, [buffer]);
      },
      onBehind: () => {
        this.#pauseLink();
        this.#health?.update();
      },
    });
    this.#link = new LinkServer({
      intake: this,
      timers: environment.timers,
      report: (error, producer) => {
        // A connection that could not be accepted comes again: one line for all of them.
        if (producer === null && this.#shortage.note(error)) return;
        this.#report("a message could not be taken", error, { producer });
      },
      wrongTokens: (address, count) => {
        this.#line("warn", "wrong token for the cell link", { address, refused: count });
      },
    });
    this.#sharedNames = new SharedNames(environment.timers, () => this.#health?.update());
    this.#endings = new RunEndings({
      timers: environment.timers,
      finalizeTimeoutMs: options.finalizeTimeoutMs,
      processesCaptures: environment.artefacts !== undefined,
      orphanTimeoutMs: options.orphanTimeoutMs,
      activeRun: (id) => this.#state.activeRun(id),
      runsLastWrittenBy: (producer) => this.#state.runsLastWrittenBy(producer),
      endRun: (run, ending) => this.#openWriter().endRun(run, ending),
      report: (error) => this.#report("a run's end could not be recorded", error, {}),
    });
    this.#room = new DiskRoom({
      fileSystem: environment.fileSystem,
      directory: directory.path,
      timers: environment.timers,
      wallUs: environment.wallUs,
      thresholds: options.diskRoom ?? { low: null, critical: null, ballastBytes: null },
      pendingBytes: () => this.#captures.pendingBytes + (this.#log?.pendingBytes ?? 0),
      onChange: () => this.#roomChanged(),
      report: (what, error) => this.#report(what, error, {}),
    });
    this.#shortage = new ResourceShortage({
      room: this.#room,
      timers: environment.timers,
      wallUs: environment.wallUs,
      onChange: () => this.#health?.update(),
      line: (level, message, fields) => this.#line(level, message, fields),
    });
    this.#captures = new CaptureStore({
      fileSystem: environment.fileSystem,
      capturesPath: directory.capturesPath,
      onFailure: (failure) => this.#storeFailed(failure),
      room: this.#shortage,
    });
    this.#watch = new StoreWatch({
      timers: environment.timers,
      wallUs: environment.wallUs,
      fileSystem: environment.fileSystem,
      directory,
      log: () => this.#log,
      captures: this.#captures,
      restoreSocket: () => this.#link.restoreSocket(),
      onChange: () => this.#health?.update(),
      line: (level, message, fields) => this.#line(level, message, fields),
    });
    this.#files = new PayloadFiles(this.#captures, (id) => this.#runWithCaptures(id));
  }

  async #open(): Promise<void> {
    await this.#room.prepare();
    const opened = await openStore({
      ...this.#environment,
      directory: this.#directory,
      durability: this.#options.durability,
      ...(this.#options.segmentBytes !== undefined && { segmentBytes: this.#options.segmentBytes }),
      room: this.#shortage,
      createState: () => new RecorderState(new CaptureIndex({ keepsRuns: true })),
      onState: (state) => {
        this.#state = state;
      },
      askFront: (path, sequence, moves) => this.#askFront(path, sequence, moves),
      discard: () => this.#environment.send({ kind: "snapshot_discarded" }),
      onReplayed: (batch) => {
        this.#stream.send(batch);
        return this.#stream.caughtUp();
      },
      onCommitted: (batch) => this.#committed(batch),
      onFailure: (failure) => this.#storeFailed(failure),
      line: (level, message, fields) => this.#line(level, message, fields),
    });
    const { log, state } = opened;
    this.#log = log;
    this.#sumCaptures(state);
    const clock = createServiceClock(this.#environment.wallUs, Math.max(state.lastTimeUs, log.lastTimeUs));
    this.#writer = new RecordWriter({
      log,
      clock,
      state,
      files: this.#files,
      figures: this.#messages,
      spend: (bytes) => this.#room.spend(bytes),
      endAppended: (run, sequence) => this.#upkeep?.endAppended(run, sequence),
      changed: (changes) => this.#processing?.changed(changes),
      runChanged: (run) => this.#endings.runChanged(run),
      runEnded: (runId) => {
        if (this.#processing === undefined || state.processedRun(runId) === undefined) this.#files.finish(runId);
        this.#endings.runEnded(runId);
      },
      emit: (name, run, timeUs) => this.#webhooks?.emit(name, run, timeUs),
      emitted: (event, runId, sequence) => this.#webhooks?.deliveries.emitted(event, runId, sequence),
    });
    this.#processing = this.#createProcessing(this.#writer);
    const webhooks = this.#createWebhookService(this.#writer, clock);
    this.#webhooks = webhooks;
    this.#unavailable = null;
    const upkeep = new Upkeep({
      ...this.#environment,
      directory: this.#directory,
      log,
      state,
      captures: this.#captures,
      room: this.#room,
      policy: this.#options.retention,
      work: this.#exclusiveWork,
      appendTombstone: (run) => this.#openWriter().appendTombstone(run),
      onReadDamage: (error) => this.#environment.send({ kind: "read_damage", error }),
      onChange: () => this.#health?.update(),
      line: (level, message, fields) => this.#line(level, message, fields),
    });
    this.#upkeep = upkeep;
    this.#endings.resume(state.activeRuns(), state.lastWriters());
    this.#health = new RecorderHealth({
      sources: {
        recovery: log.recovery,
        openedAt: opened.openedAt,
        earlierDamage: opened.earlierDamage,
        damagedSnapshot: opened.damagedSnapshot,
        logFailure: () => log.failure,
        disk: () => this.#room.row,
        recorderFailure: () => this.#failure,
        compactionFault: () => upkeep.compactionFault,
        snapshotFault: () => this.#snapshots?.fault ?? null,
        retentionFault: () => upkeep.retentionFault,
        lockFault: () => this.#watch.lockFault,
        clockFault: () => clockFault(clock.lastUs, this.#environment.wallUs()),
        shortage: () => this.#shortage.fault,
        placeFault: () => this.#watch.placeFault,
        damagedRuns: opened.damagedRuns,
        sharedNames: () => this.#sharedNames.fault,
        producerNames: () => this.#state.producers.size,
        ahead: () => ({ bytes: this.#stream.aheadBytes, isBehind: this.#stream.isBehind }),
        connections: () => this.#link.connectionCount,
        isProcessingBehind: () => this.#processing?.isBehind ?? false,
        counters: () => upkeep.counters,
        dispatcherFailure: () => webhooks.dispatcherFailure,
        dispatcherFault: () => webhooks.dispatcherFault,
      },
      send: (rows, counters) => this.#environment.send({ kind: "health", rows, counters }),
    });
    await this.#room.start();
    this.#shortage.start();
    this.#health.update();
    this.#processing?.resume([...state.activeRuns(), ...state.processedRuns()]);
    await this.#listen(log);
    upkeep.start();
    await this.#watch.start();
    this.#startSnapshots(log, opened.snapshot);
  }

  /** A run that stores captures, or what is made of them. */
  #runWithCaptures(id: string): RunState | undefined {
    return this.#state.activeRun(id) ?? this.#state.processedRun(id);
  }

  #createProcessing(writer: RecordWriter): CaptureProcessing | undefined {
    const { artefacts, timers } = this.#environment;
    if (artefacts === undefined) return undefined;
    return new CaptureProcessing({
      maker: artefacts,
      timers,
      run: (id) => this.#runWithCaptures(id),
      path: (id) => `${this.#directory.capturesPath}/${capturePath(id, "capture")}`,
      dataDirectory: this.#directory.path,
      whenWritten: (id) => this.#files.get(id, "captures").whenWritten(),
      hasRoom: () => this.#room.level === "enough",
      record: (run, made) => writer.storeArtefacts(run, made),
      endedDocumentBytes: () => this.#state.processedDocumentBytes,
      onBehind: () => this.#processingBehind(),
      report: (error) => this.#report("what is made of captures is put off", error, {}),
      caughtUp: () => this.#line("info", "what was put off of captures is done", {}),
    });
  }

  #processingBehind(): void {
    this.#pauseLink();
    if (this.#processing?.isBehind === true) this.#line("warn", "processing is behind: captures wait", {});
    else this.#line("info", "processing has caught up: captures go on", {});
    this.#health?.update();
  }

  #createWebhookService(writer: RecordWriter, clock: ServiceClock): WebhookService {
    const { timers, startDispatcher, send } = this.#environment;
    return new WebhookService({
      ...{ state: this.#state, timers, clock, startDispatcher, serviceVersion: this.#options.serviceVersion },
      wallUs: this.#environment.wallUs,
      receivers: this.#options.receivers,
      append: (change, timeUs) => writer.appendWebhookChange(change, timeUs),
      send: (message) => send(message),
      unavailable: () => this.#unavailable ?? this.#whatIsMissing(),
      onDispatcherFault: () => this.#health?.update(),
      onDispatcherFailure: (message) => {
        this.#line("error", "the dispatcher ended: deliveries wait for the next start", { cause: message });
        send({ kind: "deliveries_ended" });
        this.#health?.update();
      },
      report: (what, error) => this.#report(what, error, {}),
    });
  }

  /** Why what is appended now would wait; null when it would not. */
  #whatIsMissing(): string | null {
    if (this.#room.level === "critical") return "the disk is full";
    return this.#shortage.isWaiting ? this.#shortage.fault : null;
  }

  #startSnapshots(log: Log, last: OpenedSnapshot | null): void {
    const { timers, wallUs, makeSnapshot, send } = this.#environment;
    const { metaPath, snapshotPath, quarantinePath } = this.#directory;
    if (makeSnapshot === undefined) return;
    this.#snapshots = new SnapshotSchedule({
      policy: this.#options.snapshots ?? {},
      timers,
      work: this.#exclusiveWork,
      makeDurable: async () => {
        const sequence = log.committedSequence;
        await log.whenDurable(sequence);
        return sequence;
      },
      hasSpare: (bytes) => this.#room.hasSpare(bytes),
      runCount: () => this.#state.runCount,
      isBusy: () => this.#webhooks?.deliveries.isBusy ?? false,
      make: (throughSequence) => makeSnapshot({ metaPath, snapshotPath, quarantinePath, throughSequence }),
      wallUs,
      onReadDamage: (error) => send({ kind: "read_damage", error }),
      onChange: () => this.#health?.update(),
      line: (level, message, fields) => this.#line(level, message, fields),
    });
    const { bytes, lastSequence } = log.recovery;
    this.#snapshots.start(lastSequence === 0 ? 0 : bytes, last && { sequence: last.start.sequence, bytes: last.bytes });
  }

  #askFront(path: string, sequence: number, moves: SegmentMoves[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#whenSnapshotAnswered = (refusal) => (refusal === null ? resolve() : reject(refusal));
      this.#environment.send({ kind: "snapshot", path, sequence, moves });
    });
  }

  async #listen(log: Log): Promise<void> {
    const { cellSocketPath, cellListen, cellToken } = this.#options;
    const path = cellSocketPath ?? `${this.#directory.path}/cell.sock`;
    if (this.#environment.sockets === undefined) await this.#link.listenOnSocket(path);
    else this.#environment.sockets.listen(this.#link);
    let listening: { host: string; port: number } | null = null;
    if (cellListen !== null) {
      if (cellToken === null || cellToken === "") throw new Error("cellListen needs a cellToken");
      const port = await this.#link.listenOnTcp(cellListen.host, cellListen.port, cellToken);
      listening = { host: cellListen.host, port };
    }
    // Before clients come: with all descriptors theirs it could not be loaded, and no event would be sent before the next start.
    const loaded = this.#webhooks?.dispatcherLoaded;
    if (loaded !== undefined) await loaded;
    this.#environment.send({
      kind: "ready",
      recovery: log.recovery,
      cellSocketPath: path,
      cellListen: listening,
      startedAtUs: this.#environment.wallUs(),
    });
  }

  /** Low water holds captures back, critical water everything; reads go on. */
  #pauseLink(): void {
    this.#link.setPaused(this.#stream.isBehind || this.#room.level === "critical");
    this.#link.setPayloadsHeld(this.#room.level !== "enough" || this.#processing?.isBehind === true);
  }

  #roomChanged(): void {
    const { level, row } = this.#room;
    if (level !== this.#roomLevel) {
      this.#roomLevel = level;
      this.#pauseLink();
      const detail = { room: level, detail: row.detail };
      if (level === "enough") this.#line("info", "the disk has room again: everything goes on", detail);
      else if (level === "low") this.#line("warn", "the disk has little room: captures wait", detail);
      else this.#line("error", "the disk is full: all messages wait", detail);
    }
    this.#processing?.proceed();
    this.#upkeep?.roomChanged();
    this.#health?.update();
  }

  #receive(message: FrontToRecorder): void {
    switch (message.kind) {
      case "batch_taken":
        this.#stream.taken(message.memory);
        this.#viewed(this.#untaken.shift());
        return;
      case "serving":
        this.#webhooks?.deliveries.serving(message.port);
        return;
      case "request":
        this.#webhooks?.request(message.id, message.request);
        return;
      case "delivery_content":
        this.#webhooks?.deliveries.content(message.deliveryId, message.found);
        return;
      case "request_dropped":
        this.#webhooks?.dropRequest(message.id);
        return;
      case "snapshot_taken":
        this.#whenSnapshotAnswered?.(null);
        return;
      case "snapshot_refused":
        this.#whenSnapshotAnswered?.(new (message.isUnread ? SnapshotUnreadError : Error)(message.reason));
        return;
      case "captures_let_go":
      case "segment_held":
        this.#upkeep?.answered(message);
        return;
      case "figures":
        this.#environment.send({ kind: "figures", figures: this.#figures() });
        return;
      // Whoever has a maker by messages takes its answers from them before.
      case "artefact_made":
        return;
      case "stop_deliveries":
        void this.#webhooks?.deliveries.stop(message.graceMs);
        return;
      case "stop":
        void this.stop(message.attemptGraceMs);
        return;
    }
  }

  #viewed(sequence: number | undefined): void {
    if (sequence !== undefined && this.#failure === null) this.#webhooks?.deliveries.viewed(sequence);
  }

  /** Takes no more messages, commits and answers those that were taken, closes the store. Never rejects. */
  stop(attemptGraceMs = 0): Promise<void> {
    this.#stopping ??= this.#stop(attemptGraceMs);
    return this.#stopping;
  }

  async #stop(attemptGraceMs: number): Promise<void> {
    try {
      await this.#opening;
    } catch {
      // Whoever called `start` is told, and everything is closed.
      return;
    }
    this.#link.stopReading();
    this.#endings.stop();
    this.#watch.stop();
    this.#processing?.stop();
    // What still waits for room is not acknowledged: it is the producers' to send again.
    await this.#room.stop();
    this.#shortage.stop();
    await this.#upkeep?.stop();
    await this.#webhooks?.deliveries.stop(attemptGraceMs);
    const log = this.#log;
    try {
      if (log !== undefined && log.failure === null) await log.whenCommitted(log.nextSequence - 1);
    } catch {
      // A failed log has said so; what waited for it was not acknowledged.
    }
    this.#unavailable ??= "the service is stopping";
    await this.#link.close();
    this.#sharedNames.stop();
    await this.#watch.lookAtFiles();
    await this.#snapshots?.stop(log?.failure === null);
    await this.#close();
    this.#environment.send({ kind: "stopped", failure: this.#stopFailure });
    this.#setStopped();
  }

  async #closeAfterFailedStart(): Promise<void> {
    this.#link.stopReading();
    this.#endings.stop();
    this.#watch.stop();
    await this.#room.stop();
    this.#shortage.stop();
    await this.#webhooks?.deliveries.stop(0);
    await this.#link.close();
    await this.#close();
  }

  /** Each step whatever became of the one before: at the end the directory is free. */
  async #close(): Promise<void> {
    const steps = [() => this.#log?.close(), () => this.#captures.close(), () => this.#directory.release()];
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        // Said already.
        const isWithoutRoom = error instanceof StorageError && error.data.params.without_room === true;
        if (!isWithoutRoom) this.#report("closing the store", error, {});
      }
    }
  }

  // What the link asks (MessageIntake).

  get unavailable(): string | null {
    return this.#unavailable;
  }

  get serviceVersion(): string {
    return this.#options.serviceVersion;
  }

  get lastRunId(): string | null {
    return this.#state.lastRunId;
  }

  producer(name: string): ProducerProgress | undefined {
    const { producers } = this.#state;
    const known = producers.getOrAdd(name);
    if (known !== undefined || !this.#forgetUnused()) return known;
    return producers.getOrAdd(name);
  }

  /** Makes room for names where there is none, from those that nobody has used for long. False where there is none of these. */
  #forgetUnused(): boolean {
    const nowUs = Math.max(this.#environment.wallUs(), this.#state.lastTimeUs);
    const unused = this.#state.producers.unusedSince(nowUs - LIMITS.producerUnusedDays * DAY_US);
    const names = unused.filter((name) => !this.#link.isConnected(name)).slice(0, FORGOTTEN_AT_ONCE);
    if (names.length === 0) return false;
    try {
      this.#openWriter().forgetProducers(names);
    } catch (error) {
      this.#report("unused producer names could not be forgotten", error, {});
      return false;
    }
    this.#line("info", "forgot producer names that are long unused", {
      count: names.length,
      first: names[0] as string,
    });
    return true;
  }

  connected(producer: ProducerProgress): void {
    this.#endings.producerBack(producer.name);
    this.#line("info", "producer connected", { producer: producer.name, committed: producer.committed });
    this.#health?.update();
  }

  alternated(producer: ProducerProgress): void {
    if (!this.#sharedNames.alternated(producer.name)) return;
    const { name } = producer;
    this.#line("warn", "several programs send under one producer name, by turns: give each its own", {
      producer: name,
    });
  }

  disconnected(producer: ProducerProgress): void {
    this.#state.producers.forgetUnused(producer.name);
    this.#endings.producerAway(producer.name);
    this.#line("info", "producer disconnected", { producer: producer.name, committed: producer.committed });
    this.#health?.update();
  }

  take(message: IncomingMessage): void {
    this.#openWriter().take(message);
  }

  /** Once, of a store that was just read: from now on what is appended is counted. */
  #sumCaptures(state: RecorderState): void {
    const { days, bytes } = this.#options.retention;
    const isRetentionOff = days === null && bytes === null;
    this.#openedCaptureBytes = isRetentionOff ? state.captures.forgetRuns() : state.captures.bytes;
    for (const run of state.activeRuns()) this.#openedCaptureBytes += storedEnd(run, "captures");
  }

  #figures(): RecorderFigures {
    const { messages, messageBytes, commits } = this.#messages;
    const { capture, report } = this.#captures.appendedBytes;
    const store = this.#upkeep?.counters ?? null;
    return {
      messages,
      messageBytes,
      commits,
      connections: this.#link.connectionCount,
      logPendingBytes: this.#log?.pendingBytes ?? 0,
      capturesPendingBytes: this.#captures.pendingBytes,
      frontPendingBytes: this.#stream.aheadBytes,
      records: (this.#log?.nextSequence ?? 1) - 1,
      activeRuns: this.#state.activeRunCount,
      openArtefacts: this.#processing?.open ?? 0,
      store,
      captureAppendedBytes: capture + report,
      loopDelay: this.#environment.loopDelay?.() ?? null,
      // Below zero only with runs of before retention, whose records do not tell their bytes.
      capturedBytes: Math.max(0, this.#openedCaptureBytes + capture - (store?.retention.bytes ?? 0)),
      deliveries: this.#webhooks?.deliveries.figures ?? null,
    };
  }

  #openWriter(): RecordWriter {
    if (this.#writer === undefined) throw new Error("the log is not open");
    return this.#writer;
  }

  #committed(batch: CommittedBatch): void {
    try {
      this.#stream.send(batch);
      this.#snapshots?.committed(batch);
      this.#writer?.committed(batch);
      this.#webhooks?.deliveries.committed(batch.lastSequence);
      this.#link.flush();
      this.#upkeep?.committed(batch);
    } catch (error) {
      this.#report("what was committed could not be answered", error, {});
      this.#fail("the recorder failed: see the service's log");
    }
  }

  /** The log takes no more: nothing that waits is acknowledged, no producer is read any more; reads go on. */
  #fail(message: string): void {
    this.#stopFailure ??= this.#dated(message);
    this.#endRecording(message);
  }

  #dated(message: string): string {
    return since(this.#environment.wallUs(), message);
  }

  #storeFailed({ message, params }: StorageErrorData): void {
    if (params.without_room === true) this.#endRecording(message);
    else this.#fail(message);
  }

  #endRecording(message: string): void {
    if (this.#failure !== null) return;
    this.#failure = this.#dated(message);
    this.#unavailable = message;
    this.#writer?.abandon();
    if (this.#webhooks !== undefined) {
      this.#webhooks.deliveries.abandon();
      this.#environment.send({ kind: "deliveries_ended" });
    }
    this.#endings.stop();
    this.#watch.stop();
    this.#processing?.abandon();
    void this.#upkeep?.stop();
    void this.#snapshots?.stop(false);
    this.#link.refuseAll(message);
    if (this.#stopFailure !== null) {
      this.#line("error", "the recorder takes no more messages", { cause: message });
      this.#environment.send({ kind: "recording_ended", cause: this.#failure });
    } else this.#line("warn", "stopped without room: what waited for it was not acknowledged", { cause: message });
    this.#health?.update();
  }

  #report(what: string, error: unknown, fields: LogLine["fields"]): void {
    const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#line("error", what, { ...fields, cause });
  }

  #line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void {
    this.#environment.send({ kind: "log", line: { level, message, fields } });
  }
}
