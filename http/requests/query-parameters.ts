import { canonicalUuid } from "../../core/identifiers.js";
import { ServiceError } from "../../core/service-errors.js";
import { parseAnyTimeUs, parseTimeBoundUs } from "../../core/timestamps.js";

/** A query parameter as a JSON Schema: one of five kinds. */
export type QueryParameter =
  | {
      readonly type: "string";
      /** Values that can match, for the document. Any other value is no error. */
      readonly enum?: readonly string[];
      readonly description: string;
    }
  | { readonly type: "string"; readonly format: "uuid"; readonly description: string }
  | {
      readonly type: "string";
      readonly format: "date-time";
      readonly description: string;
      /** An upper bound is rounded up to the next microsecond, a lower bound down. */
      readonly isUpperBound?: true;
      /** Another parameter: this time may not be before that one. */
      readonly notBefore?: string;
    }
  /** Texts: the parameter may be repeated. */
  | { readonly type: "array"; readonly items: { readonly type: "string" }; readonly description: string }
  | {
      readonly type: "integer";
      readonly minimum: number;
      readonly maximum: number;
      readonly default: number;
      readonly description: string;
    };

export type QueryParameters = Readonly<Record<string, QueryParameter>>;

/** What a handler gets: integers (always, as they have defaults), date-times in microseconds, ids in lower case; undefined if absent. */
export type QueryValues<Parameters extends QueryParameters> = {
  readonly [Name in keyof Parameters]: Parameters[Name] extends { type: "integer" }
    ? number
    : Parameters[Name] extends { format: "date-time" }
      ? number | undefined
      : Parameters[Name] extends { type: "array" }
        ? readonly string[] | undefined
        : string | undefined;
};

const SHOWN_CHARACTERS = 200;
/** How often a list may be given. */
const MOST_TEXTS = 100;

function shorten(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

function invalid(
  field: string,
  value: string | string[],
  allowed: string,
  message = `query parameter ${field} must be ${allowed}`,
): ServiceError {
  const shown = typeof value === "string" ? shorten(value) : value.slice(0, 10).map(shorten);
  return new ServiceError("invalid_parameter", message, {
    field,
    in: "query",
    value: shown,
    allowed,
  });
}

/**
 * Decodes one name or value: percent-encoded UTF-8, with `+` for a space, as forms and URLSearchParams write it. Undefined if the encoding
 * is broken or the query was not UTF-8 (it then contains U+FFFD).
 */
function decode(text: string): string | undefined {
  if (text.includes("\ufffd")) return undefined;
  try {
    return decodeURIComponent(text.includes("+") ? text.replaceAll("+", " ") : text);
  } catch {
    return undefined;
  }
}

/**
 * Parses the raw query string. Unknown parameters are ignored, an empty value counts as absent, a repeated parameter is refused unless it is a list.
 * @throws ServiceError invalid_parameter, with the parameter, the value that was sent and what is allowed
 */
export function parseQuery<Parameters extends QueryParameters>(
  declared: Parameters,
  rawQuery: string,
): QueryValues<Parameters> {
  const raw = rawQuery === "" ? undefined : rawValues(declared, rawQuery);
  const parsed: Record<string, string | number | readonly string[] | undefined> = {};
  for (const name in declared) {
    const values = raw?.get(name);
    const parameter = declared[name] as QueryParameter;
    if (values === undefined) parsed[name] = "default" in parameter ? parameter.default : undefined;
    else if (parameter.type === "array") parsed[name] = parseTexts(name, values);
    else if (values.length > 1) throw invalid(name, values, "given at most once");
    else parsed[name] = parseValue(name, parameter, values[0] as string);
  }
  if (raw !== undefined) assertOrder(declared, raw);
  return parsed as QueryValues<Parameters>;
}

/** Raw values of the declared parameters, in the order in which they were sent. */
function rawValues(declared: QueryParameters, rawQuery: string): Map<string, string[]> {
  const raw = new Map<string, string[]>();
  for (const pair of rawQuery.split("&")) {
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    if (name === undefined || !Object.hasOwn(declared, name)) continue;
    const value = equals === -1 ? "" : pair.slice(equals + 1);
    const values = raw.get(name);
    if (values === undefined) raw.set(name, [value]);
    else values.push(value);
  }
  return raw;
}

/** Undefined if all are empty. */
function parseTexts(name: string, values: readonly string[]): string[] | undefined {
  if (values.length > MOST_TEXTS) throw invalid(name, [...values], `given at most ${MOST_TEXTS} times`);
  const texts = values.map((raw) => {
    const text = decode(raw);
    if (text === undefined) throw invalid(name, raw, "percent-encoded UTF-8");
    return text;
  });
  const given = texts.filter((text) => text !== "");
  return given.length === 0 ? undefined : given;
}

function parseValue(
  name: string,
  parameter: Exclude<QueryParameter, { type: "array" }>,
  raw: string,
): string | number | undefined {
  const text = decode(raw);
  if (text === undefined) throw invalid(name, raw, "percent-encoded UTF-8");
  if (text === "") return "default" in parameter ? parameter.default : undefined;
  if (parameter.type === "integer") return parseInteger(name, parameter, text);
  if (!("format" in parameter)) return text;
  if (parameter.format === "date-time") return parseDateTime(name, parameter.isUpperBound === true, text);
  const id = canonicalUuid(text);
  if (id === undefined) throw invalid(name, text, "a UUID such as 01975b0c-5c00-7000-8000-000000000000");
  return id;
}

function parseInteger(name: string, parameter: { minimum: number; maximum: number }, text: string): number {
  const { minimum, maximum } = parameter;
  const allowed =
    maximum === Number.MAX_SAFE_INTEGER
      ? `an integer of at least ${minimum}`
      : `an integer from ${minimum} to ${maximum}`;
  // Decimal digits only: Number() would also take 1e3, 0x10, " 7 " and 10.0.
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= minimum && value <= maximum)) throw invalid(name, text, allowed);
  return value;
}

/** Refuses times that are not in order, also those which the service takes for the first or the last one that it knows. */
function assertOrder(declared: QueryParameters, raw: ReadonlyMap<string, readonly string[]>): void {
  for (const name in declared) {
    const parameter = declared[name] as QueryParameter;
    if (!("notBefore" in parameter)) continue;
    const [first = "", last = ""] = [parameter.notBefore, name].map((one) => decode(raw.get(one)?.[0] ?? ""));
    const [firstUs, lastUs] = [first, last].map((text) => parseAnyTimeUs(withPlus(text), "up"));
    if (firstUs === undefined || lastUs === undefined || lastUs >= firstUs) continue;
    const allowed = `${shorten(withPlus(first))} or later, as ${parameter.notBefore} says`;
    throw invalid(name, last, allowed, `${name} is before ${parameter.notBefore}`);
  }
}

/** A plus sign that was not percent-encoded arrives as a space. A time has no other space at this place. */
function withPlus(text: string): string {
  return text.replace(/^(.{16,}) (\d{2}:?\d{2})$/, "$1+$2");
}

function parseDateTime(name: string, isUpperBound: boolean, text: string): number {
  const timeUs = parseTimeBoundUs(withPlus(text), isUpperBound ? "up" : "down");
  if (timeUs === undefined) throw invalid(name, text, "an ISO 8601 date-time such as 2026-01-31T12:00:00.000000Z");
  return timeUs;
}
