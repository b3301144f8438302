/** Events that a webhook can subscribe to (decisions.md, Webhooks). */
export const EVENT_NAMES = [
  "ProgramStarted",
  "ProgramCompleted",
  "ProgramFailed",
  "ProgramCancelled",
  "WebhookTest",
] as const;
export type EventName = (typeof EVENT_NAMES)[number];
/** Events of a run's life; WebhookTest belongs to no run. */
export type RunEventName = Exclude<EventName, "WebhookTest">;

/** Neither touches the run's outcome; WARN notes a failed delivery in the run's event log. */
export const ON_FAILURE_MODES = ["IGNORE", "WARN"] as const;
export type OnFailureMode = (typeof ON_FAILURE_MODES)[number];

/** What a client sets of a webhook, but for its secret, which is kept apart (`WebhookSecrets`). */
export interface WebhookSettings {
  name: string;
  /** As it came; http or https. */
  url: string;
  subscribedEvents: EventName[];
  onFailureMode: OnFailureMode;
  enabled: boolean;
  /** Of one attempt. */
  deliveryTimeoutSeconds: number;
  /** Between two attempts. */
  retryBackoffSeconds: number;
  /** After the first attempt. */
  maxRetries: number;
}

/** All that is shown of a webhook. The secret itself is in no value of this type, so that no answer can be made with it. */
export interface Webhook extends WebhookSettings {
  id: string;
  hasSecret: boolean;
  createdAtUs: number;
  updatedAtUs: number;
}

/** What a webhook gets that does not say (interface.md, Limits; decisions.md, Defaults). */
export const WEBHOOK_DEFAULTS = {
  onFailureMode: "IGNORE",
  enabled: true,
  deliveryTimeoutSeconds: 3,
  retryBackoffSeconds: 1,
  maxRetries: 3,
} as const satisfies Partial<WebhookSettings>;
