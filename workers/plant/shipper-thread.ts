import { parentPort, workerData } from "node:worker_threads";
import { pathsIn } from "../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { CaptureShipper } from "./capture-shipper.js";
import { LogTail } from "./log-tail.js";
import { PlantClient } from "./plant-client.js";
import { readRestoredNote } from "./restore/restored-note.js";
import { Shipper } from "./shipper.js";
import type { ShipperThreadData } from "./shipper-handle.js";

/** How often it is looked whether somebody has acknowledged that the store was restored. */
const NOTE_MS = 1_000;

const { path, cell, storeId, address, captures, rateBytes, publicUrl, committed } = workerData as ShipperThreadData;
const port = parentPort;
if (port === null) throw new Error("this file is the start of a thread");

const { metaPath, capturesPath } = pathsIn(path);
let restored = await readRestoredNote(nodeFileSystem, path);
/** Until somebody acknowledges it. */
const noteTimer = setInterval(async () => {
  restored = await readRestoredNote(nodeFileSystem, path).catch(() => restored);
  if (restored === null) clearInterval(noteTimer);
}, NOTE_MS);
noteTimer.unref();

const newTail = () => new LogTail({ fileSystem: nodeFileSystem, directory: metaPath });
const captureShipper = new CaptureShipper({
  ...{ cell, storeId, policy: captures, rateBytes, capturesPath },
  ...{ fileSystem: nodeFileSystem, tail: newTail() },
});
const shipper = new Shipper({
  cell,
  storeId,
  tail: newTail(),
  ...(captures !== "none" && { captures: captureShipper }),
  publicUrl,
  committedSequence: () => committed[0] ?? 0,
  restoredNote: () => restored,
  connect: () => PlantClient.connect(address),
  onStatus: (status) => port.postMessage(status),
});
port.once("message", () => shipper.stop());
await shipper.run();
port.close();
