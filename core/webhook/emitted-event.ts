import type { OnFailureMode, RunEventName } from "./webhook.js";

/** An event of a run: its payload, stored once, and the deliveries that began with it. It is part of the run's document. */
export interface EmittedEvent {
  id: string;
  name: RunEventName;
  /** When it was emitted: the time of the record with the transition, and the created_at of its deliveries. */
  timeUs: number;
  /** JSON text that is posted as it is. */
  payload: string;
  deliveries: EmittedDelivery[];
}

export interface EmittedDelivery {
  id: string;
  webhookId: string;
  onFailureMode: OnFailureMode;
  /** The delivery had ended when the run's record was written. A record of the delivery says how. */
  settled?: true;
}
