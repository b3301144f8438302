/** A bare thread that answers every message with an empty one. */
import { parentPort } from "node:worker_threads";

parentPort?.on("message", () => parentPort?.postMessage(null));
