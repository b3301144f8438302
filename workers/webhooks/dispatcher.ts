import { LIMITS } from "../../core/limits.js";
import type { Timers } from "../../core/timers.js";
import type { DeliveryAttempt } from "../../core/webhook/delivery.js";
import { DeliverySchedule, type DeliveryStep } from "../../core/webhook/delivery-schedule.js";
import type { DeliveryJob, DeliveryReport } from "./dispatcher-messages.js";
import type { DeliveryOutcome, DeliveryRequest, SentRequest } from "./receivers/delivery-request.js";

/** What the dispatcher needs from outside, so that a test can replace the network and the time. */
export interface DispatcherEnvironment {
  timers: Timers;
  /** Monotonic, in milliseconds. */
  nowMs(): number;
  /** The service clock, which gives attempts their times. */
  tick(): number;
  /** The system's wall clock, in microseconds since the Unix epoch. Receivers compare a signature's time with it. */
  wallUs(): number;
  userAgent: string;
  send(request: DeliveryRequest, onEnd: (outcome: DeliveryOutcome) => void): SentRequest;
  report(report: DeliveryReport): void;
}

interface Running {
  job: DeliveryJob;
  schedule: DeliverySchedule;
  attemptNumber: number;
  /** The timer of the attempt's time-out, or of the pause. */
  timer: unknown;
  /** Null in a pause. */
  request: SentRequest | null;
  /** The time of its next attempt was reported. */
  isPauseTold: boolean;
  /** When its pause ends, or ended. */
  nextAttemptMs: number;
  isReleased: boolean;
}

/**
 * Drives deliveries through their attempts. A delivery waits for another one only if its job says so. Whoever gives the jobs decides how
 * many run at a time.
 */
export class Dispatcher {
  readonly #environment: DispatcherEnvironment;
  readonly #running = new Map<string, Running>();
  /** Jobs that wait for the end of another delivery, by the id of that delivery. */
  readonly #behind = new Map<string, DeliveryJob>();
  #onIdle: (() => void) | null = null;

  constructor(environment: DispatcherEnvironment) {
    this.#environment = environment;
  }

  /** Deliveries that are being made. */
  get runningCount(): number {
    return this.#running.size;
  }

