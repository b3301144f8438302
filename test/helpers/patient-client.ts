import type { HandlerRequest } from "../../http/route.js";
import { SharedWork } from "../../http/shared-work.js";
import { ThreadTurns } from "../../http/thread-turns.js";

/** A client that waits for its answer, however long. */
export const PATIENT: Pick<HandlerRequest, "gone"> = { gone: () => new AbortController().signal };

/** In which large answers are made. */
export function newWork(limitBytes?: number): { work: SharedWork; turns: ThreadTurns } {
  const turns = new ThreadTurns();
  return { work: new SharedWork(turns, limitBytes), turns };
}
