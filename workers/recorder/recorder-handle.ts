import { Worker } from "node:worker_threads";
import type { ComponentRow } from "../../core/health.js";
import { type ErrorData, ServiceError } from "../../core/service-errors.js";
import type { SegmentMoves } from "../../storage/compaction/segment-moves.js";
import { FileSystemError } from "../../storage/disk/file-system.js";
import type { CommittedBatch } from "../../storage/log/log-batch.js";
import type { DeliveryContent } from "../../storage/records/delivery-records.js";
import type { StorageErrorData } from "../../storage/storage-error.js";
import type { TaskAnswer, TaskMessage } from "../artefacts/pool/artefact-thread.js";
import { buffersOf } from "../artefacts/pool/task-buffers.js";
import type { FoundDelivery } from "../webhooks/deliveries/tracked-delivery.js";
import type { WebhookReply, WebhookRequest } from "../webhooks/deliveries/webhook-requests.js";
import type { RecorderFigures } from "./recorder-figures.js";
import type {
  FrontToRecorder,
  LogLine,
  RecorderErrorData,
  RecorderOptions,
  RecorderReady,
  RecorderToFront,
} from "./recorder-messages.js";
import type { StoreCounters } from "./upkeep/store-counters.js";

/** The recorder could not start, or ended by itself. `data` says why. */
export class RecorderError extends Error {
  readonly data: RecorderErrorData;

  constructor(data: RecorderErrorData) {
    super(data.message);
    this.name = "RecorderError";
    this.data = data;
  }
}

export interface RecorderCallbacks {
  /**
   * Takes the view's part of a snapshot, with what has moved since, in place of all records up to that sequence number. When it rejects, or is left out, all of
   * them are given to `onBatch`.
   */
  onSnapshot?(path: string, sequence: number, moves: SegmentMoves[]): Promise<void>;
  /** What `onSnapshot` has taken does not count: all records follow. */
  onSnapshotDiscarded?(): void;
  /**
   * Committed records, in order: first all that the log held, then each group as it becomes durable. The next ones may arrive
   * before a returned promise resolves, but not without bound: the recorder stops reading its producers when this falls behind.
   */
  onBatch(batch: CommittedBatch): void | Promise<void>;
  /** The recorder's rows of health (log, disk, recorder), all of them, and the store's counters, each time one changes. */
  onHealth(rows: ComponentRow[], counters: StoreCounters): void;
  onLog(line: LogLine): void;
  /** What compaction or the making of a snapshot met of stored bytes that are damaged. */
  onReadDamage?(error: StorageErrorData): void;
  /** What is kept open of these runs' captures is closed, downloads under way apart. Called after the batches with their tombstones. */
  onCapturesRemoved(runIds: readonly string[]): void;
  /** Keeps the segment's file of now open, until its moves are applied. */
  onHoldSegment(segmentBase: number): Promise<void>;
  /** The segment's name has another file, called after the batches before it; batches behind it wait for the promise. */
  onSegmentMoved(moves: SegmentMoves): Promise<void>;
  /** What is stored of a delivery, to be made; undefined for one that is unknown, or without this. A rejection is one that cannot be read. */
  onDeliveryWanted?(deliveryId: string): Promise<DeliveryContent | undefined>;
  /** No delivery has a further attempt before the next start, whatever batches still say. */
  onDeliveriesEnded?(): void;
  /** Computes what processing needs; without it nothing is processed. A rejection fails the artefact as a whole. */
  onArtefactWanted?(task: TaskMessage): Promise<TaskAnswer>;
  /** Nothing is recorded before the next start, and the recorder goes on for the rest. `cause` says since when and why. */
  onRecordingEnded?(cause: string): void;
  /** The recorder ended by itself after it was ready; nothing more comes. Not called for an end by `stop`. */
  onFailure(error: RecorderErrorData): void;
}

