import { Worker } from "node:worker_threads";
import { type ErrorData, ServiceError } from "../../core/service-errors.js";
import type { TaskAnswer } from "../artefacts/pool/artefact-thread.js";
import { buffersOf } from "../artefacts/pool/task-buffers.js";
import type { CacheFigures, CaptureRequest } from "../hub/capture-request.js";
import type { FoundDelivery, FoundRun } from "../webhooks/deliveries/tracked-delivery.js";
import type { WebhookReply, WebhookRequest } from "../webhooks/webhook-requests.js";
import type { RecorderCallbacks } from "./recorder-callbacks.js";
import type {
  FrontToRecorder,
  RecorderErrorData,
  RecorderOptions,
  RecorderReady,
  RecorderToFront,
} from "./recorder-messages.js";
import type { RecorderFigures } from "./status/recorder-figures.js";

/** The recorder could not start, or ended by itself. `data` says why. */
export class RecorderError extends Error {
  readonly data: RecorderErrorData;

  constructor(data: RecorderErrorData) {
    super(data.message);
    this.name = "RecorderError";
    this.data = data;
  }
}

const RECORDER_THREAD = new URL("./recorder-thread.js", import.meta.url);

/** A message of one kind. */
type Message<Kind extends RecorderToFront["kind"]> = Extract<RecorderToFront, { kind: Kind }>;

/** The recorder thread as the front sees it. It opens the data directory, and is the store's only writer from then on. */
export class RecorderHandle {
  /**
   * Resolves when `onBatch` has taken every record in the log (the promises it returned have resolved) and producers
   * can connect. Rejects with `RecorderError` if the recorder cannot start.
   */
  readonly ready: Promise<RecorderReady>;
  readonly #callbacks: RecorderCallbacks;
  readonly #worker: Worker;
  readonly #exit: Promise<void>;
  #resolveReady: (ready: RecorderReady) => void = () => {};
  #rejectReady: (error: RecorderError) => void = () => {};
  #isReady = false;
  #isStopping = false;
  #hasExited = false;
  #failure: RecorderErrorData | undefined;
  #figureAskers: ((figures: RecorderFigures | undefined) => void)[] = [];
  /** Resolves when every call that batches wait for has ended. These calls are made one after the other. */
  #taken: Promise<void> = Promise.resolve();
  /** Requests that the recorder has not answered. */
  readonly #requests = new Map<number, (reply: WebhookReply) => void>();
  /** Captures that a hub has not answered for. */
  readonly #captures = new Map<number, (fault: ErrorData | null) => void>();
  #lastRequest = 0;
  #cache: CacheFigures | undefined;

