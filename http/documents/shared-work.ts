import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { ServiceError } from "../../core/service-errors.js";
import type { ThreadSlices } from "./thread-slices.js";

/** What is under way and waits, by the bytes of what it is made from: some twenty of the largest documents, which take ten seconds. */
const LIMIT_BYTES = 256 * 1024 * 1024;

/** When a refused client may ask again: by then some of those before have had theirs. */
export const RETRY_AFTER_SECONDS = 2;

/** Long work, in slices with everything else of the thread. */
export interface Slices {
  /** What to wait for before the next piece of work; undefined while the turn is not over. */
  giveWay(): Promise<void> | undefined;
  /** Ends the work when nobody waits for its result any more. @throws ServiceError */
  throwIfCancelled(): void;
}

interface Waiter {
  take(result: unknown): void;
  fail(error: unknown): void;
  /** It does not listen for its client's leaving any more. */
  stop(): void;
}

interface Work {
  readonly key: string;
  readonly bytes: number;
  make(slices: Slices): Promise<unknown>;
  readonly waiters: Set<Waiter>;
}

/**
 * Answers that take long to make: each is made once for all who ask meanwhile, one after the other, so that what many clients ask for together
 * costs little more memory than one of them. Work for which nobody waits any more is not begun, or ends at its next turn.
 */
export class SharedWork {
  readonly #slices: ThreadSlices;
  readonly #limitBytes: number;
  readonly #known = new Map<string, Work>();
  /** In the order they came; the first is under way. */
  readonly #queue: Work[] = [];
  #bytes = 0;

  constructor(slices: ThreadSlices, limitBytes = LIMIT_BYTES) {
    this.#slices = slices;
    this.#limitBytes = limitBytes;
  }

  /** Of what is under way and waits. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * What `make` gives for this key, or gives already to others.
   * @param bytes of what it is made from
   * @param gone of the client that waits
   * @throws ServiceError `unavailable` when too much waits already, or the client is gone
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

  /** Undefined when there is no room for it; one that is larger than the bound is let in alone. */
  #add(key: string, bytes: number, make: Work["make"]): Work | undefined {
    if (this.#bytes > 0 && this.#bytes + bytes > this.#limitBytes) return undefined;
    const work: Work = { key, bytes, make, waiters: new Set() };
    this.#known.set(key, work);
    this.#queue.push(work);
    this.#bytes += bytes;
    return work;
  }

  /** Whoever asks for it from now on starts anew. */
  #drop(work: Work): void {
    if (this.#known.get(work.key) === work) this.#known.delete(work.key);
    const at = this.#queue.indexOf(work);
    // The first ends at its next turn.
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

/** One in a turn of the event loop: each then begins to send a large answer. */
async function tellAll(waiters: Set<Waiter>, finish: (waiter: Waiter) => void): Promise<void> {
  for (const waiter of waiters) {
    waiters.delete(waiter);
    waiter.stop();
    finish(waiter);
    await eventLoopTurn();
  }
}

/** For an answer whose client is gone, or has been told that it comes too late: seen by nobody but the log. */
export function unwanted(): ServiceError {
  return new ServiceError("unavailable", "nobody waits for the answer any more");
}

function tooMuch(waitingBytes: number): ServiceError {
  return new ServiceError("unavailable", "too many large answers are being made", {
    waiting_bytes: waitingBytes,
    retry_after_seconds: RETRY_AFTER_SECONDS,
  });
}
