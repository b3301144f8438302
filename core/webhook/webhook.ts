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

/** How `webhook-signature` is made. */
export const SIGNING_MEANINGS = {
  hmac: "with the webhook's secret, as `v1`. Without a secret it is not sent.",
  ed25519:
    "with the service's own private key, as `v1a`. Receivers verify it with the public key of `GET /webhooks/signing-key`, and hold no secret.",
} as const;
export type Signing = keyof typeof SIGNING_MEANINGS;

/** What a client sets of a webhook, without what is write-only, which is kept apart (`WebhookSecrets`). */
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
  signing: Signing;
}

/** A header that goes with each delivery. */
export type CustomHeader = readonly [name: string, value: string];

/** What is write-only of a webhook. Only the recorder and the dispatcher hold it. */
export interface WebhookSecrets {
  /** Null: deliveries have no HMAC signature. */
  readonly secret: string | null;
  /** The secret before the latest rotation. It signs too, until `previousSecretExpiresAtUs`. */
  readonly previousSecret: string | null;
  readonly headers: readonly CustomHeader[];
}

export const NO_SECRETS: WebhookSecrets = { secret: null, previousSecret: null, headers: [] };

/** All that is shown of a webhook. It never holds what is write-only, so no answer can show it. */
export interface Webhook extends WebhookSettings {
  id: string;
  hasSecret: boolean;
  /** Until then, by the machine's clock, the secret before the latest rotation signs too. Null if there is none. It may be past. */
  previousSecretExpiresAtUs: number | null;
  /** Names of the custom headers, as the client wrote them. */
  headerNames: readonly string[];
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
  signing: "hmac",
} as const satisfies Partial<WebhookSettings>;

/** The secrets that sign at this time, by the machine's clock: the newest first. */
export function signingSecrets(
  { previousSecretExpiresAtUs }: Pick<Webhook, "previousSecretExpiresAtUs">,
  { secret, previousSecret }: WebhookSecrets,
  wallUs: number,
): string[] {
  const isOverlapping = previousSecretExpiresAtUs !== null && wallUs < previousSecretExpiresAtUs;
  return [secret, isOverlapping ? previousSecret : null].filter((one) => one !== null);
}
