import type { RunState } from "../../core/run/run-state.js";
import { CaptureIndex } from "../../storage/captures/capture-index.js";
import { type LockedDataDirectory, openDataDirectory } from "../../storage/disk/data-directory.js";
import type { CommittedBatch } from "../../storage/log/committed-batch.js";
import type { Log } from "../../storage/log/log.js";
import { StorageError } from "../../storage/storage-error.js";
import { BatchStream } from "./captures/batch-stream.js";
import { PayloadFiles } from "./captures/payload-files.js";
import { type OpenedStore, openStore } from "./open-store.js";
import { ProducerLink } from "./producers/producer-link.js";
import type { RecordWriter } from "./record-writer.js";
import type { RecorderEnvironment } from "./recorder-environment.js";
import type { FrontToRecorder, RecorderOptions } from "./recorder-messages.js";
import { RecorderServices } from "./recorder-services.js";
import { RecorderState } from "./recorder-state.js";
import { RunEndings } from "./run-endings.js";
import { type LogLines, logLines } from "./status/log-lines.js";
import { MessageFigures, type RecorderFigures } from "./status/recorder-figures.js";
import { RecordingStatus } from "./status/recording-status.js";
import { BackPressure } from "./upkeep/back-pressure.js";
import { createStoreGuards, type StoreGuards } from "./upkeep/store-guards.js";

/**
 * The store's only writer. It decides what follows from the producers' messages, appends that to the log, and answers when it is
 * committed. Everything it knows is in its state, which is rebuilt from the log.
 */
