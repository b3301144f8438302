import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { StorageError } from "../../storage/storage-error.js";
import type { RecorderCallbacks } from "../../workers/recorder/recorder-callbacks.js";
import type { ServiceLog } from "../log/service-log.js";
import type { ServiceReaders } from "./service-readers.js";

/** What the front does with what the recorder tells it: it keeps the view, the health rows and the log up to date. */
export function recorderCallbacks(readers: ServiceReaders, log: ServiceLog): RecorderCallbacks {
  const { health } = readers;
  return {
    // It works in slices only when HTTP is served: before that, nothing else wants the thread.
    onBatch: (batch) =>
      readers.isServing
        ? readers.view.fold.applyBatchInSlices(batch, eventLoopTurn)
        : readers.view.fold.applyBatch(batch),
    onHealth: (rows) => health.setOwnRows(rows),
    onLog: ({ level, message, fields }) => log[level](fields, message),
    onReadDamage: ({ code, message, params }) => health.readDamage.note(new StorageError(code, message, params)),
    onCapturesRemoved: (runIds) => {
      for (const runId of runIds) readers.captures.forget(readers.capturePathOf(runId, "capture"));
    },
    onCaptureEvicted: (path) => readers.captures.forget(path),
    onArtefactRequested: (task) => readers.artefacts.makeForRecorder(task),
    async onDeliveryRequested(deliveryId) {
      try {
        return await readers.view.delivery(deliveryId);
      } catch (error) {
        health.readDamage.note(error);
        throw error;
      }
    },
    onRunRequested: async (runId) => readers.view.storedBody(runId),
    onCaughtUp: () => {
      readers.isStarting = false;
    },
    onDeliveriesEnded: () => readers.view.fold.endPausesForGood(),
    onRecordingEnded: (cause) => readers.setRecordingEnded(cause),
    onFailure: (error) => {
      log.fatal({ error }, "the recorder has failed: nothing is recorded any more, reads go on");
      readers.view.fold.endPausesForGood();
      readers.setRecordingEnded(health.recorderFailed(error));
    },
  };
}
