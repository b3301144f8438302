import { setTimeout } from "node:timers/promises";
import { type ComponentRow, since } from "../../core/health.js";
import type { LockedDataDirectory } from "../../storage/disk/data-directory.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import type { CommittedBatch } from "../../storage/log/committed-batch.js";
import { LOG_STREAM, LOG_SUBJECTS } from "../plant/log-message.js";
import { PlantClient, PlantRefusal } from "../plant/plant-client.js";
import { BatchStream } from "../recorder/captures/batch-stream.js";
import type { FrontToRecorder, RecorderToFront } from "../recorder/recorder-messages.js";
import { type LogLines, logLines } from "../recorder/status/log-lines.js";
import { HintFiles } from "../recorder/upkeep/hint-files.js";
import { CaptureCache } from "./capture-cache.js";
import type { CaptureRequest } from "./capture-request.js";
import { HubLog } from "./hub-log.js";
import type { HubThreadOptions } from "./hub-options.js";

/** Pauses after a failure: the first, and the longest, which is also that after a refusal. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
/** Messages are only read while fewer bytes wait to be committed. */
const PENDING_BYTES = 16 * 1024 * 1024;

export interface HubEnvironment {
  fileSystem: FileSystem;
  directory: LockedDataDirectory;
  wallUs(): number;
  send(message: RecorderToFront, transfer?: ArrayBuffer[]): void;
}

/** The store's only writer at a hub. It takes the messages of the plant's stream into the log, and sends what is committed to the front. */
export class Hub {
  readonly #options: HubThreadOptions;
  readonly #environment: HubEnvironment;
  readonly #lines: LogLines;
  readonly #stream: BatchStream;
  readonly #stop = new AbortController();
  #hub: HubLog | undefined;
  #hints: HintFiles | undefined;
  readonly #cache: CaptureCache;
  /** The client that reads the log; null while the plant is away. */
  #plant: PlantClient | null = null;
  #running: Promise<void> = Promise.resolve();
  /** Why nothing is read from the plant, and since when; null while messages are read. */
  #fault: string | null = null;
  #faultSinceUs = 0;
  #failure: string | null = null;

