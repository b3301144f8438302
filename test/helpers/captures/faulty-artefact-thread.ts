/** A thread of the artefact pool that does its tasks, but for those at which the fault folder (`FAULTS`) has a file that says otherwise. */
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import runTask, { type TaskAnswer, type TaskMessage } from "../../../workers/artefacts/pool/artefact-thread.js";
import { threadTask } from "../../../workers/artefacts/pool/piscina-threads.js";

const folder = process.env.FAULTS ?? "";

export default threadTask(async (message: TaskMessage): Promise<TaskAnswer> => {
  if (message.name !== "verify") {
    // Renamed: the fault is of one task, and the test sees that it has begun.
    if (takes("crash") || takes(`crash-${message.name}`)) process.exit(3);
    if (takes("hold")) while (!existsSync(join(folder, "go"))) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return runTask({ number: 0, message });
});

function takes(fault: string): boolean {
  for (const nth of [1, 2, 3]) {
    try {
      renameSync(join(folder, `${fault}-${nth}`), join(folder, `${fault}-${nth}-taken`));
      return true;
    } catch {
      // It is not set.
    }
  }
  return false;
}
