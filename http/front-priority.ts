import type { ThreadPolicy } from "../workers/thread-priority.js";

export interface FrontPriorityOptions {
  /** @throws what the system says against it */
  setPolicy(policy: ThreadPolicy): Promise<void>;
  /** How much of the time since the last call the front was not idle, from 0 to 1; among others, what it waited for a core is in it. */
  busyShare(): number;
  log: Record<"info" | "warn", (fields: Record<string, unknown>, message: string) => void>;
}

/** How often `look` is to be called. */
export const LOOK_EVERY_MS = 500;
/** A front that is busier than this waits for itself more than for others, and those must not wait for it: the kernel's own threads above all. */
const MOST_BUSY = 0.8;
/** It has been quieter than this for so many looks before it goes first again. */
const QUIET_BUSY = 0.6;
const QUIET_LOOKS = 10;

/**
 * Lets the thread that answers clients go before all others of the machine, as long as it leaves some of its core to them. A read needs a fraction of
 * a millisecond of it, but on busy cores waits some milliseconds for its turn, whatever the nice values: fair turns are given by the
 * clock's ticks, and who runs has some milliseconds to itself. (The kernel's Documentation/scheduler/sched-eevdf.rst; sched(7), "Real-time policies".)
 */
export class FrontPriority {
  readonly #options: FrontPriorityOptions;
  /** Null: it may not go first. */
  #policy: ThreadPolicy | null = null;
  #quietLooks = 0;
  #isChanging = false;
  /** It has been told that the last change failed. */
  #isWarned = false;

  constructor(options: FrontPriorityOptions) {
    this.#options = options;
  }

  /** It goes before all others now. */
  get isFirst(): boolean {
    return this.#policy === "real-time";
  }

  /** Never rejects: without it everything works as with it, only reads wait longer on busy cores. */
  async begin(): Promise<void> {
    const { busyShare, log } = this.#options;
    busyShare();
    await this.#change("real-time");
    if (this.#policy !== null) log.info({}, "the thread that answers clients has real-time priority");
  }

  /** To be called every `LOOK_EVERY_MS`. Resolves when what it changes is changed; never rejects. */
  async look(): Promise<void> {
    const busy = this.#options.busyShare();
    if (this.#policy === null || this.#isChanging) return;
    if (this.#policy === "real-time") {
      if (busy > MOST_BUSY) await this.#change("normal");
      return;
    }
    this.#quietLooks = busy < QUIET_BUSY ? this.#quietLooks + 1 : 0;
    if (this.#quietLooks >= QUIET_LOOKS) await this.#change("real-time");
  }

  async #change(policy: ThreadPolicy): Promise<void> {
    const { setPolicy, log } = this.#options;
    this.#isChanging = true;
    try {
      await setPolicy(policy);
      this.#policy = policy;
      this.#isWarned = false;
    } catch (error) {
      // At the first time it is a matter of rights, later of a machine that has no room for a process: then the next look tries again.
      const reason = (error as Error).message.trim();
      if (this.#policy === null) log.info({ reason }, "no real-time priority for the thread that answers clients");
      else if (!this.#isWarned)
        log.warn({ reason, policy }, "the priority of the thread that answers clients stays as it is for now");
      this.#isWarned = this.#policy !== null;
    } finally {
      this.#quietLooks = 0;
      this.#isChanging = false;
    }
  }
}
