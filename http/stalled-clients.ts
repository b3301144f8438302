/** One client that an answer waits for. */
export interface WaitingClient {
  /** Offers what waits once more. @returns how many bytes of the answer have been taken so far */
  offer(): number;
  /** Ends the connection. */
  cut(): void;
}

export interface StalledClientsOptions {
  /** How long a client may take nothing. */
  stallMs: number;
  /** Between two offers to a client. */
  offerMs: number;
}

interface Progress {
  takenBytes: number;
  sinceMs: number;
}

/**
 * Cuts clients that take nothing of their answers for too long, and only those: one that reads slowly but steadily goes on, however
 * long it takes.
 */
export class StalledClients {
  readonly #options: StalledClientsOptions;
  readonly #waiting = new Map<WaitingClient, Progress>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: StalledClientsOptions) {
    this.#options = options;
  }

  /** @param takenBytes of the answer so far */
  add(client: WaitingClient, takenBytes: number): void {
    this.#waiting.set(client, { takenBytes, sinceMs: performance.now() });
    this.#timer ??= setInterval(() => this.#look(), this.#options.offerMs);
  }

  remove(client: WaitingClient): void {
    if (!this.#waiting.delete(client) || this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const nowMs = performance.now();
    for (const [client, progress] of this.#waiting) {
      const takenBytes = client.offer();
      if (!this.#waiting.has(client)) continue;
      if (takenBytes > progress.takenBytes) {
        progress.takenBytes = takenBytes;
        progress.sinceMs = nowMs;
      } else if (nowMs - progress.sinceMs >= this.#options.stallMs) {
        this.remove(client);
        client.cut();
      }
    }
  }
}
