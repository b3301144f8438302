import { Ajv2020, type Options, type ValidateFunction } from "ajv/dist/2020.js";
import type { RawResponse } from "./raw-http.js";

type Content = Record<string, { schema: Record<string, unknown> }>;
interface Operation {
  responses: Record<string, { content?: Content; headers?: Record<string, { required?: boolean }> }>;
}
export interface InterfaceDocument {
  paths: Record<string, Record<string, Operation>>;
  components: object;
}

/** That schemas are valid ones is openapi.test's to show: here they would all be checked with each that is compiled. */
export const FAST_AJV: Options = {
  allErrors: true,
  allowUnionTypes: true,
  formats: { "date-time": true, binary: true },
  meta: false,
  validateSchema: false,
  code: { optimize: false },
};

/** Holds answers of the service against its own document. */
export class DocumentValidator {
  readonly #document: InterfaceDocument;
  readonly #ajv = new Ajv2020(FAST_AJV);
  readonly #validators = new Map<object, ValidateFunction>();

  constructor(document: InterfaceDocument) {
    this.#document = document;
    this.#ajv.addVocabulary(["components", "example"]);
  }

  /** What is wrong with an answer by the document; empty when nothing is. A path that it does not have must answer 404. */
  faults(method: string, target: string, response: RawResponse): string {
    const path = target.split("?")[0] as string;
    const operation = this.#operation(method, path);
    if (operation === undefined) return response.status === 404 || response.status === 405 ? "" : "not in the document";
    const declared = operation.responses[response.status];
    if (declared === undefined) return `status ${response.status} is not in the document`;
    for (const [name, { required }] of Object.entries(declared.headers ?? {})) {
      if (required && response.headers[name.toLowerCase()] === undefined) return `the header ${name} is missing`;
    }
    const contentType = response.headers["content-type"];
    if (declared.content === undefined) return contentType === undefined ? "" : `a body of ${contentType}`;
    const media = declared.content[contentType?.split(";")[0] ?? ""] ?? declared.content[contentType ?? ""];
    if (media === undefined) return `content type ${contentType}`;
    if (contentType !== "application/json" || method === "HEAD") return "";
    const validate = this.#validator(media.schema);
    return validate(response.json()) ? "" : this.#ajv.errorsText(validate.errors);
  }

  /** The status that means success, by the path as the document has it. */
  successOf(method: string, path: string): number {
    const statuses = Object.keys(this.#document.paths[path]?.[method]?.responses ?? {});
    return Math.min(...statuses.map(Number).filter((status) => status >= 200 && status < 300));
  }

  #operation(method: string, path: string): Operation | undefined {
    const templates = Object.keys(this.#document.paths).filter((template) => {
      const pattern = template.replace(/[.]/g, "\\.").replace(/\{[a-z_]+\}/g, "[^/]+");
      return new RegExp(`^${pattern}$`).test(path);
    });
    // A literal segment wins over a parameter.
    const [best] = templates.sort((a, b) => a.split("{").length - b.split("{").length);
    return this.#document.paths[best ?? ""]?.[(method === "HEAD" ? "GET" : method).toLowerCase()];
  }

  #validator(schema: object): ValidateFunction {
    let validate = this.#validators.get(schema);
    if (validate === undefined) {
      validate = this.#ajv.compile({ ...schema, components: this.#document.components });
      this.#validators.set(schema, validate);
    }
    return validate;
  }
}
