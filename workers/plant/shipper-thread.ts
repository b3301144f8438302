import { parentPort, workerData } from "node:worker_threads";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { LogTail } from "./log-tail.js";
import { PlantClient } from "./plant-client.js";
import { Shipper } from "./shipper.js";
import type { ShipperThreadOptions } from "./shipper-handle.js";

const { metaPath, cell, storeId, address } = workerData as ShipperThreadOptions;
const port = parentPort;
if (port === null) throw new Error("this file is the start of a thread");

const shipper = new Shipper({
  cell,
  storeId,
  tail: new LogTail({ fileSystem: nodeFileSystem, directory: metaPath }),
  connect: () => PlantClient.connect(address),
  onStatus: (status) => port.postMessage(status),
});
port.once("message", () => shipper.stop());
await shipper.run();
port.close();
