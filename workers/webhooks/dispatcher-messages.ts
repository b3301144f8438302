/** What the recorder and the dispatcher thread say to each other; plain data only. */

import type { ClockMoment } from "../../core/service-clock.js";
import type { DeliveryAttempt } from "../../core/webhook/delivery.js";
import type { EventName } from "../../core/webhook/webhook.js";

/** Given to the thread when it starts (workerData). */
export interface DispatcherOptions {
  serviceVersion: string;
  /** CIDR lists of `--webhook-allow` and `--webhook-deny`; no allow list allows all that is not forbidden. */
  allow: readonly string[];
  deny: readonly string[];
  /** PEM of `--webhook-ca` and of NODE_EXTRA_CA_CERTS, trusted beside Node's own; null: without `--webhook-ca`. */
  extraCa: string | null;
}

/** A window that has begun, in the dispatcher's own time: of use to it alone. */
export interface BegunWindow {
  endMs: number;
  /** Before it, the pause behind the attempt before is not over. */
  nextAttemptMs: number;
}

/** Attempts of one delivery: a window of them, or what is left of one. */
export interface DeliveryJob {
  deliveryId: string;
  /** It begins when that delivery has ended, if it is being made and no other waits for it; else, and where it is null, at once. */
  afterId: string | null;
  eventId: string;
  eventName: EventName;
  /** The webhook's at this time. */
  url: string;
  /** Null: the delivery is not signed. */
  secret: string | null;
  /** Null: a new one, which begins with the job. */
  window: BegunWindow | null;
  /** Number of the first attempt of this job. */
  firstAttemptNumber: number;
  /** At most so many. */
  attempts: number;
  timeoutMs: number;
  backoffMs: number;
  /** The frozen envelope, posted as it is; in shared memory, which nobody writes any more. */
  payload: Uint8Array;
}

/** What became of a delivery, after each attempt. */
export interface DeliveryReport {
  deliveryId: string;
  /** Null when no attempt was made since the last report. */
  attempt: DeliveryAttempt | null;
  /**
   * `retry`: a further attempt follows by itself at that time, which is not over. `attempt`: one follows now, without a pause or behind it.
   * `released`: none follows, as was asked for, and the delivery is not at its end; automatic ones that follow have that window, or
   * a new one.
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
  /** With the time of the service clock, which attempts are told in. */
  | { kind: "deliver"; jobs: DeliveryJob[]; now: ClockMoment }
  /** One that waits for another begins now. */
  | { kind: "begin"; deliveryId: string }
  /** No further attempt of this delivery by itself: one under way ends, a pause ends now. */
  | { kind: "release"; deliveryId: string }
  /** Release all, cut short what still lasts after `graceMs`, end the thread. */
  | { kind: "stop"; graceMs: number };

export type DispatcherToRecorder =
  /** All modules are loaded. */
  { kind: "loaded" } | { kind: "reports"; reports: DeliveryReport[] };
