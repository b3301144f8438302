/**
 * For `node --import`, of a service: its dispatcher thread ends with an error once the file is there that TEST_END_DISPATCHER names.
 */
import { existsSync } from "node:fs";
import { workerData } from "node:worker_threads";

const file = process.env.TEST_END_DISPATCHER;
if (file === undefined) throw new Error("TEST_END_DISPATCHER names no file");
// Only the dispatcher's thread has `extraCa` at the top of its data.
if (workerData?.extraCa !== undefined) {
  setInterval(() => {
    if (existsSync(file)) throw new Error("ended by the test");
  }, 20).unref();
}
