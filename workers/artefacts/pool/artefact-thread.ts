/** A thread of the pool. Its default export runs one task. Errors cross threads as data, since Error objects lose their fields on the way. */

import { lowerThreadPriority } from "../../thread-priority.js";
import { tooLargeText } from "../frame/frame-limits.js";
import { loadKernels, MemoryLimitError } from "../kernel-memory.js";
import { artefactTasks, type TaskInput, type TaskName, type TaskOutput } from "./artefact-tasks.js";
import { moved, threadTask } from "./piscina-threads.js";
import { buffersOf } from "./task-buffers.js";
import { type TaskErrorData, taskFailure } from "./task-failures.js";

export interface TaskMessage {
  name: TaskName;
  input: TaskInput<TaskName>;
}

export type TaskAnswer = { value: TaskOutput<TaskName> } | { error: TaskErrorData };

// Tasks compute for hundreds of milliseconds, and neither a read nor an acknowledgement should wait for a core behind them.
lowerThreadPriority(10);
const tasks = artefactTasks();
// The kernels' file is read now: later there may be no descriptor for it.
loadKernels().catch(() => {});

export default threadTask(async ({ name, input }: TaskMessage): Promise<TaskAnswer> => {
  try {
    const run = tasks[name] as (input: unknown) => Promise<TaskOutput<TaskName>>;
    const value = await run(input);
    return moved({ value }, buffersOf(value));
  } catch (error) {
    return { error: errorData(error, { name, input }) };
  }
});

function errorData(error: unknown, { name, input }: TaskMessage): TaskErrorData {
  if (error instanceof MemoryLimitError) {
    return { code: "too_large", message: tooLargeText(name, input) ?? error.message };
  }
  return taskFailure(error);
}
