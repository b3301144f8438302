/** The recorder thread's entry: `workerData` is `RecorderOptions`, the messages are those of recorder-messages.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { wallClockUs } from "../../core/service-clock.js";
import { SYSTEM_TIMERS } from "../../core/timers.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { watchLoopDelay } from "../loop-delay.js";
import { startDispatcher } from "../webhooks/dispatcher/dispatcher-handle.js";
import { FrontArtefactMaker } from "./captures/artefact-maker.js";
import { Recorder } from "./recorder.js";
import { recorderErrorData } from "./recorder-error-data.js";
import type { FrontToRecorder, RecorderOptions, RecorderToFront } from "./recorder-messages.js";

const port = parentPort;
if (port === null) throw new Error("recorder-thread is a worker's entry");
const send = (message: RecorderToFront, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer);

const options = workerData as RecorderOptions;
const artefacts = options.artefactTasks === undefined ? undefined : new FrontArtefactMaker(options.artefactTasks, send);

try {
  const recorder = await Recorder.start(options, {
    fileSystem: nodeFileSystem,
    timers: SYSTEM_TIMERS,
    wallUs: wallClockUs,
    send,
    onMessage: (receive) => {
      port.on("message", (message: FrontToRecorder) => {
        if (message.kind === "artefact_made") artefacts?.answered(message);
        else receive(message);
      });
    },
    ...(artefacts !== undefined && { artefacts }),
    startDispatcher,
    loopDelay: watchLoopDelay(),
  });
  await recorder.stopped;
} catch (error) {
  send({ kind: "failed", error: recorderErrorData(error) });
}
// An open port would keep the thread alive.
port.close();
