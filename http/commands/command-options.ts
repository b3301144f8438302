import { canonicalUuid, isUuidV7 } from "../../core/identifiers.js";
import { parseAddressRange } from "../../core/webhook/address-policy.js";
import { DEFAULT_FINALIZE_TIMEOUT_MS } from "../../workers/recorder/recorder-messages.js";
import type { RoomAmount } from "../../workers/recorder/upkeep/disk-room.js";
import { LOG_FORMATS, type LogFormat } from "../log/log-format.js";
import { LOG_LEVELS, type LogLevel } from "../log/log-level.js";
import { isKeyName, KEY_SCOPES, type KeyScope } from "../requests/api-keys.js";
import { FRONT_CHOICES, type FrontChoice } from "../server/server-name.js";

/** An option of the command line, of the environment (INSPECTION_…) and of the configuration file. */
export interface OptionDeclaration<Value> {
  /** What the help shows behind the name; undefined for a switch. */
  readonly placeholder?: string;
  readonly description: string;
  /** What is allowed, for errors. */
  readonly allowed: string;
  /** Undefined for a text that is not allowed. */
  parse(text: string): Value | undefined;
  readonly fallback: Value;
  /** The fallback as the help shows it; undefined: not shown. */
  readonly shownFallback?: string;
}

export type OptionDeclarations = Readonly<Record<string, OptionDeclaration<unknown>>>;

export type OptionValues<Declarations extends OptionDeclarations> = {
  readonly [Name in keyof Declarations]: Declarations[Name] extends OptionDeclaration<infer Value> ? Value : never;
};

function option<Value>(declaration: OptionDeclaration<Value>): OptionDeclaration<Value> {
  return declaration;
}

function nonEmpty(text: string): string | undefined {
  return text === "" || text.includes("\0") ? undefined : text;
}

function path<Fallback extends string | null>(description: string, fallback: Fallback, shownFallback?: string) {
  return option<string | Fallback>({
    placeholder: "<path>",
    description,
    allowed: "a path",
    parse: nonEmpty,
    fallback,
    ...(shownFallback !== undefined && { shownFallback }),
  });
}

function choice<const Choice extends string>(description: string, choices: readonly Choice[], fallback: Choice) {
  return option<Choice>({
    placeholder: "<choice>",
    description: `${description} (${choices.join(", ")})`,
    allowed: `one of ${choices.join(", ")}`,
    parse: (text) => choices.find((one) => one === text),
    fallback,
    shownFallback: fallback,
  });
}

function integer<Fallback>(description: string, minimum: number, maximum: number, fallback: Fallback, shown?: string) {
  return option<number | Fallback>({
    placeholder: "<n>",
    description,
    allowed: `an integer from ${minimum} to ${maximum}`,
    parse(text) {
      const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
      return value >= minimum && value <= maximum ? value : undefined;
    },
    fallback,
    ...(shown !== undefined && { shownFallback: shown }),
  });
}

/** A bound that is off unless it is given. */
function bound(description: string, maximum: number) {
  const { parse, allowed } = integer(description, 1, maximum, null);
  return option<number | null>({
    placeholder: "<n>",
    description,
    allowed: `off, or ${allowed}`,
    parse: (text) => (text === "off" ? null : parse(text)),
    fallback: null,
    shownFallback: "off",
  });
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
/** Timers of the platform end at 2^31 milliseconds. */
const MAXIMUM_DURATION_MS = 24 * 24 * 3_600_000;

function parseDurationMs(text: string): number | undefined {
  const match = /^(\d{1,10}(?:\.\d{1,3})?)(ms|s|m|h)?$/.exec(text);
  if (match === null) return undefined;
  const durationMs = Math.round(Number(match[1]) * (UNIT_MS[match[2] ?? "s"] as number));
  return durationMs <= MAXIMUM_DURATION_MS ? durationMs : undefined;
}

const DURATION = "a duration such as 30 (seconds), 500ms, 2m or 1h, at most 24 days";

const UNIT_BYTES: Record<string, number> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 };

