import { valuesOf } from "../json/closed-set.js";

/** Events that a webhook can subscribe to (decisions.md, Webhooks). */
export const EVENT_MEANINGS = {
  ProgramStarted: "a run began.",
  ProgramCompleted: "a run was carried out to its end; the event carries checks, defects and files.",
  ProgramFailed: "a run broke off with an error.",
  ProgramCancelled: "a run was stopped on purpose.",
  WebhookTest:
    "somebody tests a webhook; no run stands behind it. A test is sent whether or not the webhook subscribes to it.",
} as const;
export type EventName = keyof typeof EVENT_MEANINGS;
export const EVENT_NAMES = valuesOf(EVENT_MEANINGS);
/** Events of a run's life; WebhookTest belongs to no run. */
export type RunEventName = Exclude<EventName, "WebhookTest">;

/** Neither touches the run's outcome. */
export const ON_FAILURE_MODE_MEANINGS = {
  IGNORE: "a failed delivery is noted in the delivery alone.",
  WARN: "a failed delivery is noted in the run's event log too, as `webhook_delivery_failed`.",
} as const;
export type OnFailureMode = keyof typeof ON_FAILURE_MODE_MEANINGS;
export const ON_FAILURE_MODES = valuesOf(ON_FAILURE_MODE_MEANINGS);

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
