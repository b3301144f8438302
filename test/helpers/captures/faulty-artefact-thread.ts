/** A thread of the artefact pool that does its tasks, but for those at which the fault folder (`FAULTS`) has a file that says otherwise. */
import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { FilterStages } from "../../../workers/artefacts/filter/filter-parts.js";
import runTask, { type TaskAnswer, type TaskMessage } from "../../../workers/artefacts/pool/artefact-thread.js";
import { threadTask } from "../../../workers/artefacts/pool/piscina-threads.js";

const folder = process.env.FAULTS ?? "";

export default threadTask(async (message: TaskMessage): Promise<TaskAnswer> => {
  if (message.name !== "verify") {
    // Renamed: the fault is of one task, and the test sees that it has begun.
    if (takes("crash") || takes(`crash-${message.name}`)) process.exit(3);
    if (takes("spin")) for (;;);
    if (takes("hold")) while (!existsSync(join(folder, "go"))) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return runTask({ number: 0, message });
});

const { run, next } = FilterStages.prototype;

/** While a part of that stage is under way, or when all of them are done. */
FilterStages.prototype.run = async function (stage, piece) {
  if (takes(`crash-at-${stage.kind}`)) process.exit(3);
  if (takes(`spin-at-${stage.kind}`)) for (;;);
  // Two of them: the one who takes the first waits for another thread, since it begins no second part meanwhile.
  const meeting = `meet-at-${stage.kind}`;
  if (takes(meeting)) while (!isTaken(`${meeting}-2`)) await new Promise((resolve) => setTimeout(resolve, 5));
  await run.call(this, stage, piece);
};

FilterStages.prototype.next = function (stage) {
  if (takes(`crash-after-${stage.kind}`)) process.exit(3);
  const following = next.call(this, stage);
  if (!("alone" in following) || !takes("crash-alone")) return following;
  return { alone: () => process.exit(3) };
};

function isTaken(name: string): boolean {
  return existsSync(join(folder, `${name}-taken`));
}

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
