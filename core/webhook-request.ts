import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { isPlainObject, type JsonObject, type JsonValue } from "./json.js";
import { LIMITS } from "./limits.js";
import { ServiceError } from "./service-errors.js";
import { EVENT_NAMES, type EventName, ON_FAILURE_MODES, WEBHOOK_DEFAULTS, type WebhookSettings } from "./webhook.js";
import { isUsableSecret } from "./webhook-signature.js";

/** JSON Schemas of the two request bodies, for validation and for the OpenAPI document alike. */
const name = { type: "string", minLength: 1, maxLength: LIMITS.nameCharacters, format: "text" };
const url = {
  type: "string",
  maxLength: LIMITS.webhookUrlCharacters,
  format: "webhook-url",
  description: "http or https, without user info and fragment.",
};
const subscribedEvents = {
  type: "array",
  minItems: 1,
  maxItems: 64,
  items: { type: "string", enum: [...EVENT_NAMES] },
};
const secret = {
  type: "string",
  minLength: 1,
  maxLength: LIMITS.webhookSecretCharacters,
  format: "webhook-secret",
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

export const WEBHOOK_REQUEST_SCHEMAS = {
  CreateWebhookRequest: {
    type: "object",
    properties: { ...required, ...options, ...orNull({ secret }) } as Properties,
    required: ["name", "url", "subscribed_events"],
    additionalProperties: false,
  },
  /** Null leaves a field unchanged, but for the secret, which it removes. */
  UpdateWebhookRequest: {
    type: "object",
    properties: orNull({ ...required, ...options, secret }),
    additionalProperties: false,
  },
} as const;

/** What a valid request asks for. `secret`: undefined leaves it as it is, null removes it. */
export interface CreateWebhook {
  settings: WebhookSettings;
  secret: string | null;
}
export interface UpdateWebhook {
  settings: Partial<WebhookSettings>;
  secret: string | null | undefined;
}

interface RequestBody {
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

// All errors: an answer names every field that is wrong, so that a form can show them together.
const ajv = new Ajv({ allErrors: true, strict: true, strictTypes: false, verbose: true });
ajv.addFormat("text", (text: string) => text.isWellFormed());
ajv.addFormat("webhook-url", (text: string) => isWebhookUrl(text));
ajv.addFormat("webhook-secret", (text: string) => text.isWellFormed() && isUsableSecret(text));
const validateCreate = ajv.compile(WEBHOOK_REQUEST_SCHEMAS.CreateWebhookRequest);
const validateUpdate = ajv.compile(WEBHOOK_REQUEST_SCHEMAS.UpdateWebhookRequest);

/** @throws ServiceError invalid_parameter; its params name every field that is wrong, under `fields`, and the first of them */
export function parseCreateWebhook(body: unknown): CreateWebhook {
  const request = checked(body, validateCreate);
  const settings = { ...WEBHOOK_DEFAULTS, ...settingsOf(request) } as WebhookSettings;
  return { settings, secret: request.secret ?? null };
}

/** As `parseCreateWebhook`, for the fields that are to change. */
export function parseUpdateWebhook(body: unknown): UpdateWebhook {
  const request = checked(body, validateUpdate);
  return { settings: settingsOf(request), secret: request.secret };
}

/** The fields that are given, null counting as not given. */
function settingsOf(request: RequestBody): Partial<WebhookSettings> {
  const settings = {
    name: request.name,
    url: request.url,
    // A list of events is a set: an event that stands in it twice is delivered once.
    subscribedEvents: request.subscribed_events && [...new Set(request.subscribed_events)],
    onFailureMode: request.on_failure_mode,
    enabled: request.enabled,
    deliveryTimeoutSeconds: request.delivery_timeout_seconds,
    retryBackoffSeconds: request.retry_backoff_seconds,
    maxRetries: request.max_retries,
  };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined && value !== null));
}

