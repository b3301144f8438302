import { LIMITS } from "../../../core/limits.js";
import type { Timers } from "../../../core/timers.js";

interface Failures {
  /** Wrong tokens in the present time span. */
  count: number;
  isSlowed: boolean;
  timer: unknown;
}

/** Counts wrong tokens by address, and slows addresses that guess too often. */
export class TokenFailures {
  readonly #timers: Timers;
  readonly #byAddress = new Map<string, Failures>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** True while connections from this address must wait before they are read. */
  isSlowed(address: string): boolean {
    return this.#byAddress.get(address)?.isSlowed ?? false;
  }

  failed(address: string): void {
    let failures = this.#byAddress.get(address);
    if (failures === undefined) {
      failures = { count: 0, isSlowed: false, timer: null };
      this.#add(address, failures);
    }
    failures.count++;
    if (failures.count >= LIMITS.linkWrongTokens.free) failures.isSlowed = true;
  }

  stop(): void {
    for (const { timer } of this.#byAddress.values()) this.#timers.clear(timer);
    this.#byAddress.clear();
  }

  #add(address: string, failures: Failures): void {
    for (const [oldest, { timer }] of this.#byAddress) {
      if (this.#byAddress.size < LIMITS.linkWrongTokens.addresses) break;
      this.#timers.clear(timer);
      this.#byAddress.delete(oldest);
    }
    this.#byAddress.set(address, failures);
    this.#spanLater(address, failures);
  }

  #spanLater(address: string, failures: Failures): void {
    failures.timer = this.#timers.set(() => {
      if (failures.count === 0) {
        this.#byAddress.delete(address);
        return;
      }
      failures.isSlowed = failures.count >= LIMITS.linkWrongTokens.free;
      failures.count = 0;
      this.#spanLater(address, failures);
    }, LIMITS.linkWrongTokens.spanMs);
  }
}
