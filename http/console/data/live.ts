/** The one stream of changes that all pages share: it reconnects from its mark, and tells what state it is in. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { followRuns } from "../../client/follow-runs.js";
import { ServiceRequestError } from "../../client/service-request-error.js";
import { ask, type RunSummary } from "./api.js";

/** `lost`: it connects again by itself. If the service wants a key, it waits for the key. */
type LiveState = "connecting" | "live" | "lost";

export const liveState = signal<LiveState>("connecting");

interface LiveListener {
  /** A run is new or has changed. */
  onRun(run: RunSummary): void;
  /** Changes may have been missed: read anew. */
  onReset(): void;
}

const listeners = new Set<LiveListener>();

let connection: AbortController | undefined;

/** Everything up to here was told. Undefined: what was read before the stream opens may be old. */
let mark: string | undefined;

/** Pause after a refusal that looks permanent. It may come from a proxy, and pass. */
const REFUSED_MS = 10_000;

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
  mark = undefined;
  // A browser allows few connections to a service, and its tabs share them. So a hidden page closes its stream.
  document.addEventListener("visibilitychange", follow);
  follow();
}

/** Goes on from the mark while the page can be seen. */
function follow(): void {
  connection?.abort();
  liveState.value = "connecting";
  if (document.hidden) return;
  connection = new AbortController();
  void followUntil(connection.signal);
}

function resetAll(): void {
  for (const listener of listeners) listener.onReset();
}

async function followUntil(signal: AbortSignal): Promise<void> {
  const onBreak = (): void => {
    if (!signal.aborted) liveState.value = "lost";
  };
  try {
    for await (const event of followRuns({ baseUrl: "", headers: {}, fetch: ask }, { signal, onBreak, since: mark })) {
      // Events that have arrived may still come out after the end.
      if (signal.aborted) return;
      if (event.type === "run") for (const listener of listeners) listener.onRun(event.run);
      // What was listed before the first mark may have changed since.
      else if (event.type === "reset" || mark === undefined) resetAll();
      mark = event.mark;
      liveState.value = "live";
    }
  } catch (error) {
    if (signal.aborted) return;
    liveState.value = "lost";
    // Perhaps the service refuses the mark.
    mark = undefined;
    // The prompt for the key connects anew.
    if (error instanceof ServiceRequestError && error.status === 401) return;
    setTimeout(() => !signal.aborted && void followUntil(signal), REFUSED_MS);
  }
}
