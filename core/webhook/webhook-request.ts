import {
  flag,
  integer,
  type JsonSchema,
  list,
  nullable,
  number,
  oneOf,
  type Properties,
  text,
} from "../json/described-schema.js";
import { pointerPart } from "../json/non-json.js";
import { LIMITS } from "../limits.js";
import { parseTimeBoundUs, TIME_LIMIT_US } from "../timestamps.js";
import { type AddressPolicy, urlAddressFault } from "./address-policy.js";
import { CUSTOM_HEADER_LIMITS, customHeaderFaults, customHeaders } from "./custom-headers.js";
import { RESENT_MEANINGS, type ResendQuery, type ResentStatus } from "./resend.js";
import {
  type CustomHeader,
  EVENT_MEANINGS,
  type EventName,
  ON_FAILURE_MODE_MEANINGS,
  SIGNING_MEANINGS,
  WEBHOOK_DEFAULTS,
  type WebhookSettings,
} from "./webhook.js";
import { isUsableSecret } from "./webhook-signature.js";

/** Schemas of the settings, for requests and answers alike. */
export const WEBHOOK_SETTINGS = {
  name: text("What people call the webhook. Names need not be unique."),
  url: text(
    "Where events are posted: an absolute http or https URL without user info and fragment. A host to which the service may not deliver is refused. " +
      "Redirects are not followed.",
  ),
  subscribed_events: list(oneOf(EVENT_MEANINGS, "An event."), "Which events are posted to it."),
  on_failure_mode: oneOf(
    ON_FAILURE_MODE_MEANINGS,
    "What a failed delivery leaves behind. No mode changes the outcome of a run.",
  ),
  enabled: flag(
    "Whether events are posted to it. While it is false, no event is posted, pending deliveries fail, and what was missed is not posted later.",
  ),
  delivery_timeout_seconds: number("How long an attempt may take until the receiver has answered, in seconds."),
  retry_backoff_seconds: number("Pause between two attempts, in seconds."),
  max_retries: integer(
    `Attempts after the first: a delivery makes 1 + max_retries in all, as far as they fit into ${LIMITS.dispatchWindowMs / 1000} seconds ` +
      "from the first one on.",
  ),
  signing: oneOf(SIGNING_MEANINGS, "How the header `webhook-signature` is made."),
} as const satisfies Properties;

/**
 * JSON Schemas of the two request bodies, for validation and for the OpenAPI document. `webhookRequestFaults` checks what a schema cannot say.
 * `default` only documents the value; `createdWebhook` fills it in.
 */
const required: Properties = {
  name: { ...WEBHOOK_SETTINGS.name, minLength: 1, maxLength: LIMITS.nameCharacters },
  url: { ...WEBHOOK_SETTINGS.url, maxLength: LIMITS.webhookUrlCharacters },
  subscribed_events: { ...WEBHOOK_SETTINGS.subscribed_events, minItems: 1, maxItems: 64 },
};

const options: Properties = {
  on_failure_mode: { ...WEBHOOK_SETTINGS.on_failure_mode, default: WEBHOOK_DEFAULTS.onFailureMode },
  enabled: { ...WEBHOOK_SETTINGS.enabled, default: WEBHOOK_DEFAULTS.enabled },
  delivery_timeout_seconds: {
    ...WEBHOOK_SETTINGS.delivery_timeout_seconds,
    ...LIMITS.deliveryTimeoutSeconds,
    default: WEBHOOK_DEFAULTS.deliveryTimeoutSeconds,
  },
  retry_backoff_seconds: {
    ...WEBHOOK_SETTINGS.retry_backoff_seconds,
    ...LIMITS.retryBackoffSeconds,
    default: WEBHOOK_DEFAULTS.retryBackoffSeconds,
  },
  max_retries: { ...WEBHOOK_SETTINGS.max_retries, ...LIMITS.maxRetries, default: WEBHOOK_DEFAULTS.maxRetries },
  signing: { ...WEBHOOK_SETTINGS.signing, default: WEBHOOK_DEFAULTS.signing },
};

const SECRET: JsonSchema = {
  ...text(
    "Signs every delivery, so that the receiver can tell it from others. It is never shown again. What follows `whsec_` must be base64.",
  ),
  minLength: 1,
  maxLength: LIMITS.webhookSecretCharacters,
  writeOnly: true,
};

/** @param whenNull says what null does */
function headers(whenNull: string): JsonSchema {
  const object: JsonSchema = {
    type: "object",
    description:
      "Headers that go with each delivery, such as a key for a gateway: names and their values. Values are never shown again. Headers that the service " +
      "sets itself and hop-by-hop headers are refused.",
  };
  return {
    ...nullable(object, whenNull),
    additionalProperties: { type: "string", writeOnly: true },
    maxProperties: CUSTOM_HEADER_LIMITS.headers,
    writeOnly: true,
  };
}