export interface RecorderHandle {
  /**
   * Resolves when every record that the log held was given to `onBatch` (and the promises it returned have resolved) and producers
   * can connect. Rejects with `RecorderError` when the recorder cannot start.
   */
  readonly ready: Promise<RecorderReady>;
  /** What it has counted; undefined when it has ended. */
  figures(): Promise<RecorderFigures | undefined>;
  /** Requests are served on that port: deliveries may go out. */
  serving(port: number): void;
  /**
   * A write about webhooks. Resolves when it is committed and was given to `onBatch`. @throws ServiceError
   * @param gone aborted when nobody waits any more: an attempt that has not begun is then not made
   */
  request(request: WebhookRequest, gone?: AbortSignal): Promise<string>;
  /**
   * No attempt of a delivery begins any more; those under way may last for `graceMs`. Requests for one are answered then at the latest,
   * those whose attempt has not begun at once.
   */
  stopDeliveries(graceMs: number): void;
  /**
   * Ends the recorder; resolves when all is committed and the data directory is free, or, with why it could not all be committed,
   * when a failed disk or an error of its own had ended the recording. Can be called again.
   * @param attemptGraceMs what webhook attempts under way may take to end; default 0: they are made again at the next start
   */
  stop(attemptGraceMs?: number): Promise<RecorderErrorData | null>;
}

