/** A thread of the pool: its default export runs one task. Errors cross threads as data, since Error objects lose their fields on the way. */

import { FileSystemError, isShortage } from "../../../storage/disk/file-system.js";
import { StorageError } from "../../../storage/storage-error.js";
import { lowerThreadPriority } from "../../thread-priority.js";
import { tooLargeText } from "../frame/frame-limits.js";
import { hasWasmKernels, MemoryLimitError } from "../kernel-memory.js";
import { artefactTasks, type TaskInput, type TaskName, type TaskOutput } from "./artefact-tasks.js";
import { moved, threadTask } from "./piscina-threads.js";
import { buffersOf } from "./task-buffers.js";
import { RESOURCE_SHORTAGE } from "./task-failures.js";

export interface TaskErrorData {
  code: string;
  message: string;
}

export interface TaskMessage {
  name: TaskName;
  input: TaskInput<TaskName>;
}

export type TaskAnswer = { value: TaskOutput<TaskName> } | { error: TaskErrorData };

// Tasks compute for hundreds of milliseconds; a read or an acknowledgement must not wait for its share behind them.
lowerThreadPriority(10);
const tasks = artefactTasks();
// Read now: with the first task there may be no descriptor for it.
hasWasmKernels().catch(() => {});

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
  if (error instanceof StorageError) return { code: error.code, message: error.message };
  if (isShortage(error)) return { code: RESOURCE_SHORTAGE, message: error.message };
  if (error instanceof FileSystemError) return { code: "file_system_failed", message: error.message };
  if (error instanceof MemoryLimitError) {
    return { code: "too_large", message: tooLargeText(name, input) ?? error.message };
  }
  if (error instanceof RangeError) return { code: "too_large", message: error.message };
  return { code: "task_failed", message: error instanceof Error ? error.message : String(error) };
}
