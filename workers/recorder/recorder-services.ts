import { storedEnd } from "../../core/run/run-files.js";
import type { RunState } from "../../core/run/run-state.js";
import { clockFault, createServiceClock, type ServiceClock } from "../../core/service-clock.js";
import { captureMonth, capturePath } from "../../storage/captures/capture-path.js";
import type { LockedDataDirectory } from "../../storage/disk/data-directory.js";
import type { CommittedBatch } from "../../storage/log/committed-batch.js";
import type { Log } from "../../storage/log/log.js";
import { LogReader } from "../../storage/log/log-reader.js";
import { WebhookService } from "../webhooks/webhook-service.js";
import type { BatchStream } from "./captures/batch-stream.js";
import { CaptureProcessing } from "./captures/capture-processing.js";
import type { PayloadFiles } from "./captures/payload-files.js";
import type { OpenedStore } from "./open-store.js";
import type { ProducerLink } from "./producers/producer-link.js";
import { RecordWriter } from "./record-writer.js";
import type { RecorderEnvironment } from "./recorder-environment.js";
import type { FrontToRecorder, RecorderOptions, RetentionPolicy } from "./recorder-messages.js";
import type { RecorderState } from "./recorder-state.js";
import type { RunEndings } from "./run-endings.js";
import type { LogLines } from "./status/log-lines.js";
import type { MessageFigures } from "./status/recorder-figures.js";
import { RecorderHealth } from "./status/recorder-health.js";
import type { RecordingStatus } from "./status/recording-status.js";
import { HintFiles } from "./upkeep/hint-files.js";
import { Retention } from "./upkeep/retention.js";
import type { StoreGuards } from "./upkeep/store-guards.js";

/** The parts of the recorder that exist before its store is open. */
export interface RecorderServicesOptions extends LogLines {
  options: RecorderOptions;
  environment: RecorderEnvironment;
  directory: LockedDataDirectory;
  opened: OpenedStore;
  guards: StoreGuards;
  files: PayloadFiles;
  figures: MessageFigures;
  stream: BatchStream;
  link: ProducerLink;
  endings: RunEndings;
  status: RecordingStatus;
  /** Gives a run that still stores captures or artefacts. */
  runWithCaptures(id: string): RunState | undefined;
  /** Called when too many captures are not processed yet, and when processing has caught up. */
  onProcessingBehind(): void;
}

/** Those of the front's messages that a service takes. */
type ServiceMessage = Exclude<FrontToRecorder, { kind: "batch_taken" | "figures" | "artefact_made" | "stop" }>;

/** The parts of the recorder that need an open store: writer, processing, webhooks, retention, hint files and health. */
export class RecorderServices {
  readonly state: RecorderState;
  readonly writer: RecordWriter;
  /** Undefined if captures are not processed. */
  readonly processing: CaptureProcessing | undefined;
  readonly webhooks: WebhookService;
  readonly retention: Retention;
  /**
   * Size of all capture files when the store was opened, as records give it. It does not include what was appended
   * since.
   */
  readonly openedCaptureBytes: number;
  readonly #options: RecorderServicesOptions;
  readonly #log: Log;
  readonly #clock: ServiceClock;
  readonly #reader: LogReader;
  readonly #hints: HintFiles;
  #whenLetGo: (() => void) | null = null;
  #isUpkeepStopped = false;
  /** The plant has the captures of all runs up to this record. */
  #shippedCaptures = 0;
  #health: RecorderHealth | undefined;

