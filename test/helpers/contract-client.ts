import { Ajv2020 } from "ajv/dist/2020.js";
import { RESPONSE_SCHEMAS } from "../../http/response-schemas.js";
import { DocumentValidator, type InterfaceDocument } from "./document-validator.js";
import { type RawResponse, rawRequest } from "./raw-http.js";

type Schema = Record<string, unknown>;

/** The same schemas, taking no property that they do not name: a field too many is a breach too. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)])) as Schema;
  if (copy.properties !== undefined && copy.additionalProperties === undefined) copy.additionalProperties = false;
  return copy;
}

const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, formats: { "date-time": true, binary: true } });
ajv.addVocabulary(["components"]);
const components = { schemas: closed(RESPONSE_SCHEMAS) };
const validators = new Map<string, (value: unknown) => string>();

/** What is wrong with a value by the named response schema; empty when nothing is. */
export function schemaFaults(name: keyof typeof RESPONSE_SCHEMAS, value: unknown): string {
  let validate = validators.get(name);
  if (validate === undefined) {
    const compiled = ajv.compile({ $ref: `#/components/schemas/${name}`, components });
    validate = (candidate) => (compiled(candidate) ? "" : ajv.errorsText(compiled.errors));
    validators.set(name, validate);
  }
  return validate(value);
}

/** What the client needs of a tap test. */
export interface Assert {
  equal(found: unknown, wanted: unknown, message: string): unknown;
  match(found: unknown, pattern: unknown, message: string): unknown;
}

/** Reads the interface as a client and holds every answer against the contract. */
export class ContractClient {
  readonly port: number;
  readonly #t: Assert;
  #validator: Promise<DocumentValidator> | undefined;

  constructor(t: Assert, port: number) {
    this.#t = t;
    this.port = port;
  }

  async get(path: string, headers = ""): Promise<RawResponse> {
    const response = await rawRequest(this.port, `GET ${path} HTTP/1.1\r\nHost: cell:8000\r\n${headers}\r\n`);
    if (response === undefined) throw new Error(`GET ${path}: the connection closed without an answer`);
    this.#t.match(response.headers["x-trace-id"], /^[0-9a-f]{32}$/, `${path}: X-Trace-ID`);
    this.#validator ??= this.#readDocument();
    this.#t.equal((await this.#validator).faults("GET", path, response), "", `${path}: fits the served document`);
    return response;
  }

  async #readDocument(): Promise<DocumentValidator> {
    const response = await rawRequest(this.port, "GET /openapi.json HTTP/1.1\r\nHost: cell:8000\r\n\r\n");
    return new DocumentValidator(response?.json() as InterfaceDocument);
  }

  /** The JSON of an answer of this status that fits the schema. */
  async json(path: string, schema: keyof typeof RESPONSE_SCHEMAS, status = 200): Promise<unknown> {
    const response = await this.get(path);
    const value = response.json();
    this.#t.equal(response.status, status, `${path}: ${response.body.toString().slice(0, 300)}`);
    this.#t.equal(response.headers["content-type"], "application/json", path);
    this.#t.equal(schemaFaults(schema, value), "", `${path} fits ${schema}`);
    return value;
  }

  /** The envelope of an error. */
  async error(
    path: string,
    status: number,
    code: string,
  ): Promise<{ message: string; params: Schema; retryable: boolean }> {
    const response = await this.get(path);
    const value = response.json() as {
      code: string;
      message: string;
      params: Schema;
      trace_id: string;
      retryable: boolean;
    };
    this.#t.equal(response.status, status, `${path}: ${response.body.toString().slice(0, 300)}`);
    this.#t.equal(schemaFaults("ErrorResponse", value), "", `${path}: the envelope`);
    this.#t.equal(Object.keys(value).join(), "code,message,params,trace_id,retryable", path);
    this.#t.equal(value.code, code, path);
    this.#t.equal(value.trace_id, response.headers["x-trace-id"], path);
    return value;
  }
}
