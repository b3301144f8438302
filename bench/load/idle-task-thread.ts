/** A thread of the artefact pool whose tasks do nothing: what is left is what a task costs beside its work. */
import { threadTask } from "../../workers/artefacts/piscina-threads.js";

export default threadTask(async (): Promise<unknown> => ({ value: new Uint8Array(0) }));
