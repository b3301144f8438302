import { setMaxListeners } from "node:events";
import { counted } from "../../core/counted.js";
import { LIMITS } from "../../core/limits.js";
import { ServiceError } from "../../core/service-errors.js";
import { SYSTEM_TIMERS, type Timers } from "../../core/timers.js";
import { SentMessages } from "./sent-messages.js";

/** `changes`: a stream of changed runs; `run`: the WebSocket of one run. */
export const LIVE_KINDS = ["changes", "run"] as const;
export type LiveKind = (typeof LIVE_KINDS)[number];

export interface LiveFigures {
  /** Clients that are connected. */
  open: number;
  /** Runs told to clients since the start. */
  sent: number;
}

/** Pause between two wakes: changes that come faster are told together. Well below the 50 ms that a change may take. */
const WAKE_PAUSE_MS = 20;
/** When a refused client may try again: others leave at any time. */
const RETRY_AFTER_SECONDS = 5;
/** Longest silence of a stream. */
const BEAT_MS = 15_000;

export interface LiveClientsOptions {
  /** Most clients at a time, of all kinds together. */
  limit: number;
  /** Timers of the beats; tests pass their own. */
  timers?: Timers;
  /** Default `LIMITS.liveSentBytes`; for tests. */
  sentBytes?: number;
}

/** The clients that follow changes. All wait here; when the view has changed, all are woken, and each asks the view itself. */
export class LiveClients {
  readonly figures: Readonly<Record<LiveKind, LiveFigures>> = {
    changes: { open: 0, sent: 0 },
    run: { open: 0, sent: 0 },
  };
  /** Counts the wakes: a client that has seen everything of one waits for the next. */
  wakes = 0;
  /** Counts the beats. */
  beats = 0;
  readonly sent: SentMessages;
  readonly #limit: number;
  readonly #timers: Timers;
  readonly #clients = new Set<LiveClient>();
  readonly #cut = new AbortController();
  #wakeTimer: NodeJS.Timeout | undefined;
  #beatTimer: unknown;
  #lastWakeMs = Number.NEGATIVE_INFINITY;

  constructor({ limit, timers = SYSTEM_TIMERS, sentBytes = LIMITS.liveSentBytes }: LiveClientsOptions) {
    this.sent = new SentMessages(sentBytes);
    this.#limit = limit;
    this.#timers = timers;
    // Each client listens.
    setMaxListeners(0, this.#cut.signal);
  }

  /** Aborted when all clients must go. */
  get cut(): AbortSignal {
    return this.#cut.signal;
  }

  /** @throws ServiceError unavailable, if there are too many clients, or the service stops */
  admit(kind: LiveKind): LiveClient {
    if (this.#clients.size >= this.#limit || this.#cut.signal.aborted) {
      const verb = this.#limit === 1 ? "follows" : "follow";
      const message = this.#cut.signal.aborted
        ? "the service is stopping"
        : `${counted(this.#limit, "client")} already ${verb} changes, the most that --live-streams allows`;
      throw new ServiceError("unavailable", message, { retry_after_seconds: RETRY_AFTER_SECONDS });
    }
    const client = new LiveClient(this, this.figures[kind], () => this.#remove(client));
    this.#clients.add(client);
    if (this.#beatTimer === undefined) this.#beatLater();
    return client;
  }

  /** Call it whenever the view has changed. */
  viewChanged(): void {
    if (this.#clients.size === 0 || this.#wakeTimer !== undefined) return;
    const pauseMs = this.#lastWakeMs + WAKE_PAUSE_MS - performance.now();
    if (pauseMs <= 0) this.#wake();
    else this.#wakeTimer = setTimeout(() => this.#wake(), pauseMs);
  }

  /** All clients must connect anew, since what they were admitted for may have changed. */
  endAll(): void {
    for (const client of [...this.#clients]) client.end();
  }

  /** All clients must go, and no further one is admitted. */
  close(): void {
    this.#cut.abort();
    this.endAll();
    clearTimeout(this.#wakeTimer);
  }

  #wake(): void {
    this.#wakeTimer = undefined;
    this.#lastWakeMs = performance.now();
    this.wakes++;
    for (const client of this.#clients) client.wake();
  }

  #beatLater(): void {
    this.#beatTimer = this.#timers.set(() => {
      this.beats++;
      for (const client of this.#clients) client.wake();
      this.#beatLater();
    }, BEAT_MS);
  }

  #remove(client: LiveClient): void {
    this.#clients.delete(client);
    if (this.#clients.size > 0) return;
    this.#timers.clear(this.#beatTimer);
    this.#beatTimer = undefined;
  }
}

/** One client that follows changes. */
export class LiveClient {
  readonly all: LiveClients;
  readonly #figures: LiveFigures;
  readonly #remove: () => void;
  readonly #gone = new AbortController();
  #resume: (() => void) | undefined;

  constructor(all: LiveClients, figures: LiveFigures, remove: () => void) {
    this.all = all;
    this.#figures = figures;
    this.#remove = remove;
    figures.open++;
  }

  get hasEnded(): boolean {
    return this.#gone.signal.aborted;
  }

  /** Aborted when it has ended. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Resolves at the next wake or beat, when it ends, or when the time is over. */
  wait(timeMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = timeMs === undefined ? undefined : setTimeout(() => this.wake(), timeMs);
      this.#resume = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  wake(): void {
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }

  countSent(runs: number): void {
    this.#figures.sent += runs;
  }

  end(): void {
    if (this.hasEnded) return;
    this.#gone.abort();
    this.#figures.open--;
    this.#remove();
    this.wake();
  }
}
