import type { Timers } from "../../../core/timers.js";
import type { Resend, ResendItem, ResendState } from "../../../core/webhook/resend.js";
import type { InlineAnswer } from "../deliveries/tracked-delivery.js";
import type { ResendStates, RunningResend } from "./resend-states.js";

/** Attempts of one resend that are under way or wait for a place. So its deliveries take little memory, however many it has. */
const MOST_UNDER_WAY = 8;
/** When an attempt could not be made, it is tried again after this time. */
const AGAIN_MS = 5_000;
/** A delivery whose stored data cannot be read so often has failed. */
const MOST_READS = 3;

export interface ResenderOptions {
  states: ResendStates;
  timers: Timers;
  /** Makes one attempt. It answers when the outcome is committed, or says why there is none. @returns takes it back, unless it has begun */
  attempt(item: ResendItem, webhookId: string, answer: InlineAnswer): () => void;
  /** Records that the resend has ended. Throws if that cannot be recorded now. @returns the record's sequence number */
  end(resend: Resend): number;
  report(what: string, error: unknown): void;
}

/** An attempt that is under way or waits for a place. */
interface UnderWay {
  /** Does nothing once the attempt has begun. */
  takeBack(): void;
}

/** What is under way of one resend. */
interface Work {
  readonly running: RunningResend;
  /** Place of the next one that was not begun. */
  next: number;
  readonly underWay: Set<UnderWay>;
  /** Places of those that are to be tried again now. */
  again: number[];
  /** Timers of those that wait to be tried again. */
  readonly postponed: Set<unknown>;
  /** How often the stored data of a delivery could not be read, by its place. */
  readonly unread: Map<number, number>;
  /** Deliveries that cannot be read. */
  unreadable: number;
  /** An attempt ended after the record of the cancelled resend. */
  isUncounted: boolean;
  /** The timer until the next attempt may begin; null if it may begin now. */
  timer: unknown;
}

/** Makes the attempts of all running resends: of each the oldest first, at most `perSecond` in a second. */
export class Resender {
  readonly #options: ResenderOptions;
  readonly #works = new Map<string, Work>();
  #isRunning = false;

  constructor(options: ResenderOptions) {
    this.#options = options;
  }

  /** From now on attempts are made. Goes on with the resends that were running when the service ended. */
  begin(): void {
    this.#isRunning = true;
    for (const { resend } of this.#options.states.running()) this.begun(resend.id);
    for (const work of this.#works.values()) this.#proceed(work);
  }

  /** No further attempt is begun. */
  stop(): void {
    this.#isRunning = false;
    for (const { timer, postponed } of this.#works.values()) {
      for (const one of [timer, ...postponed]) this.#options.timers.clear(one);
    }
  }

  /** The record of this resend is committed. */
  begun(id: string): void {
    const running = this.#options.states.get(id);
    if (running === undefined || this.#works.has(id)) return;
    const nothing = { next: 0, again: [], unreadable: 0, isUncounted: false, timer: null };
    const work: Work = { running, ...nothing, underWay: new Set(), postponed: new Set(), unread: new Map() };
    this.#works.set(id, work);
    this.#proceed(work);
  }

  /**
   * Ends it, and takes back what has not begun. Attempts that have begun go on. When the last of them has ended, a second record counts them.
   *
   * @returns the sequence number of its record; undefined if that cannot be written now
   */
  cancel(running: RunningResend): number | undefined {
    const work = this.#works.get(running.resend.id);
    const sequence = this.#end(running, "cancelled", work);
    if (sequence !== undefined) for (const { takeBack } of [...(work?.underWay ?? [])]) takeBack();
    return sequence;
  }

  /** Begins the next attempt, if it may begin; ends the resend if there is none. */
  #proceed(work: Work): void {
    const { running } = work;
    if (!this.#isRunning || work.timer !== null || !this.#works.has(running.resend.id)) return;
    if (work.underWay.size >= MOST_UNDER_WAY) return;
    const nth = this.#takeNext(work);
    if (nth === undefined) {
      if (work.underWay.size + work.postponed.size === 0) this.#end(running, "done", work);
      return;
    }
    work.timer = this.#options.timers.set(
      () => {
        work.timer = null;
        this.#proceed(work);
      },
      Math.ceil(1000 / running.resend.perSecond),
    );
    this.#attempt(work, nth);
  }

  #attempt(work: Work, nth: number): void {
    const { running, underWay } = work;
    const one: UnderWay = { takeBack: () => {} };
    underWay.add(one);
    one.takeBack = this.#options.attempt(running.item(nth), running.resend.webhookId, (outcome) => {
      underWay.delete(one);
      if (!this.#works.has(running.resend.id)) {
        this.#endedLate(work, outcome);
        return;
      }
      if ("error" in outcome) this.#notMade(work, nth, outcome.error.data.code);
      this.#proceed(work);
    });
  }

  /** An attempt has ended that had begun when its resend was cancelled. Nobody else counts it then. */
  #endedLate(work: Work, outcome: Parameters<InlineAnswer>[0]): void {
    const { running, underWay } = work;
    if (!("error" in outcome)) {
      running.noted({ id: outcome.deliveryId, status: outcome.isDelivered ? "delivered" : "failed" });
      work.isUncounted = true;
    }
    if (underWay.size > 0 || !work.isUncounted) return;
    work.isUncounted = false;
    try {
      this.#record(running, "cancelled", work);
    } catch (error) {
      this.#options.report("the last attempts of a cancelled resend could not be counted", error);
    }
  }

  #record({ resend, figures }: RunningResend, state: ResendState, work: Work | undefined): number {
    const failed = figures.failed + (work?.unreadable ?? 0);
    return this.#options.end({ ...resend, ...figures, failed, state });
  }

  #takeNext(work: Work): number | undefined {
    const { running, again } = work;
    const first = again.shift();
    if (first !== undefined) return first;
    while (work.next < running.count) {
      const nth = work.next++;
      if (!running.hadAttempt(nth)) return nth;
    }
    return undefined;
  }

  #notMade(work: Work, nth: number, code: string): void {
    const { running, unread } = work;
    if (!this.#isRunning) return;
    if (code === "webhook_deleted") {
      this.cancel(running);
      return;
    }
    if (code !== "unavailable") {
      const reads = (unread.get(nth) ?? 0) + 1;
      unread.set(nth, reads);
      if (reads === MOST_READS) {
        work.unreadable++;
        return;
      }
    }
    const timer = this.#options.timers.set(() => {
      work.postponed.delete(timer);
      work.again.push(nth);
      this.#proceed(work);
    }, AGAIN_MS);
    work.postponed.add(timer);
  }

  #end(running: RunningResend, state: ResendState, work: Work | undefined): number | undefined {
    let sequence: number;
    try {
      sequence = this.#record(running, state, work);
    } catch (error) {
      this.#options.report("the end of a resend could not be recorded", error);
      if (work === undefined || !this.#isRunning) return undefined;
      this.#options.timers.clear(work.timer);
      work.timer = this.#options.timers.set(() => {
        work.timer = null;
        if (state === "cancelled") this.cancel(running);
        else this.#proceed(work);
      }, AGAIN_MS);
      return undefined;
    }
    for (const timer of [work?.timer, ...(work?.postponed ?? [])]) this.#options.timers.clear(timer);
    this.#works.delete(running.resend.id);
    return sequence;
  }
}
