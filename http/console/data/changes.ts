/** `GET /runs/changes` as an async iterator: the changes of runs as they happen. */
import { ApiError, apiFetch, type RunSummary } from "./api.js";

export type Change =
  | { kind: "ready" }
  | { kind: "run"; run: RunSummary }
  /** The service's store has nothing as late as our mark: list anew. */
  | { kind: "reset" };

interface ServerEvent {
  event: string;
  id: string;
  data: string;
}

/** The service sends a comment every 15 s. After this time without a byte the connection counts as lost. */
const SILENCE_MS = 40_000;

/**
 * One connection: it ends when the service ends it.
 * @param mark id of the last event; undefined: from now on
 * @throws ApiError if the service refuses it or is not there; DOMException when `signal` aborts it
 */
export async function* changes(
  mark: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<{ mark: string; change: Change }> {
  const silence = new AbortController();
  let timer = 0;
  const heard = (): void => {
    clearTimeout(timer);
    timer = window.setTimeout(() => silence.abort(), SILENCE_MS);
  };
  heard();
  try {
    const headers = { Accept: "text/event-stream", ...(mark !== undefined && { "Last-Event-ID": mark }) };
    const response = await apiFetch("/runs/changes", { headers, signal: AbortSignal.any([signal, silence.signal]) });
    if (response.body === null) return;
    for await (const { event, id, data } of serverEvents(response.body, heard)) {
      if (event === "ready") yield { mark: id, change: { kind: "ready" } };
      else if (event === "run") yield { mark: id, change: { kind: "run", run: JSON.parse(data) as RunSummary } };
      else if (event === "reset") yield { mark: id, change: { kind: "reset" } };
    }
  } catch (error) {
    // A connection that breaks while it is read is a TypeError.
    if (signal.aborted || error instanceof ApiError) throw error;
    throw new ApiError(0, "unreachable", "The connection was lost.");
  } finally {
    clearTimeout(timer);
  }
}

/** Server-Sent Events of a body. Comments and unknown fields are passed over. */
async function* serverEvents(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let text = "";
  let lastId = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      text += value;
      const blocks = text.split(/\r?\n\r?\n/);
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseEvent(block, lastId);
        lastId = event.id;
        if (event.data !== "") yield event;
      }
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

function parseEvent(block: string, lastId: string): ServerEvent {
  const event: ServerEvent = { event: "message", id: lastId, data: "" };
  for (const line of block.split(/\r?\n/)) {
    const match = /^(event|id|data): ?(.*)$/.exec(line);
    if (match === null) continue;
    const [, field, value = ""] = match;
    if (field === "data") event.data += (event.data === "" ? "" : "\n") + value;
    else event[field as "event" | "id"] = value;
  }
  return event;
}
