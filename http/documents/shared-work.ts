import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { ServiceError } from "../../core/service-errors.js";
import type { ThreadSlices } from "./thread-slices.js";

/**
 * Limit of the work that one `SharedWork` runs and holds, in source bytes: some twenty of the largest documents, ten seconds of work. Each kind of
 * answer has its own: single deliveries and pages of them, for example, have 256 MiB each. A client can fill one by asking for many runs, pages or
 * Hosts. Then others get 503 for this kind for seconds. But most of what they ask for is small or kept, and needs no room here.
 */
const LIMIT_BYTES = 256 * 1024 * 1024;

/** When a refused client may ask again: by then some of the work before it is done. */
const RETRY_AFTER_SECONDS = 2;

/** Lets long work give way to the thread's other work. */
export interface Slices {
  /** What to await before the next piece of work; undefined while there is time left. */
  giveWay(): Promise<void> | undefined;
  /** @throws ServiceError if nobody waits for the result any more */
  throwIfCancelled(): void;
}

interface Waiter {
  take(result: unknown): void;
  fail(error: unknown): void;
  /** Stops listening for the client's departure. */
  stop(): void;
}

interface Work {
  readonly key: string;
  readonly bytes: number;
  make(slices: Slices): Promise<unknown>;
  readonly waiters: Set<Waiter>;
}

/**
 * Makes answers that take long, one after the other, each once for all clients that wait for it. So many clients cost little more memory than
 * one. Work that nobody waits for any more is not begun, or ends at its next slice.
 */
export class SharedWork {
  readonly #slices: ThreadSlices;
  readonly #limitBytes: number;
  readonly #known = new Map<string, Work>();
  /** In order of arrival; the first is running. */
  readonly #queue: Work[] = [];
  #bytes = 0;

  constructor(slices: ThreadSlices, limitBytes = LIMIT_BYTES) {
    this.#slices = slices;
    this.#limitBytes = limitBytes;
  }

  /** Source bytes of the running and waiting work. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * The result of `make` for this key, shared with others who wait for the same key.
   * @param bytes size of the source data
   * @param gone aborted when this client leaves
   * @throws ServiceError `unavailable` if too much work is waiting, or the client is gone
   */
  get<T>(key: string, bytes: number, gone: AbortSignal, make: (slices: Slices) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (gone.aborted) return reject(unwanted());
      const work = this.#known.get(key) ?? this.#add(key, bytes, make);
      if (work === undefined) return reject(tooMuch(this.#bytes));
      const leave = (): void => {
        work.waiters.delete(waiter);
        reject(unwanted());
        if (work.waiters.size === 0) this.#drop(work);
      };
      const waiter: Waiter = {
        take: (result) => resolve(result as T),
        fail: reject,
        stop: () => gone.removeEventListener("abort", leave),
      };
      work.waiters.add(waiter);
      gone.addEventListener("abort", leave, { once: true });
      if (this.#queue[0] === work && work.waiters.size === 1) void this.#runAll();
    });
  }

  /** Undefined if there is no room for it. Work above the limit is accepted if it is the only one. */
  #add(key: string, bytes: number, make: Work["make"]): Work | undefined {
    if (this.#bytes > 0 && this.#bytes + bytes > this.#limitBytes) return undefined;
    const work: Work = { key, bytes, make, waiters: new Set() };
    this.#known.set(key, work);
    this.#queue.push(work);
    this.#bytes += bytes;
    return work;
  }

  /** Later requests for the key start the work again. */
  #drop(work: Work): void {
    if (this.#known.get(work.key) === work) this.#known.delete(work.key);
    const at = this.#queue.indexOf(work);
    // The running work ends at its next slice.
    if (at > 0) this.#remove(at);
  }

  #remove(at: number): void {
    const [removed] = this.#queue.splice(at, 1);
    this.#bytes -= removed?.bytes ?? 0;
  }

  #slicesOf({ waiters }: Work): Slices {
    const throwIfCancelled = (): void => {
      if (waiters.size === 0) throw unwanted();
    };
    const giveWay = () => this.#slices.giveWay()?.then(throwIfCancelled);
    return { throwIfCancelled, giveWay };
  }

  async #runAll(): Promise<void> {
    for (let work = this.#queue[0]; work !== undefined; work = this.#queue[0]) {
      let finish: (waiter: Waiter) => void;
      try {
        const result = await work.make(this.#slicesOf(work));
        finish = (waiter) => waiter.take(result);
      } catch (error) {
        finish = (waiter) => waiter.fail(error);
      }
      if (this.#known.get(work.key) === work) this.#known.delete(work.key);
      this.#remove(0);
      void tellAll(work.waiters, finish);
    }
  }
}

/** One client in each turn of the event loop, because each begins to send a large answer. */
async function tellAll(waiters: Set<Waiter>, finish: (waiter: Waiter) => void): Promise<void> {
  for (const waiter of waiters) {
    waiters.delete(waiter);
    waiter.stop();
    finish(waiter);
    await eventLoopTurn();
  }
}

/** The error for a client that is gone, or whose deadline has passed: only the log shows it. */
export function unwanted(): ServiceError {
  return new ServiceError("unavailable", "nobody waits for the answer any more");
}

function tooMuch(waitingBytes: number): ServiceError {
  return new ServiceError("unavailable", "the service is making too many large answers at the moment", {
    waiting_bytes: waitingBytes,
    retry_after_seconds: RETRY_AFTER_SECONDS,
  });
}
