import { parentPort, workerData } from "node:worker_threads";
import type { MadeFrame } from "../../../test/helpers/captures/made-frames.js";
import { filterAlone, type HelperAnswer, type HelperTask, load, takeTurns } from "./grid-filter.js";

const loaded = await load(workerData as MadeFrame);
const answer = (value: HelperAnswer): void => parentPort?.postMessage(value);

parentPort?.on("message", async (task: HelperTask) => {
  if (task.kind === "apart") answer({ end: null, alone: filterAlone(loaded) });
  else answer({ end: await takeTurns({ ...task.team, member: 1 }), alone: null });
});
// It has loaded the frame.
answer({ end: null, alone: null });
