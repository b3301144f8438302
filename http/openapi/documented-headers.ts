import type { JsonSchema } from "../../core/json/described-schema.js";
import { oneOf } from "../../core/json/described-schema.js";
import { EVENT_MEANINGS } from "../../core/webhook/webhook.js";
import { SERVICE_SIGNATURE_HEADER } from "../../core/webhook/webhook-signature.js";

/** A header as the OpenAPI document describes it: of an answer, or of a delivery to a webhook. */
interface Header {
  readonly description: string;
  /** Absent: the answer may lack it. */
  readonly required?: true;
  readonly schema: JsonSchema;
}

export type Headers = Readonly<Record<string, Header>>;

const TEXT = { type: "string" };

/** Headers of every answer. */
export const TRACE_HEADER: Headers = {
  "X-Trace-ID": {
    description:
      "Names the request in the service's log: the trace-id of the request's `traceparent` if that is valid, else a new one.",
    required: true,
    schema: { type: "string", pattern: "^[0-9a-f]{32}$" },
  },
};

/** Headers of an answer that is no download, and of its 304. */
export const TAG_HEADER: Headers = {
  ETag: {
    description:
      "Identifies this state of the answer. Send it as If-None-Match: while nothing has changed, the answer is 304 without a body. " +
      "It is weak (`W/`), because the body may be compressed.",
    required: true,
    schema: TEXT,
  },
};

export const ENCODING_HEADER: Headers = {
  "Content-Encoding": {
    description: "`gzip` if the request accepts it and the body is large enough.",
    schema: TEXT,
  },
};

/** Headers of every answer about a file. */
export const VALIDATOR_HEADERS: Headers = {
  ETag: {
    description:
      "Identifies these bytes. Send it as If-None-Match to get a 304 if you have them already, as If-Range together with a Range, or as " +
      "If-Match to get a 412 if the file has changed.",
    required: true,
    schema: TEXT,
  },
  "Last-Modified": { description: "When the file was made, to the second.", required: true, schema: TEXT },
  "Accept-Ranges": { description: "`bytes`: Range can ask for a part.", required: true, schema: TEXT },
};

/** A header of every file. */
export const NAME_HEADER: Headers = {
  "Content-Disposition": {
    description: "`attachment`, with the name to save the file under.",
    required: true,
    schema: TEXT,
  },
};

/** Headers of an answer that carries bytes of a file. */
export const DOWNLOAD_HEADERS: Headers = {
  ...VALIDATOR_HEADERS,
  "Content-Length": {
    description: "Size of the body in bytes.",
    required: true,
    schema: { type: "integer", minimum: 0 },
  },
  ...NAME_HEADER,
};

export const PART_HEADER: Headers = {
  "Content-Range": {
    description: "The bytes that follow, and the size of the file: `bytes <first>-<last>/<size>`, counted from 0.",
    required: true,
    schema: TEXT,
  },
};

export const ALLOW_HEADER: Headers = {
  Allow: { description: "The methods that the path allows.", required: true, schema: TEXT },
};

/** Headers of errors, by status. */
export const ERROR_HEADERS: Readonly<Record<number, Headers>> = {
  401: { "WWW-Authenticate": { description: "`Bearer`.", required: true, schema: TEXT } },
  416: {
    "Content-Range": { description: "The size of the file in bytes: `bytes */<size>`.", required: true, schema: TEXT },
  },
  426: {
    Upgrade: { description: "`websocket`.", required: true, schema: TEXT },
    "Sec-WebSocket-Version": { description: "`13`.", required: true, schema: TEXT },
  },
  503: {
    "Retry-After": {
      description: "After how many seconds to try again. Absent if the service cannot tell.",
      schema: { type: "integer", minimum: 0 },
    },
  },
};

const SIGNED = "Sent only if the webhook has a secret.";

/** Headers of every delivery, as header parameters. */
export const DELIVERY_HEADERS: readonly JsonSchema[] = [
  header("X-Service-Event", true, oneOf(EVENT_MEANINGS, "The event's name, as `event_name` in the body.")),
  header("webhook-id", true, { ...TEXT, description: "The event's id, as `event_id` in the body." }),
  header(SERVICE_SIGNATURE_HEADER, false, {
    type: "string",
    pattern: "^t=\\d+,v1=[0-9a-f]{64}$",
    description:
      "`t=<unix seconds>,v1=<hex>`: the time of the attempt, and the HMAC-SHA256 of `<t>.<raw body>` with the whole secret's UTF-8 bytes as the key, also if it starts with `whsec_`. " +
      `Reject a request whose \`t\` differs from your own clock by more than 300 s. ${SIGNED}`,
  }),
  header("webhook-timestamp", false, {
    type: "string",
    pattern: "^\\d+$",
    description: `Time of the attempt in Unix seconds, as in Standard Webhooks. ${SIGNED}`,
  }),
  header("webhook-signature", false, {
    type: "string",
    pattern: "^v1,[A-Za-z0-9+/]+=*$",
    description:
      "`v1,<base64>`: the HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<raw body>`, as in Standard Webhooks. If the secret starts with " +
      `\`whsec_\`, the key is the rest of it, base64-decoded; else the key is the secret's UTF-8 bytes. ${SIGNED}`,
  }),
  header("User-Agent", true, { ...TEXT, description: "`inspection-results-service/<release>`." }),
];

function header(name: string, required: boolean, { description, ...schema }: JsonSchema): JsonSchema {
  return { name, in: "header", required, description, schema };
}
