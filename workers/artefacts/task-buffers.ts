import type { TaskName, TaskOutput } from "./artefact-tasks.js";

/** The buffers of a result, which move to whoever waits for it. */
export function buffersOf(value: TaskOutput<TaskName>): ArrayBuffer[] {
  const parts = ArrayBuffer.isView(value) ? [value] : Object.values(value).filter((part) => ArrayBuffer.isView(part));
  return parts.map((part) => (part as Uint8Array<ArrayBuffer>).buffer);
}
