/** A thread of the pool. Its default export runs one task. Errors cross threads as data, since Error objects lose their fields on the way. */

import { lowerThreadPriority } from "../../thread-priority.js";
import { loadKernels, MemoryLimitError } from "../kernel-memory.js";
import { artefactTasks, type TaskInput, type TaskName, type TaskOutput } from "./artefact-tasks.js";
import { moved, threadTask } from "./piscina-threads.js";
import { buffersOf } from "./task-buffers.js";
import { type TaskErrorData, taskFailure } from "./task-failures.js";

export interface TaskMessage {
  name: TaskName;
  input: TaskInput<TaskName>;
  /** Memory that the task may use for its answer. It moves to the thread. */
  room?: ArrayBuffer;
}

export type TaskAnswer = { value: TaskOutput<TaskName> } | { error: TaskErrorData };

// Tasks compute for hundreds of milliseconds. Reads and acknowledgements must not wait for a core that a task uses.
lowerThreadPriority(10);
const tasks = artefactTasks();
// The kernels' file is read now: later there may be no descriptor for it.
loadKernels().catch(() => {});

export default threadTask(async (message: TaskMessage): Promise<TaskAnswer> => {
  try {
    const run = tasks[message.name] as (input: unknown, room?: ArrayBuffer) => Promise<TaskOutput<TaskName>>;
    const value = await run(message.input, message.room);
    return moved({ value }, buffersOf(value));
  } catch (error) {
    return { error: errorData(error, message) };
  }
});

function errorData(error: unknown, { input }: TaskMessage): TaskErrorData {
  if (error instanceof MemoryLimitError && "geometry" in input) {
    const { width, lines } = input.geometry;
    return { code: "too_large", message: `the frame's ${width} x ${lines} positions do not fit into 2 GiB of memory` };
  }
  return taskFailure(error);
}
