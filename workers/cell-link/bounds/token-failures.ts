import { LIMITS } from "../../../core/limits.js";
import type { Timers } from "../../../core/timers.js";

interface Failures {
  /** Wrong tokens in the present span of time. */
  count: number;
  /** Wrong tokens that are not logged yet. */
  untold: number;
  isSlowed: boolean;
  timer: unknown;
}

/** Counts wrong tokens by address, logs them, and slows addresses that guess too often. */
export class TokenFailures {
  readonly #timers: Timers;
  readonly #tell: (address: string, count: number) => void;
  readonly #byAddress = new Map<string, Failures>();

  /** @param tell logs how many came since the last call: the first at once, then at most once in `LIMITS.linkWrongTokens.spanMs` */
  constructor(timers: Timers, tell: (address: string, count: number) => void) {
    this.#timers = timers;
    this.#tell = tell;
  }

  /** True while connections from this address must wait before they are read. */
  isSlowed(address: string): boolean {
    return this.#byAddress.get(address)?.isSlowed ?? false;
  }

  failed(address: string): void {
    let failures = this.#byAddress.get(address);
    if (failures === undefined) {
      failures = { count: 0, untold: 0, isSlowed: false, timer: null };
      this.#add(address, failures);
      this.#tell(address, 1);
    } else {
      failures.untold++;
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
      if (failures.untold > 0) this.#tell(address, failures.untold);
      failures.isSlowed = failures.count >= LIMITS.linkWrongTokens.free;
      failures.count = 0;
      failures.untold = 0;
      this.#spanLater(address, failures);
    }, LIMITS.linkWrongTokens.spanMs);
  }
}
