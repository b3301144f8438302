import { Ajv2020 } from "ajv/dist/2020.js";
import type { JsonSchema } from "../../../core/json/described-schema.js";
import { REQUEST_BODY_OPTIONS } from "../../../core/json/schema-validators.js";
import type { RequestBodyDeclaration } from "../../../http/requests/route.js";

/** A body of a test's own, compiled as the build compiles those of the service. */
export function declaredBody(schema: JsonSchema): RequestBodyDeclaration {
  return {
    name: "Thing",
    description: "A thing.",
    schema,
    validate: new Ajv2020(REQUEST_BODY_OPTIONS).compile(schema),
  };
}
