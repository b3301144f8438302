import { createHash } from "node:crypto";
import { generateUuidV7 } from "../../../core/identifiers.js";
import type { RunState } from "../../../core/run/run-state.js";
import { newDelivery } from "../../../core/webhook/emit-run-event.js";
import type { MissedEvent } from "../../../core/webhook/resend.js";
import type { OnFailureMode, RunEventName } from "../../../core/webhook/webhook.js";
import { type EventSource, runEventPayload } from "../../../core/webhook/webhook-event.js";
import type { DeliveryContent } from "../../../storage/records/delivery-records.js";

/** A delivery of a missed event before its first attempt. */
export interface MissedDelivery extends MissedEvent {
  deliveryId: string;
  webhookId: string;
  onFailureMode: OnFailureMode;
}

/**
 * The delivery of an event that the webhook has missed. If another webhook was told of the event, it is the very same event. Otherwise it is made
 * from the run as it is now, with an id that follows from run and name: made again, it is the same event.
 *
 * @param timeUs becomes the delivery's created_at
 */
export function missedContent(
  { deliveryId, webhookId, onFailureMode, eventName }: MissedDelivery,
  run: RunState,
  source: EventSource,
  programExists: boolean,
  timeUs: number,
): DeliveryContent {
  const stored = run.emitted?.find(({ name }) => name === eventName);
  const eventId = stored?.id ?? missedEventId(run, eventName);
  const begun = { id: deliveryId, webhookId, onFailureMode };
  const delivery = newDelivery(begun, { id: eventId, name: eventName, timeUs }, run.id);
  if (stored !== undefined) return { delivery, history: [], payload: stored.payload, isOwnPayload: false };
  const atUs = eventTimeUs(run, eventName);
  const asThen = eventName === "ProgramStarted" ? asStarted(run) : run;
  const payload = runEventPayload(source, eventId, eventName, asThen, programExists, atUs);
  return { delivery, history: [], payload, isOwnPayload: true };
}

function eventTimeUs({ startedAtUs, completedAtUs, updatedAtUs }: RunState, eventName: RunEventName): number {
  return (eventName === "ProgramStarted" ? startedAtUs : completedAtUs) ?? updatedAtUs;
}

/** What its ProgramStarted says of a run. */
function asStarted(run: RunState): RunState {
  const updatedAtUs = run.startedAtUs ?? run.updatedAtUs;
  return { ...run, status: "running", updatedAtUs, completedAtUs: null, checks: [], defects: [] };
}

/** A UUIDv7 of the event's time; its other bits are of the SHA-256 of run and name. */
function missedEventId(run: RunState, eventName: RunEventName): string {
  const digest = createHash("sha256").update(`${run.id} ${eventName}`).digest();
  return generateUuidV7(Math.floor(eventTimeUs(run, eventName) / 1000), digest.subarray(0, 10));
}
