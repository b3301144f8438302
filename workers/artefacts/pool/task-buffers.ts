import type { TaskName, TaskOutput } from "./artefact-tasks.js";

/** The buffers of a result that move to the thread that waits for it. Shared memory is not among them. */
export function buffersOf(value: TaskOutput<TaskName>): ArrayBuffer[] {
  const parts = ArrayBuffer.isView(value) ? [value] : Object.values(value).filter((part) => ArrayBuffer.isView(part));
  return parts.map(({ buffer }) => buffer).filter((buffer) => buffer instanceof ArrayBuffer);
}
