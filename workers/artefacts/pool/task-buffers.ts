import type { TaskName, TaskOutput } from "./artefact-tasks.js";

/** The buffers of a result, which move to whoever waits for it. Memory that threads share stays where it is. */
export function buffersOf(value: TaskOutput<TaskName>): ArrayBuffer[] {
  const parts = ArrayBuffer.isView(value) ? [value] : Object.values(value).filter((part) => ArrayBuffer.isView(part));
  return parts.map(({ buffer }) => buffer).filter((buffer) => buffer instanceof ArrayBuffer);
}
