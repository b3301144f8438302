/** The recorder thread's entry: `workerData` is `RecorderOptions`, the messages are those of recorder-messages.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { wallClockUs } from "../../core/service-clock.js";
import { SYSTEM_TIMERS } from "../../core/timers.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { FileSystemError, isNoRoom } from "../../storage/disk/file-system-error.js";
import { StorageError } from "../../storage/storage-error.js";
import { LinkListenError } from "../cell-link/link-server.js";
import { watchLoopDelay } from "../loop-delay.js";
import { startDispatcher } from "../webhooks/dispatcher/dispatcher-handle.js";
import { FrontArtefactMaker } from "./captures/artefact-maker.js";
import { Recorder } from "./recorder.js";
import type { FrontToRecorder, RecorderErrorData, RecorderOptions, RecorderToFront } from "./recorder-messages.js";

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
  send({ kind: "failed", error: errorData(error) });
}
// An open port would keep the thread alive.
port.close();

function errorData(error: unknown): RecorderErrorData {
  if (error instanceof StorageError) return error.data;
  if (error instanceof FileSystemError) {
    const { code, path, message: said } = error;
    const message = isNoRoom(error) ? withoutRoom(said) : said;
    return { code: "file_system_failed", message, params: { code, path } };
  }
  if (error instanceof LinkListenError) return { code: error.code, message: error.message, params: {} };
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: "recorder_crashed", message, params: {} };
}

function withoutRoom(cause: string): string {
  return (
    `the disk has too little room to start (${cause}): free some and start again. Nothing is lost, but the service answers no requests ` +
    "until then"
  );
}
