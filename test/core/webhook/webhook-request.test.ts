import t from "tap";
import { type ErrorData, ServiceError } from "../../../core/service-errors.js";
import type { AddressPolicy } from "../../../core/webhook/address-policy.js";
import {
  createdWebhook,
  updatedWebhook,
  WEBHOOK_REQUEST_SCHEMAS,
  type WebhookRequestBody,
  webhookRequestFaults,
} from "../../../core/webhook/webhook-request.js";
import { validators } from "../../../core/webhook/webhook-request-validators.js";
import { RequestBodyParser } from "../../../http/requests/request-body.js";

const MINIMAL = { name: "mes", url: "https://mes.factory:8443/hook?x=1", subscribed_events: ["ProgramCompleted"] };

const manyHeaders = (count: number) => Array.from({ length: count }, (_, nth) => [`X-${nth}`, "1"]);

/** Values that a field takes, and values that it does not, written down from the contract. */
const FIELDS: Record<string, { good: unknown[]; bad: unknown[] }> = {
  name: { good: ["a", "ü".repeat(255)], bad: ["", "x".repeat(256), 1, {}, [], "\ud800"] },
  url: {
    good: ["http://10.0.0.1", "HTTP://h/p?q", "https://[fd00::1]:1/x", `http://h/${"x".repeat(2039)}`],
    bad: [
      ...["", "h", "//h/p", "ftp://h", "http:/h", "http:h", "http://", "http:///p", "javascript:1", "http://h:99999"],
      ...[
        "http://u@h",
        "http://u:p@h",
        "http://@h",
        "http://h/#f",
        "http://h#",
        "http://h /x",
        " http://h",
        "http://h\n",
      ],
      ...[`http://h/${"x".repeat(2040)}`, 1, [], {}, "http://h/\ud800"],
    ],
  },
  subscribed_events: {
    good: [["ProgramStarted", "ProgramFailed", "ProgramCancelled", "WebhookTest"], ["ProgramFailed"]],
    bad: [[], ["Nope"], ["programcompleted"], "ProgramCompleted", [1], [null], {}, Array(65).fill("ProgramFailed")],
  },
  on_failure_mode: { good: ["IGNORE", "WARN"], bad: ["warn", "FAIL", "", 1, []] },
  enabled: { good: [true, false], bad: [0, "true", []] },
  delivery_timeout_seconds: { good: [1, 1.5, 300], bad: [0, 0.999, 300.001, -1, "3", 1e300, []] },
  retry_backoff_seconds: { good: [0, 0.25, 30], bad: [-0.1, 30.1, "1", true] },
  max_retries: { good: [0, 10], bad: [-1, 11, 1.5, "3", false] },
  signing: { good: ["hmac", "ed25519"], bad: ["v1", "", 1, []] },
  headers: {
    good: [{}, { "X-Key": "a b", "x_y.~z": "" }, { A: "\u00ff\t!" }, Object.fromEntries(manyHeaders(20))],
    bad: [
      1,
      "x",
      [],
      { A: 1 },
      { A: null },
      { "": "x" },
      { "a b": "x" },
      { "a:": "x" },
      { A: " x" },
      { A: "x " },
      { A: "\u0100" },
    ],
  },
  secret: { good: ["x", "whsec_YWJj", "ü".repeat(512)], bad: ["", "whsec_?", "x".repeat(513), 1, {}, "\ud800"] },
};
const REQUIRED = ["name", "url", "subscribed_events"];

const POLICY: AddressPolicy = { allow: null, deny: [], own: [], ownPort: 8000 };

/** As the routes take a body: by its schema, then by what a schema cannot say. */
function parser(name: keyof typeof WEBHOOK_REQUEST_SCHEMAS): RequestBodyParser {
  return new RequestBodyParser({
    name,
    description: "",
    schema: WEBHOOK_REQUEST_SCHEMAS[name],
    validate: validators[name],
    furtherFaults: (body) => webhookRequestFaults(body, () => POLICY),
  });
}
const createParser = parser("CreateWebhookRequest");
const updateParser = parser("UpdateWebhookRequest");
const parsed = (by: RequestBodyParser, body: unknown) =>
  by.parse(Buffer.from(JSON.stringify(body))) as WebhookRequestBody;