export class Recorder {
  /**
   * Opens the data directory, sends everything in its log to the front, takes up the active runs, and listens for
   * producers.
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
  readonly #log: LogLines;
  readonly #status: RecordingStatus;
  readonly #stream: BatchStream;
  readonly #endings: RunEndings;
  readonly #backPressure: BackPressure;
  readonly #guards: StoreGuards;
  readonly #link: ProducerLink;
  readonly #files: PayloadFiles;
  readonly #messages = new MessageFigures();
  /** Empty until the store is open. */
  readonly #state = new RecorderState(new CaptureIndex({ keepsRuns: true }));
  #opened: OpenedStore | undefined;
  /** Undefined until the store is open. */
  #services: RecorderServices | undefined;
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
    this.#log = logLines(environment.send);
    this.#status = new RecordingStatus({
      wallUs: environment.wallUs,
      onEnd: (message) => this.#recordingEnded(message),
    });
    this.#stream = this.#createStream();
    this.#endings = this.#createEndings();
    this.#backPressure = new BackPressure({
      link: () => this.#link.server,
      room: () => this.#guards.room,
      isFrontBehind: () => this.#stream.isBehind,
      isProcessingBehind: () => this.#services?.processing?.isBehind === true,
      line: this.#log.line,
    });
    this.#guards = createStoreGuards({
      fileSystem: environment.fileSystem,
      directory,
      timers: environment.timers,
      wallUs: environment.wallUs,
      diskRoom: options.diskRoom,
      log: () => this.#opened?.log,
      restoreSocket: () => this.#link.server.restoreSocket(),
      onRoomChange: () => this.#roomChanged(),
      onChange: () => this.#updateHealth(),
      onFailure: (failure) => this.#status.storeFailed(failure),
      ...this.#log,
    });
    this.#link = new ProducerLink({
      options,
      timers: environment.timers,
      wallUs: environment.wallUs,
      status: this.#status,
      endings: this.#endings,
      state: () => this.#state,
      writer: () => this.#openWriter(),
      noteShortage: (error) => this.#guards.shortage.note(error),
      onChange: () => this.#updateHealth(),
      ...this.#log,
    });
    this.#files = new PayloadFiles(this.#guards.captures, (id) => this.#runWithCaptures(id));
  }

  #createStream(): BatchStream {
    return new BatchStream({
      send: (batch, buffer) => {
        this.#environment.send({ kind: "batch", batch }, [buffer]);
      },
      onBehind: () => {
        this.#backPressure.update();
        this.#updateHealth();
      },
    });
  }

  #createEndings(): RunEndings {
    const { finalizeTimeoutMs, orphanTimeoutMs } = this.#options;
    return new RunEndings({
      timers: this.#environment.timers,
      finalizeTimeoutMs,
      processesCaptures: this.#environment.artefacts !== undefined,
      orphanTimeoutMs,
      activeRun: (id) => this.#state.activeRun(id),
      runsLastWrittenBy: (producer) => this.#state.runsLastWrittenBy(producer),
      endRun: (run, ending) => this.#openWriter().endRun(run, ending),
      report: (error) => this.#log.report("a run's end could not be recorded", error, {}),
    });
  }

  async #open(): Promise<void> {
    const { room, shortage, watch } = this.#guards;
    await room.prepare();
    this.#opened = await this.#openStore();
    const { state } = this.#opened;
    const services = this.#createServices(this.#opened);
    this.#services = services;
    this.#status.opened();
    this.#endings.resume(state.activeRuns(), state.lastWriters());
    services.startHealth();
    await room.start();
    shortage.start();
    services.updateHealth();
    services.processing?.resume([...state.activeRuns(), ...state.processedRuns()]);
    await this.#listen(services, this.#opened.log);
    services.startUpkeep();
    await watch.start();
  }

  #openStore(): Promise<OpenedStore> {
    const { durability, segmentBytes } = this.#options;
    return openStore({
      ...this.#environment,
      directory: this.#directory,
      durability,
      ...(segmentBytes !== undefined && { segmentBytes }),
      room: this.#guards.shortage,
      state: this.#state,
      onReplayed: (batch) => {
        this.#stream.send(batch);
        return this.#stream.caughtUp();
      },
      beforeWrite: (lengthBytes) => this.#stream.reserve(lengthBytes),
      onCommitted: (batch) => this.#committed(batch),
      onFailure: (failure) => this.#status.storeFailed(failure),
      line: this.#log.line,
    });
  }

  #createServices(opened: OpenedStore): RecorderServices {
    return new RecorderServices({
      options: this.#options,
      environment: this.#environment,
      directory: this.#directory,
      opened,
      guards: this.#guards,
      files: this.#files,
      figures: this.#messages,
      stream: this.#stream,
      link: this.#link,
      endings: this.#endings,
      status: this.#status,
      runWithCaptures: (id) => this.#runWithCaptures(id),
      onProcessingBehind: () => {
        this.#backPressure.processingChanged();
        this.#updateHealth();
      },
      ...this.#log,
    });
  }

  async #listen(services: RecorderServices, log: Log): Promise<void> {
    const { sockets, wallUs, send } = this.#environment;
    const listening = await this.#link.listen(
      `${this.#directory.path}/cell.sock`,
      sockets && ((server) => sockets.listen(server)),
    );
    // Clients may take all descriptors. Then the dispatcher could not be loaded, and no event would be sent before the next start.
    const { loaded } = services.webhooks;
    if (loaded !== undefined) await loaded;
    send({
      kind: "ready",
      storeId: this.#directory.storeId,
      recovery: log.recovery,
      ...listening,
      startedAtUs: wallUs(),
    });
  }

  /** A run that still stores captures or artefacts. */
  #runWithCaptures(id: string): RunState | undefined {
    return this.#state.activeRun(id) ?? this.#state.processedRun(id);
  }

  #openWriter(): RecordWriter {
    if (this.#services === undefined) throw new Error("the log is not open");
    return this.#services.writer;
  }

  #updateHealth(): void {
    this.#services?.updateHealth();
  }

  #roomChanged(): void {
    this.#backPressure.roomChanged();
    this.#services?.processing?.proceed();
    this.#updateHealth();
  }

  #receive(message: FrontToRecorder): void {
    switch (message.kind) {
      case "batch_taken": {
        const sequence = this.#stream.taken(message.memory);
        if (this.#status.failure === null) this.#services?.viewed(sequence);
        return;
      }
      case "figures":
        this.#environment.send({ kind: "figures", figures: this.#figures() });
        return;
      // An artefact maker that works by messages takes its answers before they come here.
      case "artefact_made":
        return;
      case "stop":
        void this.stop(message.attemptGraceMs);
        return;
      default:
        this.#services?.receive(message);
        return;
    }
  }

  #figures(): RecorderFigures {
    const { messages, messageBytes, commits } = this.#messages;
    const { capture, report } = this.#guards.captures.appendedBytes;
    const services = this.#services;
    const retention = services?.retention.removed ?? null;
    const openedCaptureBytes = services?.openedCaptureBytes ?? 0;
    return {
      messages,
      messageBytes,
      commits,
      connections: this.#link.server.connectionCount,
      logPendingBytes: this.#opened?.log.pendingBytes ?? 0,
      capturesPendingBytes: this.#guards.captures.pendingBytes,
      frontPendingBytes: this.#stream.aheadBytes,
      records: (this.#opened?.log.nextSequence ?? 1) - 1,
      activeRuns: this.#state.activeRunCount,
      openArtefacts: services?.processing?.open ?? 0,
      retention,
      captureAppendedBytes: capture + report,
      loopDelay: this.#environment.loopDelay?.() ?? null,
      capturedBytes: openedCaptureBytes + capture - (retention?.bytes ?? 0),
      deliveries: services?.webhooks.deliveries.figures ?? null,
    };
  }

  #committed(batch: CommittedBatch): void {
    try {
      this.#stream.send(batch);
      this.#services?.committed(batch);
      this.#link.server.flush();
      this.#services?.answered(batch);
    } catch (error) {
      this.#log.report("committed messages could not be answered", error, {});
      this.#status.fail("the recorder failed: see the service's log");
    }
  }

  /** From now on nothing that waits is acknowledged, and no producer is read. Reads go on. */
  #recordingEnded(message: string): void {
    const { failure, stopFailure } = this.#status;
    this.#services?.abandon();
    this.#endings.stop();
    this.#guards.watch.stop();
    this.#link.server.refuseAll(message);
    if (stopFailure === null || failure === null) {
      this.#log.line("warn", "the disk had no room at the stop: messages that waited for it were not acknowledged", {
        cause: message,
      });
    } else {
      this.#log.line("error", "the recorder takes no more messages", { cause: message });
      this.#environment.send({ kind: "recording_ended", cause: failure });
    }
    this.#updateHealth();
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
      // `start` rejects with it, and has closed everything.
      return;
    }
    const services = this.#services;
    const log = this.#opened?.log;
    this.#link.server.stopReading();
    this.#endings.stop();
    this.#guards.watch.stop();
    services?.processing?.stop();
    // Messages that still wait for room are not acknowledged: the producers send them again.
    await this.#guards.room.stop();
    this.#guards.shortage.stop();
    await services?.stopUpkeep();
    await services?.webhooks.deliveries.stop(attemptGraceMs);
    try {
      if (log !== undefined && log.failure === null) await log.whenCommitted(log.nextSequence - 1);
    } catch {
      // A failed log was reported already. Messages that waited for it were not acknowledged.
    }
    this.#status.stopping();
    await this.#link.close();
    await this.#guards.watch.lookAtFiles();
    await this.#close();
    this.#environment.send({ kind: "stopped", failure: this.#status.stopFailure });
    this.#setStopped();
  }

  async #closeAfterFailedStart(): Promise<void> {
    this.#link.server.stopReading();
    this.#endings.stop();
    this.#guards.watch.stop();
    await this.#guards.room.stop();
    this.#guards.shortage.stop();
    await this.#services?.webhooks.deliveries.stop(0);
    await this.#link.close();
    await this.#close();
  }

  /** Closes everything. A step that fails does not keep the others from being done. */
  async #close(): Promise<void> {
    const steps = [
      () => this.#opened?.log.close(),
      () => this.#guards.captures.close(),
      () => this.#directory.release(),
    ];
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        // A lack of room was reported already.
        const isWithoutRoom = error instanceof StorageError && error.data.params.without_room === true;
        if (!isWithoutRoom) this.#log.report("the store could not be closed cleanly", error, {});
      }
    }
  }
}
