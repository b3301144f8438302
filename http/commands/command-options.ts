import { canonicalUuid, isUuidV7 } from "../../core/identifiers.js";
import { LIMITS } from "../../core/limits.js";
import { isWebhookUrl } from "../../core/webhook/webhook-request.js";
import { CAPTURE_POLICIES, type CapturePolicy } from "../../workers/plant/capture-ranges.js";
import { isCellName } from "../../workers/plant/log-message.js";
import { DEFAULT_FINALIZE_TIMEOUT_MS } from "../../workers/recorder/recorder-messages.js";
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from "../log/log-format.js";
import { isKeyName, KEY_SCOPES, type KeyScope } from "../requests/api-keys.js";
import { FRONT_CHOICES, type FrontChoice } from "../server/server-name.js";
import {
  bound,
  choice,
  duration,
  durationOrOff,
  type HostPort,
  integer,
  type OptionDeclarations,
  type OptionValues,
  option,
  parseBaseUrl,
  parseHostNames,
  parseHostPort,
  parseNatsServers,
  parseOrigins,
  path,
  ranges,
  roomAmount,
  sizeBound,
  toggle,
} from "./option-kinds.js";

/** How the plant is reached. */
const PLANT_OPTIONS = {
  plant: option<readonly string[] | null>({
    placeholder: "<nats://host:port,…>",
    description: "NATS servers of the plant; its JetStream gets a copy of the log",
    allowed: "addresses such as nats://10.0.0.5:4222, separated by commas, without user and password",
    parse: parseNatsServers,
    fallback: null,
  }),
  "plant-credentials": path("credentials file of NATS (.creds) for --plant", null),
  "plant-ca": path("certificate authority in PEM to trust for --plant, instead of the system's", null),
} as const satisfies OptionDeclarations;

export const PLANT_INIT_OPTIONS = {
  ...PLANT_OPTIONS,
  replicas: integer("servers that keep each message; 3 survive the loss of one", 1, 5, 3, "3"),
  "capture-days": bound("the plant removes captures after this many days; the log stays for ever", 36_500),
  "capture-bytes": sizeBound(
    "the plant removes the oldest captures when all cells' captures together take more than this",
  ),
} as const satisfies OptionDeclarations;

export type PlantInitOptions = OptionValues<typeof PLANT_INIT_OPTIONS>;

const CELL = option<string | null>({
  placeholder: "<name>",
  description: "name of this cell in the plant; needs --plant",
  allowed: "1 to 64 characters of a-z, 0-9, dash and underscore",
  parse: (text) => (isCellName(text) ? text : undefined),
  fallback: null,
});

export const PLANT_VERIFY_OPTIONS = {
  ...PLANT_OPTIONS,
  data: path("data directory of a store; it may be served meanwhile", "data", "data"),
} as const satisfies OptionDeclarations;

export type PlantVerifyOptions = OptionValues<typeof PLANT_VERIFY_OPTIONS>;

export const PLANT_RESTORE_OPTIONS = {
  ...PLANT_OPTIONS,
  cell: { ...CELL, description: "name of the cell whose store is made anew" },
  data: path("folder of the new store; it must be missing or empty", "data", "data"),
  acknowledge: toggle("only say that somebody has read what the restored store lacks: health is healthy again"),
} as const satisfies OptionDeclarations;

export type PlantRestoreOptions = OptionValues<typeof PLANT_RESTORE_OPTIONS>;

