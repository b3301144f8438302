import { parseAddressRange } from "../../core/webhook/address-policy.js";
import type { RoomAmount } from "../../workers/recorder/upkeep/disk-room.js";

/** An option, given on the command line, in the environment (INSPECTION_…) or in the configuration file. */
export interface OptionDeclaration<Value> {
  /** What the help shows after the name; undefined for a switch. */
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

export function option<Value>(declaration: OptionDeclaration<Value>): OptionDeclaration<Value> {
  return declaration;
}

/** Given or not: a switch. */
export function toggle(description: string) {
  return option<boolean>({ description, allowed: "true or false", parse: parseSwitch, fallback: false });
}

function nonEmpty(text: string): string | undefined {
  return text === "" || text.includes("\0") ? undefined : text;
}

export function path<Fallback extends string | null>(description: string, fallback: Fallback, shownFallback?: string) {
  return option<string | Fallback>({
    placeholder: "<path>",
    description,
    allowed: "a path",
    parse: nonEmpty,
    fallback,
    ...(shownFallback !== undefined && { shownFallback }),
  });
}

export function choice<const Choice extends string>(description: string, choices: readonly Choice[], fallback: Choice) {
  return option<Choice>({
    placeholder: "<choice>",
    description: `${description} (${choices.join(", ")})`,
    allowed: `one of ${choices.join(", ")}`,
    parse: (text) => choices.find((one) => one === text),
    fallback,
    shownFallback: fallback,
  });
}

export function integer<Fallback>(
  description: string,
  minimum: number,
  maximum: number,
  fallback: Fallback,
  shown?: string,
) {
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

/** A number that limits something; `off`, the default, sets no limit. */
export function bound(description: string, maximum: number) {
  const { parse, allowed } = integer(description, 1, maximum, null);
  return orOff("<n>", description, allowed, parse);
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
/** Node's timers take at most 2^31 milliseconds. */
const MAXIMUM_DURATION_MS = 24 * 24 * 3_600_000;

function parseDurationMs(text: string): number | undefined {
  const match = /^(\d{1,10}(?:\.\d{1,3})?)(ms|s|m|h)?$/.exec(text);
  if (match === null) return undefined;
  const durationMs = Math.round(Number(match[1]) * (UNIT_MS[match[2] ?? "s"] as number));
  return durationMs <= MAXIMUM_DURATION_MS ? durationMs : undefined;
}

const DURATION = "a duration such as 30 (seconds), 500ms, 2m or 1h, at most 24 days";

/** In milliseconds. */
export function duration(description: string, fallbackMs: number) {
  return option<number>({
    placeholder: "<duration>",
    description,
    allowed: DURATION,
    parse: parseDurationMs,
    fallback: fallbackMs,
    shownFallback: `${fallbackMs / 1000}s`,
  });
}

/** The same, if there is one; `off`, the default, is null. */
export function durationOrOff(description: string) {
  return orOff<number>("<duration>", description, DURATION, parseDurationMs);
}

function orOff<Value>(
  placeholder: string,
  description: string,
  allowed: string,
  parse: (text: string) => Value | undefined,
) {
  return option<Value | null>({
    placeholder,
    description,
    allowed: `"off", or ${allowed}`,
    parse: (text) => (text === "off" ? null : parse(text)),
    fallback: null,
    shownFallback: "off",
  });
}

const UNIT_BYTES: Record<string, number> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 };

/** A size that limits something, at least 1 byte; `off`, the default, sets no limit. */
export function sizeBound(description: string) {
  const allowed = "a size of at least 1 byte, such as 2147483648 (bytes), 512MiB or 2GiB";
  return orOff("<bytes>", description, allowed, (text) => parseBytes(text) || undefined);
}

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

export function roomAmount(description: string, shownFallback: string) {
  return option<RoomAmount | null>({
    placeholder: "<room>",
    description,
    allowed: "a size such as 1073741824 (bytes), 512MiB or 1GiB, or a share of the disk below 100%, such as 5%",
    parse: parseRoomAmount,
    fallback: null,
    shownFallback,
  });
}

export interface HostPort {
  host: string;
  port: number;
}

export function parseHostPort(text: string): HostPort | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:[\]/]+)):(\d{1,5})$/.exec(text);
  if (match === null || Number(match[3]) > 65_535) return undefined;
  return { host: (match[1] ?? match[2]) as string, port: Number(match[3]) };
}

export function parseBaseUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const isPlain = url.search === "" && url.hash === "" && url.username === "" && url.password === "";
  if (!isPlain || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
  return url.href.replace(/\/+$/, "");
}

export function parseOrigins(text: string): readonly string[] | undefined {
  return listOf(text, (one) => {
    if (one === "*") return one;
    if (!/^https?:\/\/[^/]+$/i.test(one) || !URL.canParse(one)) return undefined;
    // As browsers send it: in lower case, without the default port, international names in ASCII.
    const { origin, href } = new URL(one);
    return href === `${origin}/` ? origin : undefined;
  });
}

export function parseHostNames(text: string): readonly string[] | undefined {
  return listOf(text, (one) => {
    if (!/^[^\s:/?#@%*\\[\]]+$/.test(one) || !URL.canParse(`http://${one}`)) return undefined;
    // As clients send it: international names in ASCII.
    return new URL(`http://${one}`).hostname;
  });
}

/** A comma-separated list, each part read by `parse`; undefined if one of the parts is not allowed. */
function listOf(text: string, parse: (part: string) => string | undefined): readonly string[] | undefined {
  const parts = text.split(",").map((part) => parse(part.trim()));
  return parts.every((part) => part !== undefined) ? parts : undefined;
}

/** Addresses of NATS servers. Users and passwords belong into a credentials file: an address is in logs and process lists. */
export function parseNatsServers(text: string): readonly string[] | undefined {
  return listOf(text, (one) => {
    const withScheme = /^(?:nats|tls):\/\//.test(one) ? one : `nats://${one}`;
    if (!URL.canParse(withScheme)) return undefined;
    const { hostname, username, password, pathname, search, hash } = new URL(withScheme);
    return hostname !== "" && `${username}${password}${pathname}${search}${hash}` === "" ? withScheme : undefined;
  });
}

function parseSwitch(text: string): boolean | undefined {
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : undefined;
}

export function ranges(description: string) {
  return option<readonly string[]>({
    placeholder: "<cidr,…>",
    description,
    allowed: "IP addresses or CIDR ranges separated by commas, such as 10.0.0.0/8,fd00::/8",
    parse(text) {
      const parts = text.split(",").map((part) => part.trim());
      return parts.every((part) => parseAddressRange(part) !== undefined) ? parts : undefined;
    },
    fallback: [],
  });
}
