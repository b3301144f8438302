/** The messages between the recorder and the dispatcher thread. Plain data only. */

import type { ClockMoment } from "../../core/service-clock.js";
import type { DeliveryAttempt } from "../../core/webhook/delivery.js";
import type { EventName } from "../../core/webhook/webhook.js";

/** Given to the thread when it starts (workerData). */
export interface DispatcherOptions {
  serviceVersion: string;
  /** CIDR lists of `--webhook-allow` and `--webhook-deny`. An empty allow list allows everything that is not forbidden. */
  allow: readonly string[];
  deny: readonly string[];
  /** PEM of `--webhook-ca` and of NODE_EXTRA_CA_CERTS, trusted beside Node's own; null: without `--webhook-ca`. */
  extraCa: string | null;
}

/** A window that has begun, in the dispatcher's own monotonic time. */
export interface BegunWindow {
  endMs: number;
  /** When the pause after the last attempt ends. */
  nextAttemptMs: number;
}

/** Attempts of one delivery, in a new window or in what is left of one. */
export interface DeliveryJob {
  deliveryId: string;
  /** The delivery whose end it waits for, if that one is running and no other waits for it. Otherwise, or if null, it begins at once. */
  afterId: string | null;
  eventId: string;
  eventName: EventName;
  /** The webhook's present address. */
  url: string;
  /** Null: the delivery is not signed. */
  secret: string | null;
  /** Null: a new window, which begins with the job. */
  window: BegunWindow | null;
  /** Number of the first attempt of this job. */
  firstAttemptNumber: number;
  /** Most attempts of this job. */
  attempts: number;
  timeoutMs: number;
  backoffMs: number;
  /** The event's bytes, posted unchanged. They lie in shared memory that nobody writes any more. */
  payload: Uint8Array;
}

/** What happened to a delivery, after each attempt. */
export interface DeliveryReport {
  deliveryId: string;
  /** Null when no attempt was made since the last report. */
  attempt: DeliveryAttempt | null;
  /**
   * `retry`: another attempt follows by itself at that time. `attempt`: another attempt follows now, without a pause or after it.
   * `released`: no attempt follows, as was asked for, and the delivery has not ended. Later automatic attempts get that window, or a new
   * one if it is null.
   */
  next:
    | { kind: "delivered" }
    | { kind: "failed" }
    | { kind: "retry"; atUs: number }
    | { kind: "attempt" }
    | { kind: "released"; window: BegunWindow | null };
}

export type RecorderToDispatcher =
  /** Sent before the first job: the service listens on this port, and no delivery goes there. */
  | { kind: "serving"; port: number }
  /** `now` is the time of the service clock, which gives attempts their times. */
  | { kind: "deliver"; jobs: DeliveryJob[]; now: ClockMoment }
  /** A delivery that waits for another one begins now. */
  | { kind: "begin"; deliveryId: string }
  /** Make no further attempt of this delivery by itself. An attempt under way goes on to its end; a pause ends now. */
  | { kind: "release"; deliveryId: string }
  /** Release all deliveries, cut short what still lasts after `graceMs`, and end the thread. */
  | { kind: "stop"; graceMs: number };

export type DispatcherToRecorder =
  /** All modules are loaded. */
  { kind: "loaded" } | { kind: "reports"; reports: DeliveryReport[] };