/** How clients reach the service, and what it does for them. */
const HTTP_OPTIONS = {
  host: option<string>({
    placeholder: "<host>",
    description: "address to listen on; an address other than loopback needs --api-keys or --open",
    allowed: "a host name or an IP address",
    parse: (text) => (/^[A-Za-z0-9._:-]{1,255}$/.test(text) ? text : undefined),
    fallback: "127.0.0.1",
    shownFallback: "127.0.0.1",
  }),
  port: integer("port to listen on; 0 takes a free one", 0, 65_535, 8000, "8000"),
  open: toggle("serve without authentication on an address other than loopback"),
  "api-keys": path(
    "file of API keys, made with `keys add`; every request then needs a key, except /livez, / and the files of the console",
    null,
  ),
  "cors-origin": option<readonly string[]>({
    placeholder: "<origins>",
    description: "origins whose web pages may read and write, separated by commas; * for any",
    allowed: "* or origins such as https://dashboard.factory, separated by commas",
    parse: parseOrigins,
    fallback: [],
  }),
  "allowed-host": option<readonly string[]>({
    placeholder: "<names>",
    description:
      "further host names under which clients reach the service, separated by commas; without --api-keys, requests for any other host are refused",
    allowed: "host names such as cell-7.factory, without a port, separated by commas",
    parse: parseHostNames,
    fallback: [],
  }),
  "base-url": option<string | undefined>({
    placeholder: "<url>",
    description: "start of absolute links; default: the Host of the request",
    allowed: "an http or https URL without user, query and fragment",
    parse: parseBaseUrl,
    fallback: undefined,
  }),
  front: choice<FrontChoice>(
    "HTTP server: uWebSockets.js or node:http; auto takes uWebSockets.js if it loads on this machine",
    FRONT_CHOICES,
    "auto",
  ),
  "max-connections": integer<number | null>(
    "most HTTP connections at a time; one address may have three quarters of them",
    1,
    1_000_000,
    null,
    "as many as the limit of open files allows",
  ),
  "live-streams": integer(
    "most clients at a time that follow changes: streams of changed runs, and WebSockets of one run",
    1,
    100_000,
    LIMITS.liveStreams,
    String(LIMITS.liveStreams),
  ),
  "tls-cert": path("certificate chain in PEM, to serve HTTPS; needs --tls-key", null),
  "tls-key": path("private key of --tls-cert, in PEM", null),
  "exit-after-failure": duration(
    "exit with code 1 this long after recording has failed (a broken disk, for example), so that a supervisor restarts the service; 0: never",
    60_000,
  ),
  "artefact-threads": integer<number | null>(
    "threads that turn captures into PLY, PNG and CSV; one more thread serves clients",
    1,
    256,
    null,
    "one less than the number of cores",
  ),
} as const satisfies OptionDeclarations;

const LOG_OPTIONS = {
  "log-level": choice<LogLevel>("lowest level of log lines on stderr", LOG_LEVELS, "info"),
  "log-format": choice<LogFormat>("format of log lines; auto: pretty on a terminal, else json", LOG_FORMATS, "auto"),
  config: path("JSON file of options, each under its long name", null),
} as const satisfies OptionDeclarations;

export const SERVE_OPTIONS = {
  data: path("data directory; created if missing", "data", "data"),
  ...HTTP_OPTIONS,
  durability: choice(
    "when a message is acknowledged; full: when it would survive a power cut; interval, none: when it is written",
    ["full", "interval", "none"],
    "full",
  ),
  "finalize-timeout": duration(
    "how long a finalizing run waits for open jobs and captures",
    DEFAULT_FINALIZE_TIMEOUT_MS,
  ),
  "orphan-timeout": durationOrOff("fail a run when its producer has been disconnected for this long"),
  "disk-low-bytes": roomAmount("captures wait while the disk has less free space than this", "1GiB, at most 5%"),
  "disk-critical-bytes": roomAmount(
    "all messages wait while the disk has less free space than this",
    "256MiB, at most 1%",
  ),
  "retain-days": bound("remove the captures of runs that ended this many days ago; records and reports stay", 36_500),
  "retain-bytes": sizeBound(
    "remove the oldest captures of ended runs while all captures together take more than this; records and reports stay",
  ),
  "retain-after-shipping": toggle("keep captures until the plant has them; needs --plant-captures all"),
  "webhook-allow": ranges("deliver webhooks only to these address ranges"),
  "webhook-deny": ranges("never deliver webhooks to these address ranges"),
  "webhook-ca": path("certificate authority in PEM to trust for webhook receivers, in addition to the system's", null),
  "cell-socket": path("Unix socket of the cell link", null, "<data>/cell.sock"),
  "cell-socket-access": choice(
    "who may connect to it; owner: the account of the service alone; group: the group of the socket too",
    ["owner", "group"],
    "owner",
  ),
  "cell-listen": option<HostPort | null>({
    placeholder: "<host:port>",
    description: "also listen for producers on TCP; needs --cell-token-file",
    allowed: "HOST:PORT, such as 0.0.0.0:7400 or [::1]:7400",
    parse: parseHostPort,
    fallback: null,
  }),
  "cell-token-file": path("file with the token that producers send over TCP", null),
  ...PLANT_OPTIONS,
  cell: CELL,
  "plant-captures": choice<CapturePolicy>(
    "captures that the plant gets when a run has ended; reports: only reports and previews",
    CAPTURE_POLICIES,
    "reports",
  ),
  "plant-rate-bytes": sizeBound("most bytes of captures that go to the plant in a second"),
  "public-url": option<string | null>({
    placeholder: "<url>",
    description: "address at which people reach this cell; the plant's hub names it",
    allowed: "an http or https URL without user, query and fragment",
    parse: parseBaseUrl,
    fallback: null,
  }),
  ...LOG_OPTIONS,
} as const satisfies OptionDeclarations;