/** @param whenNull says what null does, which is the same as leaving the field out */
function orNull(properties: Properties, whenNull: string): Properties {
  return Object.fromEntries(Object.entries(properties).map(([field, schema]) => [field, nullable(schema, whenNull)]));
}

/** Properties of an update, which has no defaults. */
function unchangedOrNull(properties: Properties): Properties {
  const bare = Object.entries(properties).map(([field, { default: _, ...schema }]) => [field, schema]);
  return orNull(Object.fromEntries(bare), "leaves it as it is");
}

/** Read-only properties of an answer, accepted so that a client can send the answer back. */
const ignored: Properties = Object.fromEntries(
  [
    ...["id", "has_secret", "previous_secret_expires_at", "header_names", "created_at", "updated_at"],
    ...["deliveries_24h", "last_success_at", "last_failure_at", "last_error", "cell"],
  ].map((field) => [field, { readOnly: true, description: "Ignored, so that what GET gave can be sent back." }]),
);

export const WEBHOOK_REQUEST_SCHEMAS = {
  CreateWebhookRequest: {
    type: "object",
    description: "A new webhook. A setting that is left out, or null, gets its default.",
    properties: {
      ...required,
      ...orNull(options, "gives it its default"),
      secret: nullable(SECRET, "or left out: deliveries have no HMAC signature"),
      headers: headers("or left out: none"),
    } as Properties,
    required: ["name", "url", "subscribed_events"],
    additionalProperties: false,
  },
  UpdateWebhookRequest: {
    type: "object",
    description:
      "What is to change of a webhook. A setting that is left out, or null, stays as it is; a secret that is null is removed.",
    properties: {
      ...unchangedOrNull({ ...required, ...options }),
      secret: nullable(SECRET, "removes it, and any secret before it"),
      headers: headers("leaves them as they are; all of them are replaced by what is given"),
      ...ignored,
    } as Properties,
    additionalProperties: false,
  },
  RotateSecretRequest: {
    type: "object",
    description: "A new secret, and how long the present one signs beside it.",
    properties: {
      secret: SECRET,
      overlap_seconds: {
        ...integer(
          "How long each delivery carries signatures of both secrets, in seconds from now. 0: the present one ends at once.",
        ),
        ...LIMITS.secretOverlapSeconds,
      },
      force: {
        ...flag(
          "Rotate even if two secrets overlap already: the present secret and the new one overlap from now on, and the one before ends at once.",
        ),
        default: false,
      },
    } as Properties,
    required: ["secret"],
    additionalProperties: false,
  },
  ResendRequest: {
    type: "object",
    description: "Which deliveries of a webhook are to have one more attempt.",
    properties: {
      since: text("Only deliveries that were created at this time or later, and missed events from this time on."),
      until: nullable(text("Only those before this time."), "or left out: until now"),
      statuses: {
        ...list(oneOf(RESENT_MEANINGS, "A state."), "Which of them, by what they are now."),
        ...{ minItems: 1, maxItems: 4, default: ["failed"] },
      },
      event_names: nullable(
        { ...list(oneOf(EVENT_MEANINGS, "An event."), "Only deliveries of these events."), minItems: 1, maxItems: 64 },
        "or left out: of every event",
      ),
      per_second: {
        ...integer("How many attempts begin within a second at most."),
        ...LIMITS.resendPerSecond,
      },
    } as Properties,
    required: ["since"],
    additionalProperties: false,
  },
};

/** A body of ResendRequest. */
export interface ResendBody {
  since: string;
  until?: string | null;
  statuses?: ResentStatus[];
  event_names?: EventName[] | null;
  per_second?: number;
}

/** A body of RotateSecretRequest. */
export interface RotateSecretBody {
  secret: string;
  overlap_seconds?: number;
  force?: boolean;
}

export interface RotateSecret {
  secret: string;
  overlapSeconds: number;
  force: boolean;
}

/** A body that fits the schema of a new webhook, or of a changed one. */
export interface WebhookRequestBody {
  name?: string | null;
  url?: string | null;
  subscribed_events?: EventName[] | null;
  on_failure_mode?: WebhookSettings["onFailureMode"] | null;
  enabled?: boolean | null;
  delivery_timeout_seconds?: number | null;
  retry_backoff_seconds?: number | null;
  max_retries?: number | null;
  signing?: WebhookSettings["signing"] | null;
  secret?: string | null;
  headers?: Readonly<Record<string, string>> | null;
}

export interface CreateWebhook {
  settings: WebhookSettings;
  secret: string | null;
  headers: readonly CustomHeader[];
}

export interface UpdateWebhook {
  settings: Partial<WebhookSettings>;
  /** Undefined leaves it as it is, null removes it. */
  secret: string | null | undefined;
  /** All of them; undefined leaves them as they are. */
  headers: readonly CustomHeader[] | undefined;
}

