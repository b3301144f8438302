/** The messages between the recorder and the dispatcher thread. Plain data only. */

import type { ClockMoment } from "../../../core/service-clock.js";
import type { DeliveryAttempt } from "../../../core/webhook/delivery.js";
import type { CustomHeader, EventName } from "../../../core/webhook/webhook.js";
import type { Signers } from "../../../core/webhook/webhook-signature.js";
import type { ReceiverOptions } from "../../recorder/recorder-messages.js";

/** Given to the thread when it starts (workerData). */
export interface DispatcherOptions extends ReceiverOptions {
  serviceVersion: string;
}

/** One attempt of a delivery. */
export interface DeliveryJob {
  deliveryId: string;
  attemptNumber: number;
  eventId: string;
  eventName: EventName;
  /** The webhook's present address. */
  url: string;
  signers: Signers;
  headers: readonly CustomHeader[];
  timeoutMs: number;
  /** The attempt ends by then too. */
  windowLeftMs: number;
  /** The event's bytes, posted unchanged. They lie in shared memory that nobody writes any more. */
  payload: Uint8Array;
}

/** An attempt that has ended; `lacking` as in `DeliveryOutcome`. */
export interface DeliveryReport {
  deliveryId: string;
  attempt: DeliveryAttempt | { readonly lacking: string };
}

export type RecorderToDispatcher =
  /** Sent before the first job: the service listens on this port, and no delivery goes there. */
  | { kind: "serving"; port: number }
  /** `now` is the time of the service clock, which gives attempts their times. */
  | { kind: "deliver"; jobs: DeliveryJob[]; now: ClockMoment }
  /** Cut short the attempts that still last after `graceMs`, and end the thread. */
  | { kind: "stop"; graceMs: number };

export type DispatcherToRecorder =
  /** All modules are loaded. */
  { kind: "loaded" } | { kind: "reports"; reports: DeliveryReport[] };