/** The options of `serve` that a hub has too: how it is reached. A hub has no producers, no retention and no receivers. */
export const HUB_OPTIONS = {
  data: path("data directory; it is filled from the plant, and may be deleted at any time", "hub-data", "hub-data"),
  ...HTTP_OPTIONS,
  ...PLANT_OPTIONS,
  "cache-bytes": {
    ...sizeBound("most bytes of captures that are kept after they were fetched from the plant"),
    fallback: (10 * 1024 ** 3) as number | null,
    shownFallback: "10737418240 (10 GiB)",
  },
  ...LOG_OPTIONS,
} as const satisfies OptionDeclarations;

export type HubOptions = OptionValues<typeof HUB_OPTIONS>;

export const DEMO_OPTIONS = {
  ...SERVE_OPTIONS,
  data: path("data directory; created if missing", "demo-data", "demo-data"),
  "retain-bytes": {
    ...SERVE_OPTIONS["retain-bytes"],
    fallback: undefined as number | null | undefined,
    shownFallback: "2147483648 (2 GiB); off in a store that the demo did not make",
  },
  runs: integer<number | null>("stop producing after this many runs", 1, 1_000_000, null, "keep producing"),
  seed: integer("seed of the generated data", 0, 0xffff_ffff, 1, "1"),
  captures: path("folder of height maps to replay instead of generated surfaces", null),
} as const satisfies OptionDeclarations;

/** The parts are commands with options of their own; these are what they have in common. */
export const DEMO_PLANT_OPTIONS = {
  data: path("folder of the server, the cells and the hub; created if missing", "demo-plant-data", "demo-plant-data"),
  nats: option<readonly string[] | null>({
    placeholder: "<nats://host:port,…>",
    description: "NATS server with JetStream to use, instead of the nats-server of the PATH",
    allowed: "addresses such as nats://10.0.0.5:4222, separated by commas, without user and password",
    parse: parseNatsServers,
    fallback: null,
  }),
  port: { ...SERVE_OPTIONS.port, description: "port of the hub; the cells take free ones" },
  runs: integer<number | null>("each cell stops producing after this many runs", 1, 1_000_000, null, "keep producing"),
  seed: integer("seed of the generated data", 0, 0xffff_fff0, 1, "1"),
} as const satisfies OptionDeclarations;

export type DemoPlantOptions = OptionValues<typeof DEMO_PLANT_OPTIONS>;

export type ServeOptions = OptionValues<typeof SERVE_OPTIONS>;
export type DemoOptions = OptionValues<typeof DEMO_OPTIONS>;