function parseBytes(text: string): number | undefined {
  const match = /^(\d{1,16})(KiB|MiB|GiB|TiB)?$/.exec(text);
  if (match === null) return undefined;
  const bytes = Number(match[1]) * (UNIT_BYTES[match[2] ?? ""] ?? 1);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

function parseRoomAmount(text: string): RoomAmount | undefined {
  const share = /^(\d{1,2}(?:\.\d{1,3})?)%$/.exec(text);
  if (share !== null) return { share: Number(share[1]) / 100 };
  const bytes = parseBytes(text);
  return bytes === undefined ? undefined : { bytes };
}

function roomAmount(description: string, shownFallback: string) {
  return option<RoomAmount | null>({
    placeholder: "<room>",
    description,
    allowed: "bytes such as 1073741824, 512MiB or 1GiB, or a share of the disk below 100% such as 5%",
    parse: parseRoomAmount,
    fallback: null,
    shownFallback,
  });
}

export interface HostPort {
  host: string;
  port: number;
}

function parseHostPort(text: string): HostPort | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:[\]/]+)):(\d{1,5})$/.exec(text);
  if (match === null || Number(match[3]) > 65_535) return undefined;
  return { host: (match[1] ?? match[2]) as string, port: Number(match[3]) };
}

function parseBaseUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isPlain = url.search === "" && url.hash === "" && url.username === "" && url.password === "";
  if (!isPlain || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
  return url.href.replace(/\/+$/, "");
}

function parseOrigins(text: string): readonly string[] | undefined {
  return listOf(text, (one) => {
    if (one === "*") return one;
    if (!/^https?:\/\/[^/]+$/i.test(one) || !URL.canParse(one)) return undefined;
    // As browsers send it: in lower case, without the default port, international names in ASCII.
    const { origin, href } = new URL(one);
    return href === `${origin}/` ? origin : undefined;
  });
}

