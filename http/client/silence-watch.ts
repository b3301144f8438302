/** After so long a silence a connection is dead: the service says something every 15 s, and sends files without pauses. */
export const SILENCE_MS = 45_000;

/** Ends one attempt when its connection is silent for too long, or when the caller's own signal says so. Then its timer keeps no process alive. */
export class SilenceWatch {
  readonly #abort = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #silenceMs: number;
  readonly #onAbort = () => this.close();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(caller: AbortSignal | undefined, silenceMs: number = SILENCE_MS) {
    this.#caller = caller;
    this.#silenceMs = silenceMs;
    if (caller?.aborted) this.close();
    else caller?.addEventListener("abort", this.#onAbort, { once: true });
    this.begin();
  }

  /** For the attempt's `fetch`. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Something came, or is waited for from now on. Without effect once the attempt has ended. */
  begin(): void {
    this.pause();
    if (this.signal.aborted) return;
    this.#timer = setTimeout(this.#onAbort, this.#silenceMs);
  }

  /** Nothing is waited for: the caller works with what came. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  /** Ends the attempt. */
  close(): void {
    this.pause();
    this.#caller?.removeEventListener("abort", this.#onAbort);
    this.#abort.abort();
  }
}
