import type { ErrorObject } from "ajv";
import type { JsonObject, JsonValue } from "../../core/json/json.js";
import { findNonJson } from "../../core/json/non-json.js";
import { schemaFault } from "../../core/json/schema-fault.js";
import type { SchemaValidator } from "../../core/json/schema-validators.js";
import { ServiceError } from "../../core/service-errors.js";
import type { RequestHeaders } from "./request-headers.js";
import type { RequestBodyDeclaration } from "./route.js";

/** What is wrong with one field of a body. */
export interface BodyFault {
  /** JSON Pointer without its leading slash: `url`, `subscribed_events/0`; empty for the body itself. */
  field: string;
  value: JsonValue;
  allowed: string;
}

/** Most faults that one error names: a body of 64 KiB can have thousands. */
const SHOWN_FAULTS = 20;
const SHOWN_CHARACTERS = 200;

/** The 422 for wrong fields of a body. The envelope's own field, value and allowed are those of the first fault. */
function invalidBody(faults: readonly [BodyFault, ...BodyFault[]]): ServiceError {
  const [{ field, value, allowed }] = faults;
  const names = faults.slice(0, SHOWN_FAULTS).map((fault) => {
    return `${fault.field === "" ? "the body" : fault.field} must be ${fault.allowed}`;
  });
  const params: JsonObject = { field, in: "body", value, allowed };
  if (faults.length > 1) params.faults = faults.slice(0, SHOWN_FAULTS).map((fault) => ({ ...fault }));
  if (faults.length > SHOWN_FAULTS) names.push(`and ${faults.length - SHOWN_FAULTS} more`);
  return new ServiceError("invalid_parameter", names.join("; "), params);
}

// A type and its parameters (RFC 9110, sections 5.6.6 and 8.3.1). Parameters do not change the meaning of JSON, but a charset, which some
// clients send, must be UTF-8.
const JSON_TYPE = /^application\/json[ \t]*/i;
const PARAMETER = /;[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=([\w!#$%&'*+.^`|~-]+|"(?:[^"\\]|\\.)*")[ \t]*)?/y;

function isJsonMediaType(text: string): boolean {
  const type = JSON_TYPE.exec(text);
  if (type === null) return false;
  PARAMETER.lastIndex = type[0].length;
  while (PARAMETER.lastIndex < text.length) {
    const parameter = PARAMETER.exec(text);
    if (parameter === null) return false;
    const [, name = "", value = ""] = parameter;
    if (name.toLowerCase() === "charset" && !/^"?utf-?8"?$/i.test(value)) return false;
  }
  return true;
}

/** The error for a body that is not declared as JSON, or is encoded; undefined if it is fine. Called before the body is read. */
export function mediaTypeFault(headers: RequestHeaders): ServiceError | undefined {
  const wrong = (field: string, allowed: string) =>
    new ServiceError("unsupported_media_type", `the request body must be JSON: ${field} must be ${allowed}`, {
      field,
      in: "header",
      value: headers.get(field)?.slice(0, SHOWN_CHARACTERS) ?? null,
      allowed,
    });
  if (!isJsonMediaType(headers.get("content-type") ?? "")) return wrong("content-type", "application/json");
  if (!/^(?:identity)?$/i.test(headers.get("content-encoding") ?? "")) return wrong("content-encoding", "absent");
  return undefined;
}

/** Decodes and validates the bodies of one route. */
export class RequestBodyParser {
  readonly #validate: SchemaValidator;
  readonly #furtherFaults: RequestBodyDeclaration["furtherFaults"];

  constructor({ validate, furtherFaults }: RequestBodyDeclaration) {
    this.#validate = validate;
    this.#furtherFaults = furtherFaults;
  }

  /** @throws ServiceError malformed_json; invalid_parameter, naming each field that is wrong */
  parse(bytes: Uint8Array): unknown {
    let body: unknown;
    try {
      body = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    } catch (error) {
      // Neither message is passed on: the decoder's does not help, and the parser's may quote a secret.
      const position = /position (\d+)/.exec((error as Error).message)?.[1];
      const where = error instanceof SyntaxError && position !== undefined ? { position: Number(position) } : {};
      throw new ServiceError("malformed_json", "the request body is not JSON in UTF-8", { in: "body", ...where });
    }
    // Only the first fault of each field: anyOf reports one for each of its alternatives.
    const faults = new Map<string, BodyFault>();
    const add = (fault: BodyFault): void => {
      if (!faults.has(fault.field)) faults.set(fault.field, { ...fault, field: fault.field.toWellFormed() });
    };
    const nonJson = findNonJson(body, 0);
    if (nonJson !== undefined) add({ field: nonJson.path.slice(1), value: null, allowed: nonJson.allowed });
    if (!this.#validate(body)) for (const error of this.#validate.errors ?? []) add(faultOf(error));
    if (isObject(body)) {
      for (const { field, value, allowed } of this.#furtherFaults?.(body) ?? []) {
        add({ field, value: shown(value), allowed });
      }
    }
    const [first, ...others] = faults.values();
    if (first !== undefined) throw invalidBody([first, ...others]);
    return body;
  }
}

function isObject(body: unknown): body is Readonly<Record<string, unknown>> {
  return typeof body === "object" && body !== null && !Array.isArray(body);
}

/** A field that is not known may hold a secret. */
function faultOf(error: ErrorObject): BodyFault {
  const { path, value, allowed } = schemaFault(error);
  const isSecret = (error.parentSchema as { writeOnly?: boolean } | undefined)?.writeOnly === true;
  const isShown = !isSecret && path !== "" && error.keyword !== "additionalProperties";
  return {
    field: path.slice(1, SHOWN_CHARACTERS + 1),
    value: isShown ? shown(value) : null,
    allowed: Array.isArray(allowed) ? `one of ${allowed.map(String).join(", ")}` : String(allowed),
  };
}

/**
 * The value, shortened for an answer or a log line. Objects and lists are not shown, as a misplaced secret may be inside. The user info of a
 * URL is hidden: everything up to the last @, because broken URLs can be read in several ways.
 */
function shown(value: unknown): JsonValue {
  if (value === null || typeof value === "boolean" || typeof value === "number") return value;
  if (typeof value !== "string") return Array.isArray(value) ? "a list" : "an object";
  const text = value.replace(/^([a-z][a-z0-9+.-]*:\/\/)?[\s\S]*@/i, "$1…@");
  return text.length <= SHOWN_CHARACTERS ? text.toWellFormed() : `${text.slice(0, SHOWN_CHARACTERS).toWellFormed()}…`;
}
