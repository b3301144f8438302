import { valuesOf } from "../json/closed-set.js";

/** Events that a webhook can subscribe to. */
export const EVENT_MEANINGS = {
  ProgramStarted: "a run began.",
  ProgramCompleted: "a run was carried out to its end; the event carries checks, defects and files.",
  ProgramFailed: "a run broke off with an error.",
  ProgramCancelled: "a run was stopped on purpose.",
  WebhookTest:
    "somebody tests a webhook; the event is about no run. A test is sent whether or not the webhook subscribes to it.",
} as const;
export type EventName = keyof typeof EVENT_MEANINGS;
export const EVENT_NAMES = valuesOf(EVENT_MEANINGS);
/** Events of a run. WebhookTest belongs to no run. */
export type RunEventName = Exclude<EventName, "WebhookTest">;

/** What a failed delivery leaves as a trace. No mode changes the run's outcome. */
export const ON_FAILURE_MODE_MEANINGS = {
  IGNORE: "a failed delivery is noted in the delivery alone.",
  WARN: "a failed delivery is noted in the run's event log too, as `webhook_delivery_failed`.",
} as const;
export type OnFailureMode = keyof typeof ON_FAILURE_MODE_MEANINGS;
export const ON_FAILURE_MODES = valuesOf(ON_FAILURE_MODE_MEANINGS);

/** What a client sets of a webhook, without its secret, which is kept apart (`WebhookSecrets`). */
export interface WebhookSettings {
  name: string;
  /** As the client sent it; http or https. */
  url: string;
  subscribedEvents: EventName[];
  onFailureMode: OnFailureMode;
  enabled: boolean;
  /** Time-out of one attempt. */
  deliveryTimeoutSeconds: number;
  /** Pause between two attempts. */
  retryBackoffSeconds: number;
  /** Attempts after the first one. */
  maxRetries: number;
}

/** All that is shown of a webhook. It never holds the secret, so no answer can show it. */
export interface Webhook extends WebhookSettings {
  id: string;
  hasSecret: boolean;
  createdAtUs: number;
  updatedAtUs: number;
}

/** Defaults of settings that a client leaves out. */
export const WEBHOOK_DEFAULTS = {
  onFailureMode: "IGNORE",
  enabled: true,
  deliveryTimeoutSeconds: 3,
  retryBackoffSeconds: 1,
  maxRetries: 3,
} as const satisfies Partial<WebhookSettings>;
