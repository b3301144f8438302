/** A thread of the artefact pool that does its tasks, but for `verify`: that one answers how many bytes the thread still has of those it answered last. */
import runTask, { type TaskMessage } from "../../../workers/artefacts/pool/artefact-thread.js";
import { threadTask } from "../../../workers/artefacts/pool/piscina-threads.js";
import { plainBuffersIn } from "../plain-buffers.js";

let sent: ArrayBuffer[] = [];

export default threadTask(async (message: TaskMessage): Promise<unknown> => {
  if (message.name === "verify") {
    return { value: { verifiedBytes: sent.reduce((sum, { byteLength }) => sum + byteLength, 0) } };
  }
  const answer = await runTask({ number: 0, message });
  sent = plainBuffersIn(answer);
  return answer;
});