const parseCreateWebhook = (body: unknown) => createdWebhook(parsed(createParser, body));
const parseUpdateWebhook = (body: unknown) => updatedWebhook(parsed(updateParser, body));

function errorOf(parse: (body: unknown) => unknown, body: unknown): ErrorData | undefined {
  try {
    parse(body);
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return error.data;
    throw error;
  }
}

t.test("defaults, and every field as it came", async (t) => {
  t.same(parseCreateWebhook(MINIMAL), {
    settings: {
      ...{
        name: "mes",
        url: MINIMAL.url,
        subscribedEvents: ["ProgramCompleted"],
        onFailureMode: "IGNORE",
        enabled: true,
      },
      ...{ deliveryTimeoutSeconds: 3, retryBackoffSeconds: 1, maxRetries: 3, signing: "hmac" },
    },
    ...{ secret: null, headers: [] },
  });
  const all = {
    ...{ ...MINIMAL, on_failure_mode: "WARN", enabled: false, delivery_timeout_seconds: 1.5, retry_backoff_seconds: 0 },
    ...{ max_retries: 0, secret: "s", headers: { "X-Key": "1" }, signing: "ed25519" },
    ...{ subscribed_events: ["ProgramFailed", "ProgramStarted", "ProgramFailed"] },
  };
  t.same(parseCreateWebhook(all), {
    settings: {
      ...{
        name: "mes",
        url: MINIMAL.url,
        subscribedEvents: ["ProgramFailed", "ProgramStarted"],
        onFailureMode: "WARN",
      },
      ...{ enabled: false, deliveryTimeoutSeconds: 1.5, retryBackoffSeconds: 0, maxRetries: 0, signing: "ed25519" },
    },
    ...{ secret: "s", headers: [["X-Key", "1"]] },
  });
});

t.test("an update changes what it gives; null leaves a field and removes the secret", async (t) => {
  t.same(parseUpdateWebhook({}), { settings: {}, secret: undefined, headers: undefined });
  const nulls = Object.fromEntries(Object.keys(FIELDS).map((field) => [field, null]));
  t.same(parseUpdateWebhook(nulls), { settings: {}, secret: null, headers: undefined });
  t.same(parseUpdateWebhook({ max_retries: 0, enabled: false, secret: "x" }), {
    settings: { maxRetries: 0, enabled: false },
    ...{ secret: "x", headers: undefined },
  });
});

t.test("every field takes what it may, and a wrong one is named", async (t) => {
  for (const [field, { good, bad }] of Object.entries(FIELDS)) {
    for (const value of good) {
      const shown = `${field}: ${JSON.stringify(value).slice(0, 40)}`;
      t.equal(errorOf(parseCreateWebhook, { ...MINIMAL, [field]: value }), undefined, `create, ${shown}`);
      t.equal(errorOf(parseUpdateWebhook, { [field]: value }), undefined, `update, ${shown}`);
    }
    for (const [parse, body] of [
      ...bad.map((value) => [parseCreateWebhook, { ...MINIMAL, [field]: value }] as const),
      ...bad.map((value) => [parseUpdateWebhook, { [field]: value }] as const),
      ...(REQUIRED.includes(field) ? [[parseCreateWebhook, { ...MINIMAL, [field]: null }] as const] : []),
    ]) {
      const error = errorOf(parse, body);
      t.match(error, { code: "invalid_parameter", params: { in: "body" } }, `${field}: ${JSON.stringify(body)}`);
      t.ok(String(error?.params.field).startsWith(field), `names ${field}: ${error?.params.field}`);
      t.ok(String(error?.params.allowed).length > 0);
    }
  }
});

t.test("null for an optional field of a new webhook is the same as leaving it out", async (t) => {
  const optional = Object.keys(FIELDS).filter((field) => !REQUIRED.includes(field));
  t.equal(optional.length, 8);
  for (const field of optional) {
    t.same(parseCreateWebhook({ ...MINIMAL, [field]: null }), parseCreateWebhook(MINIMAL), field);
  }
  const nulls = Object.fromEntries(optional.map((field) => [field, null]));
  t.same(parseCreateWebhook({ ...MINIMAL, ...nulls }), parseCreateWebhook(MINIMAL));
});