/** A field that breaks a rule which the schema cannot express. */
export interface WebhookRequestFault {
  field: string;
  /** The value sent, which may contain user info; null for what is write-only. */
  value: string | null;
  allowed: string;
}

/**
 * The faults of a body that a schema cannot find. The body may have other faults too.
 *
 * @param policyOf gives the address policy for a port
 */
export function webhookRequestFaults(
  { url, secret, headers }: Readonly<Record<string, unknown>>,
  policyOf: (port: number) => AddressPolicy,
): WebhookRequestFault[] {
  const faults: WebhookRequestFault[] = [];
  const allowed = typeof url === "string" ? allowedInsteadOf(url, policyOf) : undefined;
  if (allowed !== undefined) faults.push({ field: "url", value: url as string, allowed });
  if (typeof secret === "string" && !isUsableSecret(secret)) {
    faults.push({ field: "secret", value: null, allowed: "base64 where it follows whsec_" });
  }
  if (typeof headers === "object" && headers !== null && !Array.isArray(headers)) {
    const wrong = customHeaderFaults(headers as Record<string, unknown>);
    faults.push(...wrong.map(({ name, allowed }) => ({ field: `headers/${pointerPart(name)}`, value: null, allowed })));
  }
  return faults;
}

/** What a valid body of CreateWebhookRequest asks for. */
export function createdWebhook(body: WebhookRequestBody): CreateWebhook {
  const settings = { ...WEBHOOK_DEFAULTS, ...settingsOf(body) } as WebhookSettings;
  return { settings, secret: body.secret ?? null, headers: customHeaders(body.headers ?? {}) };
}

/** What a valid body of UpdateWebhookRequest asks for. */
export function updatedWebhook(body: WebhookRequestBody): UpdateWebhook {
  const headers = body.headers ? customHeaders(body.headers) : undefined;
  return { settings: settingsOf(body), secret: body.secret, headers };
}

/** What a valid body of RotateSecretRequest asks for. */
export function rotatedSecret({ secret, overlap_seconds, force = false }: RotateSecretBody): RotateSecret {
  return { secret, overlapSeconds: overlap_seconds ?? LIMITS.secretOverlapSeconds.default, force };
}

/** The faults of a body of ResendRequest that a schema cannot find. */
export function resendRequestFaults({ since, until }: Readonly<Record<string, unknown>>): WebhookRequestFault[] {
  const faults: WebhookRequestFault[] = [];
  for (const [field, value] of Object.entries({ since, until })) {
    if (typeof value !== "string" || parseTimeBoundUs(value, "up") !== undefined) continue;
    faults.push({ field, value, allowed: "an ISO 8601 date-time such as 2026-01-31T12:00:00.000000Z" });
  }
  if (faults.length > 0 || typeof since !== "string" || typeof until !== "string") return faults;
  const { sinceUs, untilUs } = resendQuery({ since, until });
  return sinceUs < untilUs ? [] : [{ field: "until", value: until, allowed: "after since" }];
}

/** What a valid body of ResendRequest asks for. */
export function resendQuery({ since, until, statuses = ["failed"], event_names }: ResendBody): ResendQuery {
  return {
    sinceUs: parseTimeBoundUs(since, "up") ?? 0,
    untilUs: (until ? parseTimeBoundUs(until, "up") : undefined) ?? TIME_LIMIT_US,
    statuses,
    eventNames: event_names ?? undefined,
  };
}

/** The settings that the body gives. Null counts as not given. */
function settingsOf(body: WebhookRequestBody): Partial<WebhookSettings> {
  const settings = {
    name: body.name,
    url: body.url,
    // An event that is listed twice is delivered once.
    subscribedEvents: body.subscribed_events && [...new Set(body.subscribed_events)],
    onFailureMode: body.on_failure_mode,
    enabled: body.enabled,
    deliveryTimeoutSeconds: body.delivery_timeout_seconds,
    retryBackoffSeconds: body.retry_backoff_seconds,
    maxRetries: body.max_retries,
    signing: body.signing,
  };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined && value !== null));
}

/** What is allowed instead of this URL; undefined when the URL is allowed. */
function allowedInsteadOf(url: string, policyOf: (port: number) => AddressPolicy): string | undefined {
  if (!isWebhookUrl(url)) return "an absolute http or https URL without user info and fragment";
  const fault = urlAddressFault(new URL(url), policyOf);
  return fault === undefined ? undefined : `a URL that events may be delivered to: ${fault}`;
}

/** Whether the text is a URL to which events can be sent. */
export function isWebhookUrl(text: string): boolean {
  // The URL parser drops or escapes spaces and control characters, so what is kept would differ from what was sent.
  if (!/^https?:\/\/[^/?#@\\]/i.test(text) || /[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  const authority = /^https?:\/\/([^/?#\\]*)/i.exec(text)?.[1] ?? "";
  return username === "" && password === "" && !authority.includes("@") && !text.includes("#");
}
