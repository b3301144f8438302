import type { StorageError } from "../storage-error.js";

interface Waiter {
  sequence: number;
  resolve: () => void;
  reject: (error: StorageError) => void;
}

/** Promises that resolve when a record is committed. */
export class CommitWaiters {
  /** In order of their sequence numbers. */
  #waiters: Waiter[] = [];

  /** Resolves when the record is committed. */
  wait(sequence: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiters = this.#waiters;
      let at = waiters.length;
      while (at > 0 && (waiters[at - 1]?.sequence ?? 0) > sequence) at--;
      const waiter = { sequence, resolve, reject };
      if (at === waiters.length) waiters.push(waiter);
      else waiters.splice(at, 0, waiter);
    });
  }

  /** Every record up to this one is committed. */
  resolve(committedSequence: number): void {
    const waiters = this.#waiters;
    let count = 0;
    while (count < waiters.length && (waiters[count]?.sequence ?? 0) <= committedSequence) count++;
    if (count === 0) return;
    this.#waiters = waiters.slice(count);
    for (let at = 0; at < count; at++) waiters[at]?.resolve();
  }

  /** Nothing more is committed. @param makeError makes an error for each waiter */
  rejectAll(makeError: () => StorageError): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(makeError());
  }
}