  /** @param thread starts this thread instead of a recorder's: a hub's, which sends the same messages */
  constructor(options: RecorderOptions, callbacks: RecorderCallbacks, thread?: { url: URL; workerData: object }) {
    this.#callbacks = callbacks;
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    // A rejection that nobody looks at must not end the process: a recorder may be stopped at once.
    this.ready.catch(() => {});
    const { url, workerData } = thread ?? { url: RECORDER_THREAD, workerData: options };
    this.#worker = new Worker(url, { workerData, name: "recorder" });
    this.#worker.on("message", (message: RecorderToFront) => this.#receive(message));
    this.#worker.on("error", (error) => this.#crashed(error));
    this.#exit = new Promise((resolve) => {
      this.#worker.on("exit", (code) => {
        this.#exited(code);
        resolve();
      });
    });
  }

  /** What the recorder has counted; undefined when it has ended. */
  figures(): Promise<RecorderFigures | undefined> {
    if (this.#hasExited) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      // One answer serves everybody who asks before it comes.
      if (this.#figureAskers.push(resolve) === 1) this.#post({ kind: "figures" });
    });
  }

  /** What the hub has counted when `figures` was last called; undefined for a recorder. */
  get cacheFigures(): CacheFigures | undefined {
    return this.#cache;
  }

  /**
   * Only of a hub: fetches captures from the plant. They stay on the disk until `capturesRead`.
   * @returns what `capturesRead` is called with
   * @throws ServiceError `not_shipped`, `unavailable`
   */
  async wantCaptures(request: CaptureRequest): Promise<number> {
    if (this.#hasExited) throw new ServiceError("unavailable", "the hub has ended", {});
    const id = ++this.#lastRequest;
    const fault = await new Promise<ErrorData | null>((resolve) => {
      this.#captures.set(id, resolve);
      this.#post({ kind: "captures_wanted", id, request });
    });
    if (fault !== null) throw new ServiceError(fault.code, fault.message, fault.params, fault);
    return id;
  }

  /** @param isDamaged the bytes do not match their CRCs */
  capturesRead(id: number, isDamaged: boolean): void {
    this.#post({ kind: "captures_read", id, isDamaged });
  }

  /** Says that requests are served on that port. Deliveries may go out from then on. */
  serving(port: number): void {
    this.#post({ kind: "serving", port });
  }

  /** Says which captures the plant has. Retention may remove them. */
  capturesShipped(sequence: number): void {
    this.#post({ kind: "captures_shipped", sequence });
  }

  /**
   * Writes something about webhooks. Resolves with the id of the webhook or delivery when the write is committed and was given to
   * `onBatch`.
   *
   * @param gone aborted when nobody waits any more: an attempt that has not begun is then not made
   * @throws ServiceError
   */
  async request(request: WebhookRequest, gone?: AbortSignal): Promise<string> {
    if (this.#hasExited) throw new ServiceError("unavailable", "the recorder has ended", {});
    const id = ++this.#lastRequest;
    const reply = await new Promise<WebhookReply>((resolve) => {
      this.#requests.set(id, resolve);
      // A resend has up to eight megabytes of items. A copy of them would hold up the front.
      this.#post({ kind: "request", id, request }, request.op === "resend" ? [request.items.buffer] : []);
      const drop = (): void => {
        if (this.#requests.has(id)) this.#post({ kind: "request_dropped", id });
      };
      gone?.addEventListener("abort", drop, { once: true });
    });
    if (!reply.ok) throw new ServiceError(reply.error.code, reply.error.message, reply.error.params);
    return reply.id;
  }

  /**
   * Begins no more attempts of deliveries. Attempts under way may last for `graceMs`. A request for an attempt is
   * answered by then, or at once if its attempt has not begun.
   */
  stopDeliveries(graceMs: number): void {
    this.#post({ kind: "stop_deliveries", graceMs });
  }

  /**
   * Ends the recorder. Resolves when everything is committed and the data directory is free: with null, or with the
   * failure that kept something from being committed. It can be called again.
   *
   * @param attemptGraceMs how long attempts of deliveries under way may last. Default 0: they are made again at the
   *   next start
   */
  async stop(attemptGraceMs = 0): Promise<RecorderErrorData | null> {
    if (!this.#isStopping && !this.#hasExited) {
      this.#isStopping = true;
      this.#post({ kind: "stop", attemptGraceMs });
    }
    await this.#exit;
    await this.#taken;
    return this.#failure ?? null;
  }

  #post(message: FrontToRecorder, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  #receive(message: RecorderToFront): void {
    const callbacks = this.#callbacks;
    switch (message.kind) {
      case "batch":
        this.#takeBatch(message);
        return;
      case "ready":
        void this.#taken.then(() => this.#becomeReady(message));
        return;
      case "health":
        callbacks.onHealth(message.rows);
        return;
      case "log":
        callbacks.onLog(message.line);
        return;
      case "read_damage":
        callbacks.onReadDamage?.(message.error);
        return;
      case "let_go_of_captures":
        this.#inOrder(async () => {
          callbacks.onCapturesRemoved(message.runIds);
          this.#post({ kind: "captures_let_go" });
        });
        return;
      case "captures_here":
        this.#captures.get(message.id)?.(message.fault);
        this.#captures.delete(message.id);
        return;
      case "capture_evicted":
        callbacks.onCaptureEvicted?.(message.path);
        return;
      case "figures":
        this.#cache = message.cache;
        for (const resolve of this.#figureAskers.splice(0)) resolve(message.figures);
        return;
      case "delivery_wanted":
        // Reading it is not awaited, because batches need not wait for it.
        this.#taken = this.#taken.then(() => void this.#findDelivery(message.deliveryId));
        return;
      case "run_wanted":
        this.#taken = this.#taken.then(() => void this.#findRun(message));
        return;
      case "caught_up":
        void this.#taken.then(() => callbacks.onCaughtUp?.());
        return;
      case "deliveries_ended":
        callbacks.onDeliveriesEnded?.();
        return;
      case "artefact_wanted":
        void this.#makeArtefact(message);
        return;
      case "reply":
        this.#taken = this.#taken.then(() => this.#answerRequest(message));
        return;
      case "recording_ended":
        callbacks.onRecordingEnded?.(message.cause);
        return;
      case "failed":
        this.#fail(message.error);
        return;
      case "stopped":
        this.#stopped(message);
        return;
    }
  }

  #becomeReady(ready: RecorderReady): void {
    this.#isReady = true;
    this.#resolveReady(ready);
  }

  #stopped({ failure }: Message<"stopped">): void {
    if (failure === null) return;
    this.#failure ??= { code: "recorder_failed", message: `nothing was recorded ${failure}`, params: {} };
  }

  /** Makes the call after those of the batches that came before. Later batches wait for the promise. */
  #inOrder(call: () => Promise<void>): void {
    this.#taken = this.#taken.then(call).catch((error: unknown) => this.#crashed(error));
  }

  #takeBatch({ batch }: Message<"batch">): void {
    const memory = batch.bytes.buffer as ArrayBuffer;
    this.#inOrder(async () => {
      await this.#callbacks.onBatch(batch);
      this.#post({ kind: "batch_taken", memory }, [memory]);
    });
  }

  async #findDelivery(deliveryId: string): Promise<void> {
    let found: FoundDelivery;
    try {
      const content = await this.#callbacks.onDeliveryRequested?.(deliveryId);
      found = content === undefined ? { kind: "unknown" } : { kind: "content", content };
    } catch (error) {
      found = { kind: "unreadable", reason: messageOf(error) };
    }
    this.#post({ kind: "delivery_content", deliveryId, found });
  }

  async #findRun({ deliveryId, runId }: Message<"run_wanted">): Promise<void> {
    let found: FoundRun;
    try {
      const body = await this.#callbacks.onRunRequested?.(runId);
      found = body === undefined ? { kind: "none" } : { kind: "body", body };
    } catch (error) {
      found = { kind: "unreadable", reason: messageOf(error) };
    }
    this.#post({ kind: "run_content", deliveryId, found });
  }

  async #makeArtefact({ id, task }: Message<"artefact_wanted">): Promise<void> {
    let answer: TaskAnswer;
    try {
      const made = this.#callbacks.onArtefactRequested?.(task);
      if (made === undefined) throw new Error("the front makes no artefacts");
      answer = await made;
    } catch (error) {
      answer = { error: { code: "task_failed", message: messageOf(error) } };
    }
    this.#post({ kind: "artefact_made", id, answer }, "value" in answer ? buffersOf(answer.value) : []);
  }

  #answerRequest({ id, reply }: Message<"reply">): void {
    const answer = this.#requests.get(id);
    this.#requests.delete(id);
    answer?.(reply);
  }

  #crashed(error: unknown): void {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#fail({ code: "recorder_crashed", message, params: {} });
  }

  #fail(error: RecorderErrorData): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    if (this.#isReady && !this.#isStopping) this.#callbacks.onFailure(error);
    this.#rejectReady(new RecorderError(error));
  }

  #exited(code: number): void {
    this.#hasExited = true;
    for (const resolve of this.#figureAskers.splice(0)) resolve(undefined);
    void this.#taken.then(() => this.#refuseRequests());
    if (this.#isStopping) {
      const error: RecorderErrorData = { code: "recorder_stopped", message: "the recorder was stopped", params: {} };
      this.#rejectReady(new RecorderError(error));
    } else {
      this.#fail({ code: "recorder_crashed", message: `the recorder thread ended with ${code}`, params: {} });
    }
  }

  #refuseRequests(): void {
    const error: ErrorData = { code: "unavailable", message: "the recorder has ended", params: {} };
    for (const answer of this.#requests.values()) answer({ ok: false, error });
    for (const answer of this.#captures.values()) answer(error);
    this.#requests.clear();
    this.#captures.clear();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
