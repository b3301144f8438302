import { setTimeout as delay, setImmediate as eventLoopTurn } from "node:timers/promises";
import { fillReserve } from "../../storage/columns/memory-reserve.js";
import { StorageError } from "../../storage/storage-error.js";
import type { RecorderCallbacks } from "../../workers/recorder/recorder-callbacks.js";
import type { ServiceLog } from "../log/service-log.js";
import type { ServiceReaders } from "./service-readers.js";

/** How often the view asks for memory again that it did not get. */
const MEMORY_RETRY_MS = 500;

/** What the front does with what the recorder tells it: it keeps the view, the health rows and the log up to date. */
export function recorderCallbacks(readers: ServiceReaders, log: ServiceLog): RecorderCallbacks {
  const { health } = readers;
  /** Lets other work have its turn. Where there is no memory for a record, the batch waits for it. */
  const giveWay = async (): Promise<void> => {
    for (await eventLoopTurn(); readers.isServing; await delay(MEMORY_RETRY_MS)) {
      try {
        return fillReserve();
      } catch (error) {
        health.shortage.note(error);
      }
    }
  };
  return {
    // In slices only once HTTP is served: before, nothing else wants the thread.
    onBatch: (batch) =>
      readers.isServing ? readers.view.applyBatchInSlices(batch, giveWay) : readers.view.applyBatch(batch),
    onHealth: (rows) => health.setOwnRows(rows),
    onLog: ({ level, message, fields }) => log[level](fields, message),
    onReadDamage: ({ code, message, params }) => health.readDamage.note(new StorageError(code, message, params)),
    onCapturesRemoved: (runIds) => {
      for (const runId of runIds) readers.captures.forget(readers.capturePathOf(runId, "capture"));
    },
    onArtefactRequested: (task) => readers.artefacts.makeForRecorder(task),
    async onDeliveryRequested(deliveryId) {
      try {
        return await readers.view.delivery(deliveryId);
      } catch (error) {
        health.readDamage.note(error);
        throw error;
      }
    },
    onDeliveriesEnded: () => readers.view.endPausesForGood(),
    onRecordingEnded: (cause) => readers.setRecordingEnded(cause),
    onFailure: (error) => {
      log.fatal({ error }, "the recorder has failed: nothing is recorded any more, reads go on");
      readers.view.endPausesForGood();
      readers.setRecordingEnded(health.recorderFailed(error));
    },
  };
}