  constructor(options: HubThreadOptions, environment: HubEnvironment) {
    this.#options = options;
    this.#environment = environment;
    this.#lines = logLines(environment.send);
    this.#stream = new BatchStream({
      send: (batch, buffer) => environment.send({ kind: "batch", batch }, [buffer]),
      onBehind: () => {},
    });
    const { fileSystem, directory, send } = environment;
    this.#cache = new CaptureCache({
      ...{ fileSystem, capturesPath: directory.capturesPath, cacheBytes: options.cacheBytes, line: this.#lines.line },
      plant: () => this.#plant,
      namesOf: (storeId) => this.#hub?.namesOf(storeId) ?? [],
      onRemove: (path) => send({ kind: "capture_evicted", path }),
    });
  }

  /** Sends everything in the log to the front, and then reads the plant. @throws StorageError, FileSystemError */
  async start(): Promise<void> {
    const { fileSystem, directory, wallUs, send } = this.#environment;
    const { segmentBytes } = this.#options;
    await this.#cache.clear();
    const hub = await HubLog.open({
      ...{ fileSystem, metaPath: directory.metaPath, quarantinePath: directory.quarantinePath },
      ...(segmentBytes !== undefined && { segmentBytes }),
      onReplayed: (batch) => {
        this.#stream.send(batch);
        return this.#stream.caughtUp();
      },
      beforeWrite: (lengthBytes) => this.#stream.reserve(lengthBytes),
      onCommitted: (batch) => this.#committed(batch),
      onFailure: ({ message }) => this.#logFailed(message),
    });
    this.#hub = hub;
    const { log } = hub;
    const { line } = this.#lines;
    this.#hints = new HintFiles({
      ...{ fileSystem, directory: directory.metaPath, log, line },
      spend: () => {},
      onReadDamage: (error) => send({ kind: "read_damage", error }),
    });
    this.#hints.start();
    const { recovery } = log;
    this.#say("the plant has not been reached yet", "info");
    send({
      ...{ kind: "ready", storeId: null, recovery, cellSocketPath: "", cellListen: null },
      startedAtUs: wallUs(),
    });
    this.#running = this.#run(hub);
  }

  receive(message: FrontToRecorder): void {
    if (message.kind === "batch_taken") this.#stream.taken(message.memory);
    if (message.kind === "figures") {
      this.#environment.send({ kind: "figures", figures: undefined, cache: this.#cache.figures });
    }
    if (message.kind === "captures_wanted") void this.#fetchCaptures(message.id, message.request);
    if (message.kind === "captures_read") this.#cache.release(message.id, message.isDamaged);
  }

  async #fetchCaptures(id: number, request: CaptureRequest): Promise<void> {
    const fault = await this.#cache.hold(id, request);
    this.#environment.send({ kind: "captures_here", id, fault });
  }

  /** Commits what was read and closes the log. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#cache.close();
    await this.#hints?.stop();
    await this.#hub?.log.close().catch(() => {});
    await this.#environment.directory.release();
    this.#environment.send({ kind: "stopped", failure: this.#failure });
  }

  /** Never rejects. */
  async #run(hub: HubLog): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!this.#stop.signal.aborted && this.#failure === null) {
      try {
        await this.#read(hub, () => (pauseMs = FIRST_PAUSE_MS));
      } catch (error) {
        if (this.#stop.signal.aborted || this.#failure !== null) return;
        const isRefusal = error instanceof PlantRefusal;
        this.#say(isRefusal ? error.message : `the plant cannot be read: ${(error as Error).message}`);
        await setTimeout(isRefusal ? LONGEST_PAUSE_MS : pauseMs, undefined, { signal: this.#stop.signal }).catch(
          () => {},
        );
        pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
      }
    }
  }

  async #read(hub: HubLog, onSuccess: () => void): Promise<void> {
    const { log } = hub;
    const plant = await PlantClient.connect(this.#options.address);
    this.#plant = plant;
    try {
      await plant.requireLogStream();
      const goal = await plant.lastLogSequence();
      if (goal < hub.streamSequence) {
        throw new PlantRefusal(
          `the log stream ends with message ${goal}, but this hub has read ${hub.streamSequence}: it is another stream, or it was ` +
            "put back from a backup. Stop the hub, delete its folder and start it again",
        );
      }
      this.#say(null);
      if (goal === hub.streamSequence) this.#environment.send({ kind: "caught_up" });
      const { fromSequence, partSequences } = hub.resume();
      for (const place of partSequences) {
        const part = await plant.nextMessage(LOG_STREAM, LOG_SUBJECTS, place);
        if (part !== null) hub.take({ ...part, streamTimeUs: 1_000 * part.timeMs });
      }
      for await (const message of plant.readLog(fromSequence, this.#stop.signal)) {
        hub.take(message);
        onSuccess();
        if (log.pendingBytes > PENDING_BYTES || message.streamSequence === goal) {
          await log.whenCommitted(log.nextSequence - 1);
        }
        if (message.streamSequence === goal) this.#environment.send({ kind: "caught_up" });
        await this.#stream.caughtUp();
      }
    } finally {
      this.#plant = null;
      await plant.close();
    }
  }

  #committed(batch: CommittedBatch): void {
    this.#stream.send(batch);
    this.#hints?.committed(batch.segmentBase);
  }

  #logFailed(message: string): void {
    this.#failure ??= since(this.#environment.wallUs(), message);
    this.#stop.abort();
    this.#environment.send({ kind: "recording_ended", cause: this.#failure });
    this.#updateHealth();
  }

  #say(fault: string | null, level: "info" | "warn" = "warn"): void {
    if (this.#fault === fault) return;
    if (this.#fault === null || fault === null) this.#faultSinceUs = this.#environment.wallUs();
    this.#fault = fault;
    if (fault === null) this.#lines.line("info", "the plant is read", {});
    else this.#lines.line(level, "the plant is not read", { cause: fault });
    this.#updateHealth();
  }

  #updateHealth(): void {
    const damages = this.#hub?.log.recovery.corruptionCount ?? 0;
    const damage =
      damages === 0 ? null : "the hub's log is damaged: stop the hub, delete its folder and start it again";
    const row = (key: string, status: ComponentRow["status"], detail: string | null): ComponentRow => {
      return { key, id: null, status, detail, enabled: null, required: true };
    };
    const fault = this.#fault === null ? null : since(this.#faultSinceUs, this.#fault);
    const rows = [
      this.#failure === null
        ? row("log", damage === null ? "healthy" : "degraded", damage)
        : row("log", "down", this.#failure),
      row("plant", fault === null ? "healthy" : "down", fault),
    ];
    this.#environment.send({ kind: "health", rows });
  }
}
