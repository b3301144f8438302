/** The tables of workers/cell-link/README.md, from the schemas of the messages: all of each row but what its field means. */
import { CELL_MESSAGE_SCHEMAS } from "../../../core/link/cell-message-schema.js";

interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  maxItems?: number;
}

/** A longer list of values has a sentence of its own. */
const MOST_VALUES = 6;
const SINGULAR: Readonly<Record<string, string>> = {
  checks: "check",
  defects: "defect",
  steps: "step",
  run_configs: "run_config",
};

/** Every object with fields of its own, by the name of its section: the messages, then the shapes in them. */
export function describedObjects(): Map<string, Schema> {
  const objects = new Map<string, Schema>(Object.entries(CELL_MESSAGE_SCHEMAS) as [string, Schema][]);
  const add = (field: string, schema: Schema): void => {
    if (schema.items !== undefined) add(SINGULAR[field] ?? field, schema.items);
    if (schema.properties === undefined) return;
    const known = objects.get(field);
    if (known !== undefined && JSON.stringify(known.properties) !== JSON.stringify(schema.properties)) {
      throw new Error(`two shapes are called ${field}`);
    }
    objects.set(field, schema);
    for (const [name, property] of Object.entries(schema.properties)) add(name, property);
  };
  for (const schema of Object.values(CELL_MESSAGE_SCHEMAS) as Schema[]) {
    for (const [name, property] of Object.entries(schema.properties ?? {})) add(name, property);
  }
  return objects;
}

/** The rows of an object's table; `meanings`: what each field means, as the page has it. */
export function tableOf(name: string, schema: Schema, meanings: ReadonlyMap<string, string>): string {
  const isMessage = name in CELL_MESSAGE_SCHEMAS;
  const rows = Object.entries(schema.properties ?? {}).flatMap(([field, property]) => {
    if (isMessage && field === "type") return [];
    const cells = [`\`${field}\``, typeText(field, property), schema.required?.includes(field) ? "yes" : "no"];
    const meaning = meanings.get(field) ?? "";
    return [`| ${cells.join(" | ")} |${meaning === "" ? "" : ` ${meaning}`} |`];
  });
  return ["| field | type | required | meaning |", "|---|---|---|---|", ...rows].join("\n");
}

function typeText(field: string, schema: Schema): string {
  const isNullable = Array.isArray(schema.type);
  return isNullable ? `${bareType(field, schema)}, or null` : bareType(field, schema);
}

function bareType(field: string, schema: Schema): string {
  const [type] = [schema.type ?? []].flat();
  const { minimum, maximum, exclusiveMinimum, minLength = 0, maxLength } = schema;
  if (schema.enum !== undefined) {
    const values = schema.enum.filter((value) => value !== null);
    return values.length > MOST_VALUES ? "one of the types below" : values.map((value) => `\`${value}\``).join(", ");
  }
  if (schema.format === "uuid-time") return "UUIDv7";
  if (schema.format === "utc-timestamp") return "time";
  if (schema.pattern !== undefined) return `MIME type of at most ${figure(maxLength)}`;
  if (type === "string") {
    if (maxLength === undefined) return "text";
    return minLength > 0 ? `text of ${minLength} to ${figure(maxLength)}` : `text of at most ${figure(maxLength)}`;
  }
  if (type === "integer") return `integer, ${figure(minimum)} to ${figure(maximum)}`;
  if (type === "number") {
    const above = exclusiveMinimum === undefined ? "number" : `number above ${exclusiveMinimum}`;
    return maximum === undefined ? above : `${above}, at most ${figure(maximum)}`;
  }
  if (type === "boolean") return "true or false";
  if (type === "array") {
    const items = schema.items as Schema;
    const name = SINGULAR[field] ?? field;
    const isNumbers = [items.type].flat()[0] === "number";
    const item = isNumbers
      ? "numbers"
      : items.properties !== undefined
        ? `[${name}s](#${name})`
        : `texts: ${bareType(field, items)}`;
    return `list of up to ${figure(schema.maxItems)} ${item}`;
  }
  return schema.properties === undefined ? "map" : link(field);
}

function link(name: string): string {
  return `[${name}](#${name})`;
}

export function figure(value: number | undefined): string {
  if (value === Number.MAX_SAFE_INTEGER) return "2^53 - 1";
  return (value as number).toLocaleString("en-GB");
}