/** Whether events can be sent to this address, as far as its text goes. */
function isWebhookUrl(text: string): boolean {
  // Spaces and control characters would be dropped or escaped by the parser: the address kept is the one that was meant.
  if (!/^https?:\/\/[^/?#@\\]/i.test(text) || /[\s\p{Cc}]/u.test(text) || !text.isWellFormed()) return false;
  if (!URL.canParse(text)) return false;
  const { username, password, hash } = new URL(text);
  const authority = /^https?:\/\/([^/?#\\]*)/i.exec(text)?.[1] ?? "";
  return username === "" && password === "" && !authority.includes("@") && hash === "" && !text.includes("#");
}

interface FieldFault {
  field: string;
  in: "body";
  value: JsonValue;
  allowed: JsonValue;
}

function checked(body: unknown, validate: ValidateFunction): RequestBody {
  if (!isPlainObject(body)) {
    const came = body === null ? "null" : Array.isArray(body) ? "an array" : `a ${typeof body}`;
    throw refusal([{ field: "", in: "body", value: came, allowed: "a JSON object" }]);
  }
  if (validate(body)) return body;
  const faults = new Map<string, FieldFault>();
  for (const error of validate.errors ?? []) {
    const fault = faultOf(error);
    // One entry a field: that of its first fault.
    if (!faults.has(fault.field)) faults.set(fault.field, fault);
  }
  throw refusal([...faults.values()]);
}

function refusal(faults: FieldFault[]): ServiceError {
  const [first] = faults as [FieldFault, ...FieldFault[]];
  const message = faults
    .map(({ field, allowed }) => {
      const wanted = Array.isArray(allowed) ? `one of ${allowed.join(", ")}` : String(allowed);
      return `${field === "" ? "the body" : field} must be ${wanted}`;
    })
    .join("; ");
  return new ServiceError("invalid_parameter", message, { ...first, fields: faults as unknown as JsonObject[] });
}

/** Longest value, and field name, that an error shows again. */
const SHOWN_CHARACTERS = 200;

function faultOf(error: ErrorObject): FieldFault {
  const { keyword, params, instancePath, data } = error;
  const field = instancePath.slice(1).replaceAll("/", ".");
  const fault = (allowed: JsonValue): FieldFault => ({ field, in: "body", value: shown(field, data), allowed });
  switch (keyword) {
    case "required":
      return {
        field: String(params.missingProperty),
        in: "body",
        value: null,
        allowed: "given: the field is required",
      };
    case "additionalProperties": {
      const known = Object.keys((error.parentSchema?.properties ?? {}) as object);
      // Its value is not shown: it may be a secret under a misspelt name.
      const unknown = cut(String(params.additionalProperty));
      return { field: unknown, in: "body", value: null, allowed: `absent: the fields are ${known.join(", ")}` };
    }
    case "enum":
      return fault((params.allowedValues as JsonValue[]).filter((value) => value !== null));
    case "type":
      return fault(`of type ${[params.type].flat().join(" or ")}`);
    case "minimum":
    case "maximum": {
      const { minimum, maximum } = error.parentSchema as { minimum: number; maximum: number };
      return fault(`${minimum} to ${maximum}`);
    }
    case "minLength":
    case "maxLength": {
      const { minLength = 0, maxLength } = error.parentSchema as { minLength?: number; maxLength: number };
      return fault(`${minLength} to ${maxLength} characters`);
    }
    case "minItems":
    case "maxItems":
      return fault(`a list of 1 to ${LIMITS_OF_EVENTS} events`);
    case "format":
      return fault(FORMATS[String(params.format)] ?? "well-formed Unicode text");
    default:
      return fault(error.message ?? "valid");
  }
}

const FORMATS: Record<string, string> = {
  "webhook-url": "an absolute http or https URL without user info and fragment",
  "webhook-secret": "well-formed Unicode text, base64 where it follows whsec_",
};
const LIMITS_OF_EVENTS = subscribedEvents.maxItems;

/** A value as an answer may show it: never the secret's, never a password in an address. */
function shown(field: string, value: unknown): JsonValue {
  if (field === "secret" || value === undefined) return null;
  if (value === null || typeof value === "boolean" || typeof value === "number") return value;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (field === "url") return cut(text.replace(/\/\/[^/?#]*@/, "//…@"));
  return cut(text);
}

function cut(text: string): string {
  const short = text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`;
  return short.toWellFormed();
}
