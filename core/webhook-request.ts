import { type AddressPolicy, urlAddressFault } from "./address-policy.js";
import { LIMITS } from "./limits.js";
import { EVENT_NAMES, type EventName, ON_FAILURE_MODES, WEBHOOK_DEFAULTS, type WebhookSettings } from "./webhook.js";
import { isUsableSecret } from "./webhook-signature.js";

/**
 * JSON Schemas of the two request bodies, for validation and for the OpenAPI document alike. What a schema cannot say is
 * `webhookRequestFaults`.
 */
const name = { type: "string", minLength: 1, maxLength: LIMITS.nameCharacters };
const url = {
  type: "string",
  maxLength: LIMITS.webhookUrlCharacters,
  description: "http or https, without user info and fragment. An address that is never delivered to is refused.",
};
const subscribedEvents = {
  type: "array",
  minItems: 1,
  maxItems: 64,
  items: { type: "string", enum: [...EVENT_NAMES] },
};
const secret = {
  type: ["string", "null"],
  minLength: 1,
  maxLength: LIMITS.webhookSecretCharacters,
  writeOnly: true,
  description: "Signs deliveries; never shown again. What follows `whsec_` must be base64.",
};
const options = {
  on_failure_mode: { type: "string", enum: [...ON_FAILURE_MODES] },
  enabled: { type: "boolean" },
  delivery_timeout_seconds: { type: "number", ...LIMITS.deliveryTimeoutSeconds },
  retry_backoff_seconds: { type: "number", ...LIMITS.retryBackoffSeconds },
  max_retries: { type: "integer", ...LIMITS.maxRetries },
};

type Properties = Record<string, Record<string, unknown>>;

function orNull(properties: Properties): Properties {
  const nullable = ({ type, enum: values, ...rest }: Record<string, unknown>) => ({
    ...rest,
    type: [type, "null"],
    ...(Array.isArray(values) && { enum: [...values, null] }),
  });
  return Object.fromEntries(Object.entries(properties).map(([field, schema]) => [field, nullable(schema)]));
}

const required: Properties = { name, url, subscribed_events: subscribedEvents };

/** Of an answer that is sent back. */
const ignored: Properties = Object.fromEntries(
  ["id", "has_secret", "created_at", "updated_at"].map((field) => [
    field,
    { readOnly: true, description: "Ignored, so that what GET gave can be sent back." },
  ]),
);

export const WEBHOOK_REQUEST_SCHEMAS = {
  /** Null for an optional field is the same as leaving it out. */
  CreateWebhookRequest: {
    type: "object",
    properties: { ...required, ...orNull(options), secret } as Properties,
    required: ["name", "url", "subscribed_events"],
    additionalProperties: false,
  },
  /** Null leaves a field unchanged, but for the secret, which it removes. */
  UpdateWebhookRequest: {
    type: "object",
    properties: { ...orNull({ ...required, ...options }), secret, ...ignored } as Properties,
    additionalProperties: false,
  },
};

/** A body that fits one of the schemas. */
export interface WebhookRequestBody {
  name?: string | null;
  url?: string | null;
  subscribed_events?: EventName[] | null;
  on_failure_mode?: WebhookSettings["onFailureMode"] | null;
  enabled?: boolean | null;
  delivery_timeout_seconds?: number | null;
  retry_backoff_seconds?: number | null;
  max_retries?: number | null;
  secret?: string | null;
}

export interface CreateWebhook {
  settings: WebhookSettings;
  secret: string | null;
}

export interface UpdateWebhook {
  settings: Partial<WebhookSettings>;
  /** Undefined leaves it as it is, null removes it. */
  secret: string | null | undefined;
}

/** A field that breaks a rule which its schema cannot say. */
export interface WebhookRequestFault {
  field: string;
  /** What came, with the user info that it may have; null for a secret. */
  value: string | null;
  allowed: string;
}

/**
 * Of a body that need not fit its schema otherwise.
 * @param policyOf which addresses may be delivered to at a port
 */
export function webhookRequestFaults(
  { url, secret }: Readonly<Record<string, unknown>>,
  policyOf: (port: number) => AddressPolicy,
): WebhookRequestFault[] {
  const faults: WebhookRequestFault[] = [];
  const allowed = typeof url === "string" ? allowedInsteadOf(url, policyOf) : undefined;
  if (allowed !== undefined) faults.push({ field: "url", value: url as string, allowed });
  if (typeof secret === "string" && !isUsableSecret(secret)) {
    faults.push({ field: "secret", value: null, allowed: "base64 where it follows whsec_" });
  }
  return faults;
}

/** What a valid body of CreateWebhookRequest asks for. */
export function createdWebhook(body: WebhookRequestBody): CreateWebhook {
  return { settings: { ...WEBHOOK_DEFAULTS, ...settingsOf(body) } as WebhookSettings, secret: body.secret ?? null };
}

/** What a valid body of UpdateWebhookRequest asks for. */
export function updatedWebhook(body: WebhookRequestBody): UpdateWebhook {
  return { settings: settingsOf(body), secret: body.secret };
}

/** The fields that are given, null counting as not given. */
function settingsOf(body: WebhookRequestBody): Partial<WebhookSettings> {
  const settings = {
    name: body.name,
    url: body.url,
    // A list of events is a set: an event that stands in it twice is delivered once.
    subscribedEvents: body.subscribed_events && [...new Set(body.subscribed_events)],
    onFailureMode: body.on_failure_mode,
    enabled: body.enabled,
    deliveryTimeoutSeconds: body.delivery_timeout_seconds,
    retryBackoffSeconds: body.retry_backoff_seconds,
    maxRetries: body.max_retries,
  };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined && value !== null));
}

/** What a URL must be that this one is not; undefined when it may be this one. */
function allowedInsteadOf(url: string, policyOf: (port: number) => AddressPolicy): string | undefined {
  if (!isWebhookUrl(url)) return "an absolute http or https URL without user info and fragment";
  const fault = urlAddressFault(new URL(url), policyOf);
  return fault === undefined ? undefined : `a URL that events may be delivered to: ${fault}`;
}

/** Whether events can be sent to this address, as far as its text goes. */
function isWebhookUrl(text: string): boolean {
  // Spaces and control characters would be dropped or escaped by the parser: the address kept is the one that was meant.
  if (!/^https?:\/\/[^/?#@\\]/i.test(text) || /[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  const authority = /^https?:\/\/([^/?#\\]*)/i.exec(text)?.[1] ?? "";
  return username === "" && password === "" && !authority.includes("@") && !text.includes("#");
}
