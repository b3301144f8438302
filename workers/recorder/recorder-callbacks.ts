import type { ComponentRow } from "../../core/health.js";
import type { CommittedBatch } from "../../storage/log/committed-batch.js";
import type { DeliveryContent } from "../../storage/records/delivery-records.js";
import type { StorageErrorData } from "../../storage/storage-error.js";
import type { TaskAnswer, TaskMessage } from "../artefacts/pool/artefact-thread.js";
import type { LogLine, RecorderErrorData } from "./recorder-messages.js";

/**
 * What the recorder asks and tells the front. A call that returns a promise keeps later batches waiting only if it says
 * so.
 */
export interface RecorderCallbacks {
  /**
   * Takes committed records in order: first everything in the log, then each group when it is durable. The next batches
   * may arrive before a returned promise resolves, but only up to a bound. Then the recorder stops reading its
   * producers.
   */
  onBatch(batch: CommittedBatch): void | Promise<void>;
  /** Takes all of the recorder's rows of health (log, disk, recorder, dispatcher), each time one of them changes. */
  onHealth(rows: ComponentRow[]): void;
  onLog(line: LogLine): void;
  /** Called when damaged bytes were found while a hint file was made. */
  onReadDamage?(error: StorageErrorData): void;
  /** Closes the open capture files of these runs, except for downloads under way. Called after the batches with their tombstones. */
  onCapturesRemoved(runIds: readonly string[]): void;
  /**
   * Gives the stored content of a delivery; undefined if it is unknown. Rejects if it cannot be read. Without this
   * callback every delivery is unknown.
   */
  onDeliveryRequested?(deliveryId: string): Promise<DeliveryContent | undefined>;
  /** Gives the body of an ended run's record; undefined for another run. Rejects if it cannot be read. */
  onRunRequested?(runId: string): Promise<Uint8Array | undefined>;
  /** Only of a hub: closes this file of fetched captures as soon as its reads are done. Called before it is removed. */
  onCaptureEvicted?(path: string): void;
  /** Only of a hub: the view has everything that the plant had when the hub started. */
  onCaughtUp?(): void;
  /** No delivery is attempted again before the next start, whatever batches still say. */
  onDeliveriesEnded?(): void;
  /** Computes an artefact. A rejection fails the artefact. Without this callback none is made. */
  onArtefactRequested?(task: TaskMessage): Promise<TaskAnswer>;
  /** Nothing is recorded until the next start. Everything else goes on. `cause` says since when and why. */
  onRecordingEnded?(cause: string): void;
  /** The recorder ended by itself after it was ready; no more calls come. Not called for an end by `stop`. */
  onFailure(error: RecorderErrorData): void;
}