t.test("an update ignores what only answers have, whatever it is; other fields are refused", async (t) => {
  const change = { max_retries: 1 };
  for (const value of ["x", 1, null, true, [], {}]) {
    const ignored = { id: value, has_secret: value, created_at: value, updated_at: value };
    t.same(parseUpdateWebhook({ ...change, ...ignored }), parseUpdateWebhook(change), JSON.stringify(value));
    for (const field of Object.keys(ignored)) {
      const error = errorOf(parseCreateWebhook, { ...MINIMAL, [field]: value });
      t.match(error, { params: { field, allowed: /^absent/ } }, "a new webhook takes none of them");
    }
  }
  const error = errorOf(parseUpdateWebhook, { id: "x", hassecret: true, created: 1 });
  t.match(error?.message, /hassecret must be absent/);
  t.match(error?.message, /created must be absent: the fields are name, url, [a-z_, ]+(;|$)/);
  t.notMatch(error?.message, /updated_at/);
});

t.test("an address that is never delivered to is refused, in every notation; a name is not looked at", async (t) => {
  const refused: [url: string, reason: RegExp][] = [
    ["http://169.254.169.254/latest", /link-local/],
    ["http://2852039166/", /link-local/],
    ["http://0xa9fea9fe/", /link-local/],
    ["http://0xA9.0376.43518/", /link-local/],
    ["http://169.254.43518./", /link-local/],
    ["http://%31%36%39.254.1.1/", /link-local/],
    ["http://\uff11\uff16\uff19.254.1.1/", /link-local/],
    ["http://[::ffff:169.254.169.254]/", /link-local/],
    ["http://[0:0:0:0:0:FFFF:A9FE:1]/", /link-local/],
    ["https://[fe80::1]/", /link-local/],
    ["http://0/", /unspecified/],
    ["http://127.0.0.1:8000/", /the service itself/],
    ["http://0x7f.1:8000/", /the service itself/],
    ["http://2130706433:8000", /the service itself/],
    ["https://[::1]:8000/", /the service itself/],
    ["https://[::ffff:127.0.0.9]:08000/", /the service itself/],
  ];
  for (const [url, reason] of refused) {
    for (const error of [errorOf(parseCreateWebhook, { ...MINIMAL, url }), errorOf(parseUpdateWebhook, { url })]) {
      t.match(error, { code: "invalid_parameter", params: { field: "url", in: "body", value: url } }, url);
      t.match(error?.params.allowed, /^a URL that events may be delivered to: /, url);
      t.match(error?.params.allowed, reason, url);
    }
  }
  for (const url of [
    ...["http://127.0.0.1/", "http://0x7f.1/", "http://[::1]:8001/", "http://10.0.0.1:8000/", "http://192.168.1.5/"],
    ...["http://localhost:8000/", "http://metadata.google.internal/", "http://169.254.169.254.nip.io/", "http://a1/"],
  ]) {
    t.equal(errorOf(parseCreateWebhook, { ...MINIMAL, url }), undefined, url);
  }
});

t.test("all wrong fields are named at once, with what is allowed", async (t) => {
  const error = errorOf(parseCreateWebhook, { subscribed_events: ["ProgramFailed", "Nope"], max_retries: 99, more: 1 });
  const faults = (error as ErrorData).params.faults as { field: string; allowed: unknown }[];
  t.same(faults.map(({ field }) => field).sort(), ["max_retries", "more", "name", "subscribed_events/1", "url"]);
  t.match(error?.message, /max_retries must be <= 10/);
  for (const field of REQUIRED) t.match(error?.message ?? "", field);
});

t.test("a broken URL and secret are named beside what the schema finds, a URL with what came", async (t) => {
  const error = errorOf(parseCreateWebhook, {
    ...MINIMAL,
    url: "ftp://h/x",
    secret: "whsec_?",
    max_retries: 99,
    more: 1,
  });
  const faults = (error as ErrorData).params.faults as { field: string; value: unknown }[];
  t.same(faults.map(({ field, value }) => [field, value]).sort(), [
    ["max_retries", 99],
    ["more", null],
    ["secret", null],
    ["url", "ftp://h/x"],
  ]);
  const tooMany = errorOf(parseCreateWebhook, { ...MINIMAL, url: "ftp://h", ...fieldsNamed("x", 25) });
  t.match(tooMany?.message, /; and 6 more$/, "one of them is the URL");
  const unread = `{"name":"n","url":"x","subscribed_events":[],"max_retries":1e999}`;
  const together = errorOf(() => createParser.parse(Buffer.from(unread)), undefined);
  const named = ((together as ErrorData).params.faults as { field: string }[]).map(({ field }) => field);
  t.same(named.sort(), ["max_retries", "subscribed_events", "url"], "also beside a number that JSON cannot hold");
});

