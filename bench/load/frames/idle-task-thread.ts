/**
 * A thread of the artefact pool whose tasks do nothing: what is left is what a task costs beside its work. With a number as `path` they answer that
 * many bytes and how long it took to get them.
 */
import type { TaskMessage } from "../../../workers/artefacts/pool/artefact-thread.js";
import { moved, threadTask } from "../../../workers/artefacts/pool/piscina-threads.js";
import { buffersOf } from "../../../workers/artefacts/pool/task-buffers.js";

export interface IdleAnswer {
  bytes: Uint8Array;
  workMs: number;
}

export default threadTask(async ({ input }: TaskMessage): Promise<unknown> => {
  const startMs = performance.now();
  const bytes = Buffer.allocUnsafeSlow(Number((input as { path: string }).path));
  const value = { bytes, workMs: performance.now() - startMs };
  return moved({ value }, buffersOf(value as unknown as Parameters<typeof buffersOf>[0]));
});
