import { SharedWork } from "../../../http/documents/shared-work.js";
import { ThreadSlices } from "../../../http/documents/thread-slices.js";
import type { HandlerRequest } from "../../../http/requests/route.js";

/** A client that waits for its answer, however long. */
export const PATIENT: Pick<HandlerRequest, "gone"> = { gone: () => new AbortController().signal };

/** In which large answers are made. */
export function newWork(limitBytes?: number): { work: SharedWork; slices: ThreadSlices } {
  const slices = new ThreadSlices();
  return { work: new SharedWork(slices, limitBytes), slices };
}
