import { SharedWork } from "../../../http/documents/shared-work.js";
import { ThreadTurns } from "../../../http/documents/thread-turns.js";
import type { HandlerRequest } from "../../../http/requests/route.js";

/** A client that waits for its answer, however long. */
export const PATIENT: Pick<HandlerRequest, "gone"> = { gone: () => new AbortController().signal };

/** In which large answers are made. */
export function newWork(limitBytes?: number): { work: SharedWork; turns: ThreadTurns } {
  const turns = new ThreadTurns();
  return { work: new SharedWork(turns, limitBytes), turns };
}
