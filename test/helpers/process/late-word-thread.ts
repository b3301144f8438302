/** A thread that tells once more that the task before has begun, then that this one has, and answers its id when its file is there. */
import { existsSync } from "node:fs";
import { parentPort, threadId } from "node:worker_threads";
import type { NumberedTask } from "../../../workers/artefacts/pool/piscina-threads.js";

export default async function run({ number, message }: NumberedTask): Promise<number> {
  parentPort?.postMessage(number - 1);
  parentPort?.postMessage(number);
  while (!existsSync(message as string)) await new Promise((resolve) => setTimeout(resolve, 5));
  return threadId;
}
