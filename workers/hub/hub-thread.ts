/** The entry of a hub's thread: `workerData` is `HubThreadOptions`, the messages are those of a recorder (recorder-messages.ts). */
import { parentPort, workerData } from "node:worker_threads";
import { wallClockUs } from "../../core/service-clock.js";
import { openDataDirectory } from "../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { recorderErrorData } from "../recorder/recorder-error-data.js";
import type { FrontToRecorder, RecorderToFront } from "../recorder/recorder-messages.js";
import { Hub } from "./hub.js";
import type { HubThreadOptions } from "./hub-options.js";

const port = parentPort;
if (port === null) throw new Error("hub-thread is a worker's entry");
const send = (message: RecorderToFront, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer);
const options = workerData as HubThreadOptions;

try {
  const directory = await openDataDirectory({ path: options.dataDirectory, creates: true });
  const hub = new Hub(options, { fileSystem: nodeFileSystem, directory, wallUs: wallClockUs, send });
  let starting: Promise<void> | undefined;
  const stopped = new Promise<void>((resolve) => {
    port.on("message", (message: FrontToRecorder) => {
      if (message.kind !== "stop") hub.receive(message);
      else
        void Promise.resolve(starting)
          .finally(() => hub.stop().then(resolve))
          .catch(() => {});
    });
  });
  starting = hub.start().catch(async (error: unknown) => {
    await directory.release();
    throw error;
  });
  await starting;
  await stopped;
} catch (error) {
  send({ kind: "failed", error: recorderErrorData(error) });
}
// An open port would keep the thread alive.
port.close();
