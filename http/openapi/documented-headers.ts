import type { JsonSchema } from "../../core/json/described-schema.js";
import { oneOf } from "../../core/json/described-schema.js";
import { EVENT_MEANINGS } from "../../core/webhook/webhook.js";
import { SERVICE_SIGNATURE_HEADER } from "../../core/webhook/webhook-signature.js";

/** Headers as the OpenAPI document describes them: of answers, and of what is posted to webhooks. */
interface Header {
  readonly description: string;
  /** Absent: the answer may be without it. */
  readonly required?: true;
  readonly schema: JsonSchema;
}

export type Headers = Readonly<Record<string, Header>>;

const TEXT = { type: "string" };

/** Every answer has them. */
export const TRACE_HEADER: Headers = {
  "X-Trace-ID": {
    description:
      "Names the request in the service's log: the trace-id of the request's `traceparent` if that is valid, else a fresh one.",
    required: true,
    schema: { type: "string", pattern: "^[0-9a-f]{32}$" },
  },
};

/** Of an answer that is no download, and of the 304 in its place. */
export const TAG_HEADER: Headers = {
  ETag: {
    description:
      "Names this state of the answer. Send it as If-None-Match: while nothing has changed, the answer is 304 without a body. " +
      "It is weak (`W/`), as the bytes may come compressed.",
    required: true,
    schema: TEXT,
  },
};

export const ENCODING_HEADER: Headers = {
  "Content-Encoding": {
    description: "`gzip` where the request accepts it and the body is large enough to be worth it.",
    schema: TEXT,
  },
};

/** Of every answer about a file. */
export const VALIDATOR_HEADERS: Headers = {
  ETag: {
    description:
      "Names these bytes. Send it as If-None-Match to be told that you have them already, as If-Range with a Range, or as If-Match: " +
      "412 when the file is another by now.",
    required: true,
    schema: TEXT,
  },
  "Last-Modified": { description: "When the file was made, to the second.", required: true, schema: TEXT },
  "Accept-Ranges": { description: "`bytes`: a part can be asked for with Range.", required: true, schema: TEXT },
};

/** Of an answer that brings bytes of a file. */
export const DOWNLOAD_HEADERS: Headers = {
  ...VALIDATOR_HEADERS,
  "Content-Length": { description: "Bytes that follow.", required: true, schema: { type: "integer", minimum: 0 } },
  "Content-Disposition": {
    description: "`attachment` with the file's name, for saving it.",
    required: true,
    schema: TEXT,
  },
};

export const PART_HEADER: Headers = {
  "Content-Range": {
    description: "Which bytes these are, and of how many: `bytes <first>-<last>/<size>`, counted from 0.",
    required: true,
    schema: TEXT,
  },
};

export const ALLOW_HEADER: Headers = {
  Allow: { description: "The methods that the path has.", required: true, schema: TEXT },
};

/** What an error carries beside its envelope, by its status. */
export const ERROR_HEADERS: Readonly<Record<number, Headers>> = {
  401: { "WWW-Authenticate": { description: "`Bearer`.", required: true, schema: TEXT } },
  416: {
    "Content-Range": { description: "How many bytes the file has: `bytes */<size>`.", required: true, schema: TEXT },
  },
  503: {
    "Retry-After": {
      description: "When to try again, in seconds. Absent where the service cannot tell.",
      schema: { type: "integer", minimum: 0 },
    },
  },
};

const SIGNED = "Only where the webhook has a secret.";

/** Of every delivery, as header parameters. */
export const DELIVERY_HEADERS: readonly JsonSchema[] = [
  header("X-Service-Event", true, oneOf(EVENT_MEANINGS, "The event's name, as `event_name` in the body.")),
  header("webhook-id", true, { ...TEXT, description: "The event's id, as `event_id` in the body." }),
  header(SERVICE_SIGNATURE_HEADER, false, {
    type: "string",
    pattern: "^t=\\d+,v1=[0-9a-f]{64}$",
    description:
      "`t=<unix seconds>,v1=<hex>`: when the attempt was made, and HMAC-SHA256 over `<t>.<raw body>` with the secret's UTF-8 bytes as the key. " +
      `Refuse a request whose \`t\` is more than 300 s from your own clock, in either direction. ${SIGNED}`,
  }),
  header("webhook-timestamp", false, {
    type: "string",
    pattern: "^\\d+$",
    description: `When the attempt was made, in Unix seconds; as Standard Webhooks has it. ${SIGNED}`,
  }),
  header("webhook-signature", false, {
    type: "string",
    pattern: "^v1,[A-Za-z0-9+/]+=*$",
    description:
      "`v1,<base64>`: HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<raw body>`, as Standard Webhooks has it. The key is what follows " +
      `\`whsec_\` in the secret, base64-decoded; of another secret, its UTF-8 bytes. ${SIGNED}`,
  }),
  header("User-Agent", true, { ...TEXT, description: "`inspection-results-service/<release>`." }),
];

function header(name: string, required: boolean, { description, ...schema }: JsonSchema): JsonSchema {
  return { name, in: "header", required, description, schema };
}
