import { LargeDocuments } from "../../../http/documents/large-documents.js";
import { RunDocuments } from "../../../http/documents/run-documents.js";
import { RunPages } from "../../../http/documents/run-pages.js";
import { SharedWork } from "../../../http/documents/shared-work.js";
import { ThreadSlices } from "../../../http/documents/thread-slices.js";
import { createServiceLog } from "../../../http/log/service-log.js";
import { RequestHeaders } from "../../../http/requests/request-headers.js";
import { RequestPipeline } from "../../../http/requests/request-pipeline.js";
import { runRoutes } from "../../../http/routes/run-routes.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { View } from "../../../storage/view/view.js";
import { readStore } from "../read-store.js";
import { logPath, type RunStore } from "../run-store.js";
import type { ListQuery } from "./list-queries.js";

/** Lists have no use for it. */
const DOCUMENT_CACHE_BYTES = 1024 * 1024;
/** Room for no page: what is measured here is how one is found and made. */
const PAGE_CACHE_BYTES = 1;
const HOST = "127.0.0.1:8000";

/** The front of the service without its server: a view of a store, and all that a request passes. */
export interface ListFront {
  view: View;
  /** The response's bytes, from the request line on: routing, parameters, view, JSON. */
  list(query: ListQuery): Promise<Uint8Array>;
  close(): void;
}

/** Fronts over one reading of a store, for each number of bytes that its cache of list entries may have (undefined: as shipped). */
export async function openListFronts(
  store: RunStore,
  summaryCacheBytes: readonly (number | undefined)[],
): Promise<ListFront[]> {
  const readers = summaryCacheBytes.map(() => new LogReader({ fileSystem: nodeFileSystem, directory: logPath(store) }));
  const views = summaryCacheBytes.map((bytes, at) => {
    const reader = readers[at] as LogReader;
    return new View({ reader, ...(bytes !== undefined && { summaryCacheBytes: bytes }) });
  });
  await readStore(store.path, (batch) => {
    for (const view of views) view.applyBatch(batch);
  });
  return views.map((view, at) => {
    view.finishOpening();
    const turns = new ThreadSlices();
    const work = new SharedWork(turns);
    const large = new LargeDocuments({ view, work, keptBytes: 1, keptRunBytes: 1, onStrayError() {} });
    const documents = new RunDocuments(view, DOCUMENT_CACHE_BYTES, large);
    const pipeline = new RequestPipeline({
      routes: runRoutes(view, documents, large, new RunPages(view, PAGE_CACHE_BYTES, turns)),
      baseUrl: undefined,
      log: createServiceLog("silent", "bench"),
    });
    const headers = new RequestHeaders();
    headers.add("host", HOST);
    return {
      view,
      async list({ text }) {
        const readBody = () => Promise.resolve(undefined);
        const client = { isAborted: () => false, remoteAddress: () => "", whenAborted() {}, readBody };
        const notes = { startedMs: 0, route: undefined, handled: undefined, furtherHeaders: undefined };
        const request = { method: "GET", path: "/runs", query: text, headers, ...client, ...notes };
        const { status, body } = await pipeline.handle(request, "bench");
        if (status !== 200 || !(body instanceof Uint8Array)) throw new Error(`/runs?${text} answered ${status}`);
        return body;
      },
      close: () => (readers[at] as LogReader).close(),
    };
  });
}

/** What links in the answers start with. */
export const LIST_BASE_URL = `http://${HOST}`;
