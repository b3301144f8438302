import type { OnFailureMode, RunEventName } from "./webhook.js";

/** An event of a run as it was emitted: its frozen payload, once, and the deliveries that began with it. Part of the run's document. */
export interface EmittedEvent {
  id: string;
  name: RunEventName;
  /** When it was emitted: the time of the record with the transition. Its deliveries' created_at. */
  timeUs: number;
  /** JSON text, posted as it is. */
  payload: string;
  deliveries: EmittedDelivery[];
}

export interface EmittedDelivery {
  id: string;
  webhookId: string;
  onFailureMode: OnFailureMode;
  /** When the run's record was written, the delivery had come to its end; a later record of the delivery says to which. */
  settled?: true;
}
