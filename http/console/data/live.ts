/** The one stream of changes that all pages share: it reconnects from its mark, and tells what state it is in. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiError, type RunSummary } from "./api.js";
import { changes } from "./changes.js";
import { isKeyWanted } from "./session.js";

/** `lost`: it tries again by itself. `polling`: this service has no stream, so the pages ask every few seconds. */
export type LiveState = "connecting" | "live" | "lost" | "polling";

export const liveState = signal<LiveState>("connecting");

export interface LiveListener {
  /** A run is new or has changed. */
  onRun(run: RunSummary): void;
  /** Changes may have been missed: read anew. */
  onReset(): void;
}

const listeners = new Set<LiveListener>();
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;
const POLL_MS = 5_000;

let connection: AbortController | undefined;

/** Calls the listener while the component is there. Its functions may change from one drawing to the next. */
export function useLive(listener: LiveListener): void {
  const current = useCurrent(listener);
  useEffect(() => {
    const own: LiveListener = {
      onRun: (run) => current.listener.onRun(run),
      onReset: () => current.listener.onReset(),
    };
    listeners.add(own);
    return () => void listeners.delete(own);
  }, [current]);
}

function useCurrent(listener: LiveListener): { listener: LiveListener } {
  const { current } = useRef({ listener });
  current.listener = listener;
  return current;
}

/** Starts the stream, or starts it anew with another key. */
export function connectLive(): void {
  connection?.abort();
  connection = new AbortController();
  void stayConnected(connection.signal);
}

function resetAll(): void {
  for (const listener of listeners) listener.onReset();
}

async function stayConnected(signal: AbortSignal): Promise<void> {
  let mark: string | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      for await (const { mark: next, change } of changes(mark, signal)) {
        const isFirst = mark === undefined;
        mark = next;
        pauseMs = FIRST_PAUSE_MS;
        if (change.kind === "run") for (const listener of listeners) listener.onRun(change.run);
        // What was listed before the first mark may have changed since.
        else if (change.kind === "reset" || isFirst) resetAll();
        liveState.value = "live";
      }
      liveState.value = "lost";
    } catch (error) {
      if (signal.aborted) return;
      const { status } = error instanceof ApiError ? error : { status: 0 };
      if (status === 401) {
        // The prompt for the key connects anew.
        liveState.value = "lost";
        return;
      }
      if (status === 404) {
        liveState.value = "polling";
        return poll(signal);
      }
      liveState.value = "lost";
    }
    await pause(pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

async function poll(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(POLL_MS, signal);
    if (!signal.aborted && !isKeyWanted.value && document.visibilityState === "visible") resetAll();
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
