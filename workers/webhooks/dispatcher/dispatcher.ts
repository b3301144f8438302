import type { Timers } from "../../../core/timers.js";
import type { DeliveryOutcome, DeliveryRequest, SentRequest } from "./delivery-request.js";
import type { DeliveryJob, DeliveryReport } from "./dispatcher-messages.js";

/** What the dispatcher needs from outside, so that a test can replace the network and the time. */
export interface DispatcherEnvironment {
  timers: Timers;
  /** The service clock. It gives attempts their times. */
  tick(): number;
  /** The system's wall clock, in microseconds since the Unix epoch. Receivers compare a signature's time with it. */
  wallUs(): number;
  userAgent: string;
  send(request: DeliveryRequest, onEnd: (outcome: DeliveryOutcome) => void): SentRequest;
  report(report: DeliveryReport): void;
}

/**
 * Makes attempts. Each begins at once and is bounded in time. Whoever gives the jobs decides how many are under way.
 */
export class Dispatcher {
  readonly #environment: DispatcherEnvironment;
  /** Timers of attempts under way, by delivery. */
  readonly #timers = new Map<string, unknown>();
  #onIdle: (() => void) | null = null;

  constructor(environment: DispatcherEnvironment) {
    this.#environment = environment;
  }

  deliver(job: DeliveryJob): void {
    const { timers, tick, wallUs, userAgent, send, report } = this.#environment;
    const { deliveryId, attemptNumber, eventId, eventName, url, signers, headers, payload } = job;
    const said = { url, signers, headers, eventId, eventName, payload };
    const startedAtUs = tick();
    const timestampSeconds = Math.floor(wallUs() / 1_000_000);
    // It may end before `send` returns.
    this.#timers.set(deliveryId, null);
    const sent = send({ ...said, userAgent, timestampSeconds }, (outcome) => {
      // `stop` has cut it short.
      if (!this.#timers.has(deliveryId)) return;
      this.#clear(deliveryId);
      const attempt =
        "lacking" in outcome ? outcome : { attemptNumber, startedAtUs, completedAtUs: tick(), ...outcome };
      report({ deliveryId, attempt });
      if (this.#timers.size === 0) this.#onIdle?.();
    });
    if (!this.#timers.has(deliveryId)) return;
    const limitMs = Math.min(job.timeoutMs, job.windowLeftMs);
    this.#timers.set(
      deliveryId,
      timers.set(() => sent.timeOut(timeoutFault(limitMs, job)), limitMs),
    );
  }

  /** Resolves when the attempts under way have ended or were cut short after `graceMs`. */
  stop(graceMs: number): Promise<void> {
    if (this.#timers.size === 0) return Promise.resolve();
    const { timers } = this.#environment;
    return new Promise((resolve) => {
      const timer = timers.set(() => {
        // An attempt that is cut short does not count: the delivery stays pending and is attempted again at the next start.
        for (const deliveryId of [...this.#timers.keys()]) this.#clear(deliveryId);
        resolve();
      }, graceMs);
      this.#onIdle = () => {
        timers.clear(timer);
        resolve();
      };
    });
  }

  #clear(deliveryId: string): void {
    this.#environment.timers.clear(this.#timers.get(deliveryId));
    this.#timers.delete(deliveryId);
  }
}

/** The error of an attempt that timed out, with the time that it really had. */
function timeoutFault(limitMs: number, { timeoutMs }: DeliveryJob): string {
  const fault = `no answer within ${Math.round(limitMs) / 1000} s`;
  return limitMs < timeoutMs ? `${fault}: the time for this delivery was over` : fault;
}
