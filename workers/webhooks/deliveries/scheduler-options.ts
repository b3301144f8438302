import type { Timers } from "../../../core/timers.js";
import type { DeliveryPut } from "../../../core/webhook/webhook-change.js";
import type { EventSource } from "../../../core/webhook/webhook-event.js";
import type { Signers } from "../../../core/webhook/webhook-signature.js";
import type { DispatcherHandle } from "../dispatcher/dispatcher-handle.js";
import type { KeptWebhook, WebhookState } from "./webhook-state.js";

/** What surrounds the scheduler. */
export interface DeliverySchedulerOptions {
  state: WebhookState;
  dispatcher: DispatcherHandle;
  /** As `mostUnderWay` says; undefined: any number. */
  mostUnderWay?: number;
  timers: Timers;
  /** Monotonic, in milliseconds. */
  nowMs(): number;
  tick(): number;
  newId(timeUs: number): string;
  source(): EventSource;
  /** What signs a delivery now; `lacking` says why nothing can, for people. */
  signers(kept: KeptWebhook): Signers | { readonly lacking: string };
  /** Appends the record. @returns its sequence number. Throws if it cannot be appended now. */
  append(change: DeliveryPut, timeUs: number): number;
  /** Asks the front for the stored content of a delivery. `content` takes the answer. */
  askForContent(deliveryId: string): void;
  report(what: string, error: unknown): void;
  /** Called when `fault` has changed. */
  onFaultChange(): void;
}