/** Starts the recorder thread: it opens the data directory, and from then on is the store's only writer. */
export function startRecorder(options: RecorderOptions, callbacks: RecorderCallbacks): RecorderHandle {
  const worker = new Worker(new URL("./recorder-thread.js", import.meta.url), {
    workerData: options,
    name: "recorder",
  });
  const post = (message: FrontToRecorder, transfer: ArrayBuffer[] = []): void => worker.postMessage(message, transfer);

  let resolveReady: (ready: RecorderReady) => void = () => {};
  let rejectReady: (error: RecorderError) => void = () => {};
  const ready = new Promise<RecorderReady>((resolve, reject) => {
    resolveReady = resolve;
    rejectReady = reject;
  });
  // Whoever starts a recorder and stops it at once may never look at `ready`.
  ready.catch(() => {});

  let isReady = false;
  let failure: RecorderErrorData | undefined;
  let stopping = false;
  let exited = false;
  let figureAskers: ((figures: RecorderFigures | undefined) => void)[] = [];
  /** Batches whose `onBatch` has not ended, one after the other. */
  let taken: Promise<void> = Promise.resolve();

  const fail = (error: RecorderErrorData): void => {
    if (failure !== undefined) return;
    failure = error;
    if (isReady && !stopping) callbacks.onFailure(error);
    rejectReady(new RecorderError(error));
  };
  const crashed = (error: unknown): void => {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    fail({ code: "recorder_crashed", message, params: {} });
  };

  /** Requests that the recorder has not answered. */
  const waiting = new Map<number, (reply: WebhookReply) => void>();
  let requests = 0;
  const refuseWaiting = (): void => {
    const error: ErrorData = { code: "unavailable", message: "the recorder has ended", params: {} };
    for (const answer of waiting.values()) answer({ ok: false, error });
    waiting.clear();
  };

  const takeBatch = (batch: CommittedBatch): void => {
    const memory = batch.bytes.buffer as ArrayBuffer;
    taken = taken
      .then(() => callbacks.onBatch(batch))
      .then(() => post({ kind: "batch_taken", memory }, [memory]))
      .catch(crashed);
  };

  const takeSnapshot = (path: string, sequence: number, moves: SegmentMoves[]): void => {
    const taking = callbacks.onSnapshot?.(path, sequence, moves) ?? Promise.reject(new Error("the front takes none"));
    taking.then(
      () => post({ kind: "snapshot_taken" }),
      (error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        post({ kind: "snapshot_refused", reason, isUnread: error instanceof FileSystemError });
      },
    );
  };

  const makeArtefact = async (id: number, task: TaskMessage): Promise<void> => {
    let answer: TaskAnswer;
    try {
      if (callbacks.onArtefactWanted === undefined) throw new Error("the front makes none");
      answer = await callbacks.onArtefactWanted(task);
    } catch (error) {
      answer = { error: { code: "task_failed", message: error instanceof Error ? error.message : String(error) } };
    }
    post({ kind: "artefact_made", id, answer }, "value" in answer ? buffersOf(answer.value) : []);
  };

  worker.on("message", (message: RecorderToFront) => {
    switch (message.kind) {
      case "batch":
        takeBatch(message.batch);
        return;
      case "snapshot":
        takeSnapshot(message.path, message.sequence, message.moves);
        return;
      case "snapshot_discarded":
        callbacks.onSnapshotDiscarded?.();
        return;
      case "ready":
        void taken.then(() => {
          isReady = true;
          resolveReady(message);
        });
        return;
      case "health":
        callbacks.onHealth(message.rows, message.counters);
        return;
      case "log":
        callbacks.onLog(message.line);
        return;
      case "read_damage":
        callbacks.onReadDamage?.(message.error);
        return;
      case "let_go_of_captures":
        taken = taken
          .then(() => callbacks.onCapturesRemoved(message.runIds))
          .then(() => post({ kind: "captures_let_go" }))
          .catch(crashed);
        return;
      case "figures":
        for (const resolve of figureAskers.splice(0)) resolve(message.figures);
        return;
      case "hold_segment":
        taken = taken
          .then(() => callbacks.onHoldSegment(message.segmentBase))
          .then(
            () => post({ kind: "segment_held", isHeld: true }),
            () => post({ kind: "segment_held", isHeld: false }),
          );
        return;
      case "segment_moved":
        taken = taken.then(() => callbacks.onSegmentMoved(message.moves)).catch(crashed);
        return;
      case "delivery_wanted": {
        const { deliveryId } = message;
        taken = taken.then(() => {
          // Not awaited: a read is nothing that batches must wait for.
          void Promise.resolve(callbacks.onDeliveryWanted?.(deliveryId))
            .then(
              (content): FoundDelivery => (content === undefined ? { kind: "unknown" } : { kind: "content", content }),
              (error: unknown): FoundDelivery => ({
                kind: "unreadable",
                reason: error instanceof Error ? error.message : String(error),
              }),
            )
            .then((found) => post({ kind: "delivery_content", deliveryId, found }));
        });
        return;
      }
      case "deliveries_ended":
        callbacks.onDeliveriesEnded?.();
        return;
      case "artefact_wanted":
        void makeArtefact(message.id, message.task);
        return;
      case "reply":
        taken = taken.then(() => {
          const answer = waiting.get(message.id);
          waiting.delete(message.id);
          answer?.(message.reply);
        });
        return;
      case "recording_ended":
        callbacks.onRecordingEnded?.(message.cause);
        return;
      case "failed":
        fail(message.error);
        return;
      case "stopped":
        if (message.failure !== null) {
          failure ??= { code: "recorder_failed", message: `nothing was recorded ${message.failure}`, params: {} };
        }
        return;
    }
  });
  worker.on("error", crashed);
  const exit = new Promise<void>((resolve) => {
    worker.on("exit", (code) => {
      exited = true;
      for (const resolve of figureAskers) resolve(undefined);
      figureAskers = [];
      void taken.then(refuseWaiting);
      if (!stopping) fail({ code: "recorder_crashed", message: `the recorder thread ended with ${code}`, params: {} });
      else
        rejectReady(new RecorderError({ code: "recorder_stopped", message: "the recorder was stopped", params: {} }));
      resolve();
    });
  });

  return {
    ready,
    figures() {
      if (exited) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        // Who asks while an answer is on its way gets that one.
        if (figureAskers.push(resolve) === 1) post({ kind: "figures" });
      });
    },
    serving: (port) => post({ kind: "serving", port }),
    async request(request, gone) {
      if (exited) throw new ServiceError("unavailable", "the recorder has ended", {});
      const id = ++requests;
      const reply = await new Promise<WebhookReply>((resolve) => {
        waiting.set(id, resolve);
        post({ kind: "request", id, request });
        gone?.addEventListener("abort", () => waiting.has(id) && post({ kind: "request_dropped", id }), { once: true });
      });
      if (!reply.ok) throw new ServiceError(reply.error.code, reply.error.message, reply.error.params);
      return reply.id;
    },
    stopDeliveries: (graceMs) => post({ kind: "stop_deliveries", graceMs }),
    async stop(attemptGraceMs = 0) {
      if (!stopping && !exited) {
        stopping = true;
        post({ kind: "stop", attemptGraceMs });
      }
      await exit;
      await taken;
      return failure ?? null;
    },
  };
}