  /** Starts a delivery now, or when the one that it waits for has ended. Its id must not be running. */
  deliver(job: DeliveryJob): void {
    const { deliveryId, afterId } = job;
    if (this.#running.has(deliveryId)) throw new Error(`an attempt of delivery ${deliveryId} is already under way`);
    const isToWait = afterId !== null && this.#running.has(afterId);
    // At most one waits for another: nobody needs more.
    if (isToWait && !this.#behind.has(afterId)) this.#behind.set(afterId, job);
    else this.#start(job);
  }

  #start(job: DeliveryJob): void {
    const { attempts, timeoutMs, backoffMs, deliveryId } = job;
    const plan = { attempts, timeoutMs, backoffMs, windowMs: LIMITS.dispatchWindowMs };
    const nowMs = this.#environment.nowMs();
    const running: Running = {
      job,
      schedule: new DeliverySchedule(plan, nowMs, job.window?.endMs),
      attemptNumber: job.firstAttemptNumber,
      timer: null,
      request: null,
      isPauseTold: false,
      nextAttemptMs: job.window?.nextAttemptMs ?? nowMs,
      isReleased: false,
    };
    this.#running.set(deliveryId, running);
    const delayMs = running.nextAttemptMs - nowMs;
    if (delayMs <= 0) {
      this.#begin(running);
      return;
    }
    const atUs = this.#environment.tick() + Math.round(delayMs * 1000);
    this.#pause(running, delayMs);
    this.#environment.report({ deliveryId, attempt: null, next: { kind: "retry", atUs } });
  }

  /** Starts a delivery that waits for another one now. */
  begin(deliveryId: string): void {
    for (const [afterId, job] of this.#behind) if (job.deliveryId === deliveryId) this.#startBehind(afterId);
  }

  /** Makes no further attempt of a delivery by itself. If it is not here, its end was reported already or is about to be. */
  release(deliveryId: string): void {
    const running = this.#running.get(deliveryId);
    if (running === undefined) {
      for (const [afterId, job] of this.#behind) if (job.deliveryId === deliveryId) this.#releaseBehind(afterId, job);
      return;
    }
    running.isReleased = true;
    if (running.request !== null) return;
    this.#environment.timers.clear(running.timer);
    this.#end(running, { deliveryId, attempt: null, next: released(running) });
  }

  #releaseBehind(afterId: string, { deliveryId, window }: DeliveryJob): void {
    this.#behind.delete(afterId);
    this.#environment.report({ deliveryId, attempt: null, next: { kind: "released", window } });
  }

  /** Releases all deliveries. Resolves when the attempts under way have ended or were cut short after `graceMs`. */
  stop(graceMs: number): Promise<void> {
    for (const [afterId, job] of this.#behind) this.#releaseBehind(afterId, job);
    for (const deliveryId of [...this.#running.keys()]) this.release(deliveryId);
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#environment.timers.set(() => {
        // An attempt that is cut short does not count: the delivery stays pending and is attempted again at the next start.
        for (const running of this.#running.values()) this.#environment.timers.clear(running.timer);
        this.#running.clear();
        resolve();
      }, graceMs);
      this.#onIdle = () => {
        this.#environment.timers.clear(timer);
        resolve();
      };
    });
  }

  #begin(running: Running): void {
    const { timers, tick, wallUs, nowMs } = this.#environment;
    const { job } = running;
    const step = running.schedule.begin(nowMs());
    if (step.kind === "done") {
      this.#end(running, { deliveryId: job.deliveryId, attempt: null, next: { kind: step.status } });
      return;
    }
    if (running.isPauseTold) {
      // The reported time of this attempt has come.
      running.isPauseTold = false;
      this.#environment.report({ deliveryId: job.deliveryId, attempt: null, next: { kind: "attempt" } });
    }
    const startedAtUs = tick();
    let hasEnded = false;
    const request = this.#environment.send(
      {
        url: job.url,
        secret: job.secret,
        eventId: job.eventId,
        eventName: job.eventName,
        payload: job.payload,
        userAgent: this.#environment.userAgent,
        timestampSeconds: Math.floor(wallUs() / 1_000_000),
      },
      (outcome) => {
        hasEnded = true;
        // `stop` has cut it short.
        if (this.#running.get(job.deliveryId) !== running) return;
        timers.clear(running.timer);
        running.request = null;
        const completedAtUs = tick();
        this.#ended(running, { attemptNumber: running.attemptNumber++, startedAtUs, completedAtUs, ...outcome });
      },
    );
    // It may have failed before `send` returned.
    if (hasEnded) return;
    running.request = request;
    running.timer = timers.set(() => request.timeOut(timeoutFault(step.timeoutMs, job)), step.timeoutMs);
  }

  #ended(running: Running, attempt: DeliveryAttempt): void {
    const { nowMs } = this.#environment;
    const { deliveryId } = running.job;
    const step: DeliveryStep = running.schedule.ended(attempt.error === null, nowMs());
    if (step.kind === "done") {
      this.#end(running, { deliveryId, attempt, next: { kind: step.status } });
      return;
    }
    running.nextAttemptMs = step.untilMs;
    if (running.isReleased) {
      this.#end(running, { deliveryId, attempt, next: released(running) });
      return;
    }
    const delayMs = step.untilMs - nowMs();
    const atUs = attempt.completedAtUs + Math.round(delayMs * 1000);
    const next: DeliveryReport["next"] = delayMs > 0 ? { kind: "retry", atUs } : { kind: "attempt" };
    this.#environment.report({ deliveryId, attempt, next });
    this.#pause(running, delayMs);
  }

  #startBehind(deliveryId: string): void {
    const job = this.#behind.get(deliveryId);
    if (job === undefined) return;
    this.#behind.delete(deliveryId);
    this.#start(job);
  }

  #pause(running: Running, delayMs: number): void {
    running.isPauseTold = delayMs > 0;
    running.timer = this.#environment.timers.set(() => this.#begin(running), delayMs);
  }

  #end(running: Running, report: DeliveryReport): void {
    this.#running.delete(running.job.deliveryId);
    this.#environment.report(report);
    this.#startBehind(running.job.deliveryId);
    if (this.#running.size === 0) this.#onIdle?.();
  }
}

function released({ schedule: { endMs }, nextAttemptMs }: Running): DeliveryReport["next"] {
  return { kind: "released", window: { endMs, nextAttemptMs } };
}

/** The error of an attempt that timed out, with the time that it really had. */
function timeoutFault(appliedMs: number, { timeoutMs }: DeliveryJob): string {
  const fault = `no answer within ${Math.round(appliedMs) / 1000} s`;
  return appliedMs < timeoutMs ? `${fault}, where the dispatch window ended` : fault;
}