  /** Creates the services. It starts only the dispatcher's thread. */
  constructor(options: RecorderServicesOptions) {
    this.#options = options;
    const { log, state } = options.opened;
    this.#log = log;
    this.state = state;
    this.openedCaptureBytes = captureBytes(state, options.options.retention);
    this.#clock = createServiceClock(options.environment.wallUs, Math.max(state.lastTimeUs, log.lastTimeUs));
    this.writer = this.#createWriter();
    this.processing = this.#createProcessing();
    this.webhooks = this.#createWebhookService();
    this.#reader = new LogReader({
      fileSystem: options.environment.fileSystem,
      directory: options.directory.metaPath,
    });
    this.retention = this.#createRetention();
    this.#hints = this.#createHints();
  }

  /** From now on health is sent whenever it changes. */
  startHealth(): void {
    this.#health = this.#createHealth();
  }

  updateHealth(): void {
    this.#health?.update();
  }

  /** Takes a message from the front that a service needs. */
  receive(message: ServiceMessage): void {
    switch (message.kind) {
      case "serving":
        this.webhooks.serving(message.port);
        return;
      case "captures_shipped":
        this.#shippedCaptures = message.sequence;
        if (this.#options.options.retention.afterShipping) this.retention.capturesShipped();
        return;
      case "request":
        this.webhooks.request(message.id, message.request);
        return;
      case "delivery_content":
        this.webhooks.deliveries.content(message.deliveryId, message.found);
        return;
      case "run_content":
        this.webhooks.resends.runContent(message.deliveryId, message.found);
        return;
      case "request_dropped":
        this.webhooks.dropRequest(message.id);
        return;
      case "stop_deliveries":
        void this.webhooks.deliveries.stop(message.graceMs);
        return;
      case "captures_let_go":
        this.#whenLetGo?.();
        return;
    }
  }

  /** The front's view has all records up to this one. */
  viewed(sequence: number): void {
    this.webhooks.deliveries.viewed(sequence);
  }

  /** These records are committed. Answers everybody who waits for them. */
  committed(batch: CommittedBatch): void {
    this.writer.committed(batch);
    this.webhooks.deliveries.committed(batch.lastSequence);
  }

  /** These records are committed, and everybody who waited for them is answered. */
  answered(batch: CommittedBatch): void {
    this.retention.committed(batch);
    this.#hints.committed(batch.segmentBase);
  }

  /** Begins the work on the store beside recording. */
  startUpkeep(): void {
    this.retention.start();
    this.#hints.start();
  }

  /** Resolves when nothing of that work is under way any more. The next start continues what was begun. */
  async stopUpkeep(): Promise<void> {
    this.#isUpkeepStopped = true;
    const stopped = [this.retention.stop(), this.#hints.stop()];
    // The front may be gone and never answer. The next start asks again.
    this.#whenLetGo?.();
    await Promise.all(stopped);
    this.#reader.close();
  }

  /** Recording has ended. Nothing that still waits is committed any more. */
  abandon(): void {
    this.writer.abandon();
    this.webhooks.deliveries.abandon();
    this.#options.environment.send({ kind: "deliveries_ended" });
    this.processing?.abandon();
    void this.stopUpkeep();
  }

  #createWriter(): RecordWriter {
    const { files, endings, figures, guards } = this.#options;
    return new RecordWriter({
      log: this.#log,
      clock: this.#clock,
      state: this.state,
      files,
      figures,
      spend: (bytes) => guards.room.spend(bytes),
      endAppended: (run, sequence) => this.retention.endAppended(run, sequence),
      changed: (changes) => this.processing?.changed(changes),
      runChanged: (run) => endings.runChanged(run),
      runEnded: (runId) => {
        const isProcessed = this.processing !== undefined && this.state.processedRun(runId) !== undefined;
        if (!isProcessed) files.finish(runId);
        endings.runEnded(runId);
      },
      emit: (name, run, timeUs) => this.webhooks.emit(name, run, timeUs),
      emitted: (event, sequence) => this.webhooks.deliveries.emitted(event, sequence),
    });
  }

  #createProcessing(): CaptureProcessing | undefined {
    const { environment, directory, guards, files, runWithCaptures, line, report } = this.#options;
    const { artefacts, timers } = environment;
    if (artefacts === undefined) return undefined;
    return new CaptureProcessing({
      maker: artefacts,
      timers,
      run: runWithCaptures,
      path: (id) => `${directory.capturesPath}/${capturePath(id, "capture")}`,
      dataDirectory: directory.path,
      whenWritten: (id) => files.get(id, "captures").whenWritten(),
      hasRoom: () => guards.room.level === "enough",
      record: (run, made) => this.writer.storeArtefacts(run, made),
      endedDocumentBytes: () => this.state.processedDocumentBytes,
      onBehind: () => this.#options.onProcessingBehind(),
      report: (error) => report("artefacts are put off", error, {}),
      caughtUp: () => line("info", "artefacts that were put off are made", {}),
    });
  }

  #createWebhookService(): WebhookService {
    const { options, environment, directory, status, line, report } = this.#options;
    const { fileSystem, timers, wallUs, startDispatcher, send } = environment;
    return new WebhookService({
      state: this.state,
      fileSystem,
      directory: directory.path,
      timers,
      clock: this.#clock,
      startDispatcher,
      serviceVersion: options.serviceVersion,
      wallUs,
      receivers: options.receivers,
      append: (change, timeUs) => this.writer.appendWebhookChange(change, timeUs),
      send: (message) => send(message),
      unavailable: () => status.unavailable ?? this.#whatIsMissing(),
      onDispatcherFault: () => this.updateHealth(),
      onDispatcherFailure: (message) => {
        line("error", "the dispatcher ended: deliveries wait for the next start", { cause: message });
        send({ kind: "deliveries_ended" });
        this.updateHealth();
      },
      report: (what, error) => report(what, error, {}),
    });
  }

  /** Says why a record that is appended now would wait; null if it would not. */
  #whatIsMissing(): string | null {
    const { room, shortage } = this.#options.guards;
    if (room.level === "critical") return "the disk is full";
    return shortage.isWaiting ? shortage.fault : null;
  }

  #createRetention(): Retention {
    const { options, environment, directory, guards, line } = this.#options;
    const { state } = this;
    // No new run can belong to such a month, because run ids ascend.
    const isPastMonth = (month: string) => state.lastRunId !== null && month < captureMonth(state.lastRunId);
    return new Retention({
      policy: options.retention,
      dataDirectory: directory.path,
      captureIndex: state.captures,
      timers: environment.timers,
      wallUs: environment.wallUs,
      lastTimeUs: () => state.lastTimeUs,
      shippedSequence: () => (options.retention.afterShipping ? this.#shippedCaptures : Number.POSITIVE_INFINITY),
      read: (location) => this.#reader.read(location),
      appendTombstone: (run) => this.writer.appendTombstone(run),
      whenDurable: (sequence) => this.#log.whenDurable(sequence),
      letGo: (runIds) => this.#letGo(runIds),
      removeCaptures: (runIds) => guards.captures.removeCaptures(runIds, isPastMonth),
      onChange: () => this.updateHealth(),
      line,
    });
  }

  #letGo(runIds: readonly string[]): Promise<void> {
    if (this.#isUpkeepStopped) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenLetGo = resolve;
      this.#options.environment.send({ kind: "let_go_of_captures", runIds });
    });
  }

  #createHints(): HintFiles {
    const { environment, directory, guards, line } = this.#options;
    return new HintFiles({
      fileSystem: environment.fileSystem,
      directory: directory.metaPath,
      log: this.#log,
      spend: (bytes) => guards.room.spend(bytes),
      onReadDamage: (error) => environment.send({ kind: "read_damage", error }),
      line,
    });
  }

  #createHealth(): RecorderHealth {
    const { environment, ...parts } = this.#options;
    const { retention, webhooks, processing } = this;
    const now = (): string | null => clockFault(this.#clock.lastUs, environment.wallUs());
    return new RecorderHealth({ ...parts, retention, webhooks, processing, clockFault: now }, (rows) =>
      environment.send({ kind: "health", rows }),
    );
  }
}

/**
 * Size of all capture files of a store that was just read. Without retention nobody needs the index's runs, so it
 * forgets them.
 */
function captureBytes(state: RecorderState, { days, bytes }: RetentionPolicy): number {
  const isRetentionOff = days === null && bytes === null;
  let sum = isRetentionOff ? state.captures.forgetRuns() : state.captures.bytes;
  for (const run of state.activeRuns()) sum += storedEnd(run, "captures");
  return sum;
}
