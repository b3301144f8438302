import { parentPort, workerData } from "node:worker_threads";
import type { MadeFrame } from "../../test/helpers/made-frames.js";
import { filterAlone, type HelperAnswer, type HelperTask, load, takeTurns } from "./grid-filter.js";

const loaded = await load(workerData as MadeFrame);
const answer = (value: HelperAnswer): void => parentPort?.postMessage(value);

parentPort?.on("message", async (task: HelperTask) => {
  if (task.kind === "member") return answer({ end: await takeTurns({ ...task.team, member: 1 }) });
  filterAlone(loaded);
  answer({ end: null });
});
answer({ end: null });
