import type { RunState } from "../run/run-state.js";
import type { Delivery } from "./delivery.js";
import type { EmittedDelivery, EmittedEvent } from "./emitted-event.js";
import type { RunEventName, Webhook } from "./webhook.js";
import { type EventSource, runEventPayload } from "./webhook-event.js";

/**
 * The event of a run's transition, with a delivery for each enabled webhook that subscribes to it. Undefined when none
 * does: nothing is kept of such an event.
 *
 * @param run as it is after the transition
 * @param newId gives ascending UUIDv7s
 */
export function emitRunEvent(
  source: EventSource,
  webhooks: Iterable<Webhook>,
  name: RunEventName,
  run: RunState,
  programExists: boolean,
  timeUs: number,
  newId: () => string,
): EmittedEvent | undefined {
  const deliveries: EmittedDelivery[] = [];
  for (const { id, enabled, subscribedEvents, onFailureMode } of webhooks) {
    if (enabled && subscribedEvents.includes(name)) deliveries.push({ id: newId(), webhookId: id, onFailureMode });
  }
  if (deliveries.length === 0) return undefined;
  const id = newId();
  return { id, name, timeUs, payload: runEventPayload(source, id, name, run, programExists, timeUs), deliveries };
}

/** A delivery before its first attempt. */
export function newDelivery(
  { id, webhookId, onFailureMode }: EmittedDelivery,
  event: { id: string; name: Delivery["eventName"]; timeUs: number },
  runId: string | null,
): Delivery {
  return {
    id,
    webhookId,
    runId,
    eventId: event.id,
    eventName: event.name,
    onFailureMode,
    status: "pending",
    attempts: 0,
    lastStatusCode: null,
    lastError: null,
    nextRetryAtUs: null,
    deliveredAtUs: null,
    firstFailure: null,
    createdAtUs: event.timeUs,
    updatedAtUs: event.timeUs,
  };
}

/** The fields that all deliveries of an event share. */
export interface BegunEvent {
  readonly id: string;
  readonly name: Delivery["eventName"];
  readonly timeUs: number;
  readonly runId: string | null;
}

/** A delivery that began with an event and had no attempt yet. It takes little memory, because thousands can wait at a time. */
export class BegunDelivery {
  readonly #emitted: EmittedDelivery;
  readonly #event: BegunEvent;

  constructor(emitted: EmittedDelivery, event: BegunEvent) {
    this.#emitted = emitted;
    this.#event = event;
  }

  get id(): string {
    return this.#emitted.id;
  }

  get webhookId(): string {
    return this.#emitted.webhookId;
  }

  /** Makes a new object each time. */
  toDelivery(): Delivery {
    return newDelivery(this.#emitted, this.#event, this.#event.runId);
  }
}