function parseHostNames(text: string): readonly string[] | undefined {
  return listOf(text, (one) => {
    if (!/^[^\s:/?#@%*\\[\]]+$/.test(one) || !URL.canParse(`http://${one}`)) return undefined;
    // As clients send it: international names in ASCII.
    return new URL(`http://${one}`).hostname;
  });
}

/** Parts with commas between, each as `parse` reads it; undefined when it does not take one of them. */
function listOf(text: string, parse: (part: string) => string | undefined): readonly string[] | undefined {
  const parts = text.split(",").map((part) => parse(part.trim()));
  return parts.every((part) => part !== undefined) ? parts : undefined;
}

function parseSwitch(text: string): boolean | undefined {
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : undefined;
}

function ranges(description: string) {
  return option<readonly string[]>({
    placeholder: "<cidr,…>",
    description,
    allowed: "IP addresses or CIDR ranges with commas between, such as 10.0.0.0/8,fd00::/8",
    parse(text) {
      const parts = text.split(",").map((part) => part.trim());
      return parts.every((part) => parseAddressRange(part) !== undefined) ? parts : undefined;
    },
    fallback: [],
  });
}

export const SERVE_OPTIONS = {
  data: path("data directory; created if missing", "data", "data"),
  host: option<string>({
    placeholder: "<host>",
    description: "address to listen on; any but a loopback one needs --api-keys or --open",
    allowed: "a host name or an IP address",
    parse: (text) => (/^[A-Za-z0-9._:-]{1,255}$/.test(text) ? text : undefined),
    fallback: "127.0.0.1",
    shownFallback: "127.0.0.1",
  }),
  port: integer("port to listen on; 0 takes a free one", 0, 65_535, 8000, "8000"),
  open: option<boolean>({
    description: "serve without authentication on an address that is not loopback",
    allowed: "true or false",
    parse: parseSwitch,
    fallback: false,
  }),
  "api-keys": path("file of API keys (`keys add`); every request but /livez then needs one", null),
  "cors-origin": option<readonly string[]>({
    placeholder: "<origins>",
    description: "origins whose pages may use the interface, reading and writing, separated by commas; * for any",
    allowed: "* or origins such as https://dashboard.factory, separated by commas",
    parse: parseOrigins,
    fallback: [],
  }),
  "allowed-host": option<readonly string[]>({
    placeholder: "<names>",
    description:
      "further names that clients reach the service by, separated by commas; without --api-keys, a request for another host is refused",
    allowed: "host names without a port such as cell-7.factory, separated by commas",
    parse: parseHostNames,
    fallback: [],
  }),
  "base-url": option<string | undefined>({
    placeholder: "<url>",
    description: "what absolute links start with; default: the request's Host",
    allowed: "an http or https URL without user, query and fragment",
    parse: parseBaseUrl,
    fallback: undefined,
  }),
  front: choice<FrontChoice>(
    "HTTP server: uWebSockets.js or node:http; auto takes uWebSockets.js where it loads",
    FRONT_CHOICES,
    "auto",
  ),
  "max-connections": integer<number | null>(
    "connections of HTTP clients at a time; one address may have three quarters of them",
    1,
    1_000_000,
    null,
    "what the limit of descriptors leaves",
  ),
  "tls-cert": path("certificate chain in PEM: serves HTTPS; needs --tls-key", null),
  "tls-key": path("private key in PEM of --tls-cert", null),
  durability: choice("when a message is acknowledged", ["full", "interval", "none"], "full"),
  "finalize-timeout": option<number>({
    placeholder: "<duration>",
    description: "how long a finalizing run waits for open jobs and captures",
    allowed: DURATION,
    parse: parseDurationMs,
    fallback: DEFAULT_FINALIZE_TIMEOUT_MS,
    shownFallback: `${DEFAULT_FINALIZE_TIMEOUT_MS / 1000}s`,
  }),
  "orphan-timeout": option<number | null>({
    placeholder: "<duration>",
    description: "fail a run whose producer stays away for so long",
    allowed: `off, or ${DURATION}`,
    parse: (text) => (text === "off" ? null : parseDurationMs(text)),
    fallback: null,
    shownFallback: "off",
  }),
  "exit-after-failure": option<number>({
    placeholder: "<duration>",
    description:
      "when nothing can be recorded any more (a failed disk), exit 1 after so long, for a supervisor to start anew; 0: never",
    allowed: DURATION,
    parse: parseDurationMs,
    fallback: 60_000,
    shownFallback: "60s",
  }),
  "artefact-threads": integer<number | null>(
    "threads that make formats of captures; one more is there for clients",
    1,
    256,
    null,
    "one less than there are cores",
  ),
  "disk-low-bytes": roomAmount("captures wait while less room is left on the disk", "1GiB, at most 5%"),
  "disk-critical-bytes": roomAmount("all messages wait while less room is left on the disk", "256MiB, at most 1%"),
  "retain-days": bound("remove captures of runs that ended so many days ago; records and reports stay", 36_500),
  "retain-bytes": option<number | null>({
    placeholder: "<bytes>",
    description: "remove the oldest ended runs' captures beyond so many bytes in all; records and reports stay",
    allowed: "off, or bytes from 1 on such as 2147483648, 512MiB or 2GiB",
    parse: (text) => (text === "off" ? null : parseBytes(text) || undefined),
    fallback: null,
    shownFallback: "off",
  }),
  "webhook-allow": ranges("address ranges that webhooks may be delivered to, and no others"),
  "webhook-deny": ranges("address ranges that webhooks are never delivered to"),
  "webhook-ca": path("certificate authority in PEM that receivers may be signed by, beside the system's", null),
  "cell-socket": path("Unix socket of the cell link", null, "<data>/cell.sock"),
  "cell-listen": option<HostPort | null>({
    placeholder: "<host:port>",
    description: "listen for producers on TCP too; needs --cell-token-file",
    allowed: "HOST:PORT",
    parse: parseHostPort,
    fallback: null,
  }),
  "cell-token-file": path("file with the token that producers send over TCP", null),
  "log-level": choice<LogLevel>("least level of log lines on stderr", LOG_LEVELS, "info"),
  "log-format": choice<LogFormat>("format of log lines; auto: pretty on a terminal, else json", LOG_FORMATS, "auto"),
  config: path("JSON file with options by their long names", null),
} as const satisfies OptionDeclarations;

export const DEMO_OPTIONS = {
  ...SERVE_OPTIONS,
  data: path("data directory; created if missing", "demo-data", "demo-data"),
  "retain-bytes": {
    ...SERVE_OPTIONS["retain-bytes"],
    fallback: undefined as number | null | undefined,
    shownFallback: "2147483648 (2 GiB); off in a store that the demo did not make",
  },
  runs: integer<number | null>("stop producing after so many runs", 1, 1_000_000, null, "keep producing"),
  seed: integer("seed of what the cell makes up", 0, 0xffff_ffff, 1, "1"),
  captures: path("folder of height maps to replay instead of made-up surfaces", null),
} as const satisfies OptionDeclarations;

export type ServeOptions = OptionValues<typeof SERVE_OPTIONS>;
export type DemoOptions = OptionValues<typeof DEMO_OPTIONS>;

const STORE_OPTIONS = {
  data: path("data directory of a store that is not being served", "data", "data"),
} as const satisfies OptionDeclarations;

const RUN_ID = "the id of a run, a UUIDv7";

function runId(description: string) {
  return option<string | null>({
    placeholder: "<id>",
    description,
    allowed: RUN_ID,
    parse(text) {
      const id = canonicalUuid(text);
      return id !== undefined && isUuidV7(id) ? id : undefined;
    },
    fallback: null,
  });
}

export const CHECK_OPTIONS = {
  ...STORE_OPTIONS,
  "reset-clock": option<boolean>({
    description: "take the store's clock back to the machine's before it is checked, where it is ahead of that",
    allowed: "true or false",
    parse: parseSwitch,
    fallback: false,
  }),
  json: option<boolean>({
    description: "print one JSON object instead of lines",
    allowed: "true or false",
    parse: parseSwitch,
    fallback: false,
  }),
} as const satisfies OptionDeclarations;

export const INSPECT_OPTIONS = {
  ...STORE_OPTIONS,
  from: integer("first sequence number to print", 0, Number.MAX_SAFE_INTEGER, 0, "0"),
  limit: integer("most records to print", 1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, "all"),
  sequence: integer<number | null>("only the record of this sequence number", 1, Number.MAX_SAFE_INTEGER, null),
  segment: integer<number | null>("only records of the segment of this base", 1, Number.MAX_SAFE_INTEGER, null),
  offset: integer<number | null>("only the record that has this byte of the segment", 0, Number.MAX_SAFE_INTEGER, null),
  run: runId("only records of this run"),
  snapshot: option<boolean>({
    description: "the head of the newest snapshot instead of records",
    allowed: "true or false",
    parse: parseSwitch,
    fallback: false,
  }),
} as const satisfies OptionDeclarations;

export const EXPORT_OPTIONS = {
  ...STORE_OPTIONS,
  run: runId("the run to export"),
  to: path("folder to write; it must not exist, or be empty", null),
  config: path("JSON file with options by their long names", null),
} as const satisfies OptionDeclarations;

const KEY_FILE = path("file that holds the keys' hashes", null);

export const KEYS_ADD_OPTIONS = {
  file: KEY_FILE,
  scope: choice<KeyScope>("what the key allows", KEY_SCOPES, "read"),
  name: option<string | null>({
    placeholder: "<text>",
    description: "whose key it is or what for, as `keys list` shows it",
    allowed: "1 to 100 characters without control characters",
    parse: (text) => (isKeyName(text) ? text : undefined),
    fallback: null,
  }),
} as const satisfies OptionDeclarations;

export const KEYS_LIST_OPTIONS = { file: KEY_FILE } as const satisfies OptionDeclarations;

export const KEYS_REMOVE_OPTIONS = {
  file: KEY_FILE,
  id: option<string | null>({
    placeholder: "<id>",
    description: "the key to remove, as `keys list` shows it",
    allowed: "12 hex digits",
    parse: (text) => (/^[0-9a-f]{12}$/.test(text) ? text : undefined),
    fallback: null,
  }),
} as const satisfies OptionDeclarations;

export const PRODUCERS_LIST_OPTIONS = STORE_OPTIONS;

export const PRODUCERS_REMOVE_OPTIONS = {
  ...STORE_OPTIONS,
  name: option<string | null>({
    placeholder: "<name>",
    description: "the producer to forget, as `producers list` shows it",
    allowed: "a producer's name",
    parse: (text) => (/^[a-z0-9._-]+$/.test(text) ? text : undefined),
    fallback: null,
  }),
} as const satisfies OptionDeclarations;

export type ProducersListOptions = OptionValues<typeof PRODUCERS_LIST_OPTIONS>;
export type ProducersRemoveOptions = OptionValues<typeof PRODUCERS_REMOVE_OPTIONS>;
export type KeysAddOptions = OptionValues<typeof KEYS_ADD_OPTIONS>;
export type KeysListOptions = OptionValues<typeof KEYS_LIST_OPTIONS>;
export type KeysRemoveOptions = OptionValues<typeof KEYS_REMOVE_OPTIONS>;
export type ExportCommandOptions = OptionValues<typeof EXPORT_OPTIONS>;
export type CheckCommandOptions = OptionValues<typeof CHECK_OPTIONS>;
export type InspectCommandOptions = OptionValues<typeof INSPECT_OPTIONS>;