const STORE_OPTIONS = {
  data: path("data directory of a store", "data", "data"),
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

export const LISTEN_OPTIONS = {
  host: { ...SERVE_OPTIONS.host, description: "address to listen on" },
  port: integer("port to listen on; 0 takes a free one", 0, 65_535, 9000, "9000"),
  secret: option<string | null>({
    placeholder: "<text>",
    description: "secret of the webhook: an event without its signature is answered 401",
    allowed: "a text",
    // An error about another one would show it, so it is checked later.
    parse: (text) => text || undefined,
    fallback: null,
  }),
  "public-key": path(
    "file with the answer of GET /webhooks/signing-key, or with its key in PEM: verifies events of webhooks with signing ed25519",
    null,
  ),
  forward: option<string | undefined>({
    placeholder: "<url>",
    description: "post each event to this URL too, and answer as it does",
    allowed: "an http or https URL without user and fragment",
    parse: (text) => (isWebhookUrl(text) ? text : undefined),
    fallback: undefined,
  }),
  answer: integer<number | null>("HTTP status to answer each event with", 200, 599, null, "200"),
} as const satisfies OptionDeclarations;

export const CHECK_OPTIONS = {
  ...STORE_OPTIONS,
  "reset-clock": toggle("if the store's clock is ahead of the machine's, set it back before the check"),
  json: toggle("print one JSON object instead of lines"),
} as const satisfies OptionDeclarations;

export const INSPECT_OPTIONS = {
  ...STORE_OPTIONS,
  from: integer("first sequence number to print", 0, Number.MAX_SAFE_INTEGER, 0, "0"),
  limit: integer("print at most this many records", 1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, "all"),
  sequence: integer<number | null>("only the record with this sequence number", 1, Number.MAX_SAFE_INTEGER, null),
  segment: integer<number | null>(
    "only records in the segment with this base sequence number",
    1,
    Number.MAX_SAFE_INTEGER,
    null,
  ),
  offset: integer<number | null>("only the record at this byte offset of --segment", 0, Number.MAX_SAFE_INTEGER, null),
  run: runId("only records of this run"),
} as const satisfies OptionDeclarations;

export const EXPORT_OPTIONS = {
  ...STORE_OPTIONS,
  run: runId("the run to export (required)"),
  to: path("folder to write to (required); it must be empty or not exist yet", null),
  config: path("JSON file of options, each under its long name", null),
} as const satisfies OptionDeclarations;

export const BACKUP_OPTIONS = {
  ...STORE_OPTIONS,
  to: path("folder that the backup becomes (required): missing, empty, or a backup of this store", null),
  "with-damage": toggle("copy a damaged store as it is; without it, damage is an error and the previous backup stays"),
} as const satisfies OptionDeclarations;

export const REPORT_OPTIONS = {
  ...STORE_OPTIONS,
  run: runId("the run to report on (required)"),
  to: path("file to write; it must not exist yet. Without it the page goes to stdout", null),
  config: path("JSON file of options, each under its long name", null),
} as const satisfies OptionDeclarations;

const KEY_FILE = path("file in which the hashes of the keys are kept (required)", null);

export const KEYS_ADD_OPTIONS = {
  file: KEY_FILE,
  scope: choice<KeyScope>("what the key allows", KEY_SCOPES, "read"),
  name: option<string | null>({
    placeholder: "<text>",
    description: "who or what the key is for; `keys list` shows it",
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
    description: "id of the key to remove (required), as `keys list` shows it",
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
    description: "name of the producer to forget (required), as `producers list` shows it",
    allowed: "a producer's name, made of a-z, 0-9, dot, dash and underscore",
    parse: (text) => (/^[a-z0-9._-]+$/.test(text) ? text : undefined),
    fallback: null,
  }),
} as const satisfies OptionDeclarations;

export type ListenOptions = OptionValues<typeof LISTEN_OPTIONS>;
export type ProducersListOptions = OptionValues<typeof PRODUCERS_LIST_OPTIONS>;
export type ProducersRemoveOptions = OptionValues<typeof PRODUCERS_REMOVE_OPTIONS>;
export type KeysAddOptions = OptionValues<typeof KEYS_ADD_OPTIONS>;
export type KeysListOptions = OptionValues<typeof KEYS_LIST_OPTIONS>;
export type KeysRemoveOptions = OptionValues<typeof KEYS_REMOVE_OPTIONS>;
export type BackupCommandOptions = OptionValues<typeof BACKUP_OPTIONS>;
export type ExportCommandOptions = OptionValues<typeof EXPORT_OPTIONS>;
export type ReportCommandOptions = OptionValues<typeof REPORT_OPTIONS>;
export type CheckCommandOptions = OptionValues<typeof CHECK_OPTIONS>;
export type InspectCommandOptions = OptionValues<typeof INSPECT_OPTIONS>;
