// Compiles the JSON Schemas of core into modules beside them, whose declarations stand in the sources. Left alone when nothing of it has changed.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const compiled = (name) => import(pathToFileURL(`dist/${name}.js`).href);

/** The first line of a module: a digest of all that it is made from, the code of the formats too. */
function headOf(schemas, options) {
  const digest = createHash("sha256")
    .update(readFileSync("package-lock.json"))
    .update(readFileSync(new URL(import.meta.url)))
    .update(readFileSync("dist/core/json/schema-validators.js"))
    .update(JSON.stringify([schemas, options]));
  return `// ${digest.digest("hex")}\n`;
}

/**
 * @param dialect "Ajv" for draft-07, "Ajv2020" for that of OpenAPI 3.1
 * @param formats name of the export of schema-validators.js that holds the formats, undefined where there are none
 */
async function buildValidators({ name, dialect, schemas, options, formats }) {
  const target = `dist/${name}.js`;
  const head = headOf(schemas, options);
  if (existsSync(target) && readFileSync(target, "utf8").startsWith(head)) return;
  const { Ajv, Ajv2020, _ } = {
    ...(await import("ajv/dist/2020.js")).default,
    ...(await import("ajv/dist/ajv.js")).default,
  };
  const { default: standaloneCode } = (await import("ajv/dist/standalone/index.js")).default;
  const definitions = formats === undefined ? {} : (await compiled("core/json/schema-validators"))[formats];
  const ajv = new { Ajv, Ajv2020 }[dialect]({
    ...options,
    formats: definitions,
    code: { source: true, formats: _`formats` },
  });
  for (const [key, schema] of Object.entries(schemas)) ajv.addSchema(schema, key);
  const code = standaloneCode(ajv, Object.fromEntries(Object.keys(schemas).map((key) => [key, key])));
  // It is written for CommonJS: ajv's own modules give no file extensions in imports, and names with a dot can be no exports.
  const lines = [
    'import { createRequire } from "node:module";',
    ...(formats === undefined ? [] : [`import { ${formats} as formats } from "../json/schema-validators.js";`]),
    "const require = createRequire(import.meta.url);",
    "const exports = {};",
    code.replace(/^"use strict";/, ""),
    "export { exports as validators };",
    "",
  ];
  // An interrupted build leaves the earlier module, or none.
  writeFileSync(`${target}.new`, head + lines.join("\n"));
  renameSync(`${target}.new`, target);
}

/** Builds the validators for the schemas in the compiled modules of core. */
export async function buildAllValidators() {
  const { CELL_MESSAGE_OPTIONS, REQUEST_BODY_OPTIONS } = await compiled("core/json/schema-validators");
  const { CELL_MESSAGE_SCHEMAS } = await compiled("core/link/cell-message-schema");
  const { WEBHOOK_REQUEST_SCHEMAS } = await compiled("core/webhook/webhook-request");
  await buildValidators({
    name: "core/link/cell-message-validators",
    dialect: "Ajv",
    schemas: CELL_MESSAGE_SCHEMAS,
    options: CELL_MESSAGE_OPTIONS,
    formats: "CELL_MESSAGE_FORMATS",
  });
  await buildValidators({
    name: "core/webhook/webhook-request-validators",
    dialect: "Ajv2020",
    schemas: WEBHOOK_REQUEST_SCHEMAS,
    options: REQUEST_BODY_OPTIONS,
  });
}