function fieldsNamed(prefix: string, count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, nth) => [`${prefix}${nth}`, nth]));
}

t.test("an error is Unicode, whatever came", async (t) => {
  for (const body of [
    '{"\\ud800":1}',
    '{"url":"\\ud800","subscribed_events":["\\ud801x"]}',
    `{"${"x".repeat(199)}😀":1}`,
  ]) {
    const error = errorOf(() => createParser.parse(Buffer.from(body)), undefined);
    t.match(error, { code: "invalid_parameter" });
    t.ok(JSON.stringify(error).isWellFormed() && !/\\ud[89a-f]/i.test(JSON.stringify(error)), body);
  }
});

t.test("what is no object", async (t) => {
  for (const body of [null, [], "x", 1, true]) {
    t.match(errorOf(parseCreateWebhook, body), { code: "invalid_parameter", params: { field: "", allowed: /object/ } });
  }
});

t.test("no error shows a secret or a password", async (t) => {
  const bodies = [
    { ...MINIMAL, secret: "whsec_hush!" },
    { ...MINIMAL, secret: "hush".repeat(200) },
    { ...MINIMAL, secret: { hush: "hush" } },
    { ...MINIMAL, secrett: "hush" },
    ...[
      "http://user:hush@host/",
      "http:/user:hush@h/",
      "http:user:hush@h",
      "ftp://hush@h",
      "http://u:hu@sh:hush@h",
    ].map((url) => ({ ...MINIMAL, url })),
    ...["http:\\\\user:hush@h/", "http:/user:hush@h/", "http://user:hush/hush?hush#hush@h/"].map((start) => {
      return { ...MINIMAL, url: start + "x".repeat(2100) };
    }),
  ];
  for (const body of bodies) {
    const error = errorOf(parseCreateWebhook, body);
    t.ok(error !== undefined);
    t.notMatch(JSON.stringify(error), /hush/, JSON.stringify(error));
  }
});

t.test("a custom header that is not allowed is named, and no value is shown", async (t) => {
  const refused: [name: string, value: unknown, why: RegExp][] = [
    ...["Content-Type", "content-length", "HOST", "User-Agent", "Expect", "X-Service-Event", "x-service-new"].map(own),
    ...["webhook-id", "Webhook-Signature", "webhook-later", "Content-Encoding", "Date"].map(own),
    ...["Connection", "keep-alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Proxy-Authorization"].map(hop),
    ...["a\rb", "a\nb", "a\r\nX-B: c", "a\0", "\u007f", "hush\u2028"].map((value): [string, string, RegExp] => [
      "X-Key",
      value,
      /line break/,
    ]),
    ["X-Key", "v".repeat(4097), /at most 4096 characters/],
    ["x".repeat(129), "1", /at most 128 characters/],
    ["X\r\nY", "1", /no name of a header/],
    ["Grüße", "1", /no name of a header/],
    ["X-Key", 5, /of type string/],
  ];
  for (const [name, value, why] of refused) {
    for (const parse of [parseCreateWebhook, parseUpdateWebhook]) {
      const error = errorOf(parse, { ...MINIMAL, headers: { "X-Fine": "hush", [name]: value } });
      t.match(error, { code: "invalid_parameter", params: { in: "body", value: null, allowed: why } }, name);
      t.equal(error?.params.field, `headers/${name.slice(0, 128)}`);
      t.notMatch(JSON.stringify(error), /hush/);
    }
  }
  const twice = errorOf(parseCreateWebhook, { ...MINIMAL, headers: { "X-Key": "1", "x-key": "2" } });
  t.match(twice?.params, { field: "headers/x-key", allowed: /given once/ });
  const many = errorOf(parseCreateWebhook, { ...MINIMAL, headers: Object.fromEntries(manyHeaders(21)) });
  t.match(many?.params, { field: "headers", allowed: "at most 20 entries" });
});

function own(name: string): [string, string, RegExp] {
  return [name, "hush", /sets this header itself/];
}

function hop(name: string): [string, string, RegExp] {
  return [name, "hush", /hop-by-hop/];
}
