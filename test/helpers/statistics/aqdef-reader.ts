/**
 * A reader of the Q-DAS ASCII transfer format. It follows the public descriptions that workers/artefacts/findings/aqdef.ts names, and
 * knows nothing of that writer: it reads both forms of values, and refuses a key, a number or a time that the format does not have.
 *
 * - A line is a key, `/n` for part or characteristic n, perhaps `/m` for its value m, a blank, and the content.
 * - Values without keys are in one line: characteristics are separated by the character 15, and the fields of a value by the character
 *   20: value, attribute, time, events, batch, nest, operator, machine, process parameter, gage.
 * - K0100 is first. A key that a value has already belongs to the next value of its characteristic. A `/0` is meant for all.
 */
type Kind = "text" | "integer" | "number" | "time" | "attribute";

/** What each key means, and its kind of content. Q-DAS has some hundred more. */
const KEYS: Readonly<Record<string, readonly [name: string, kind: Kind, mostCharacters?: number]>> = {
  K0001: ["value", "number"],
  K0002: ["attribute", "attribute"],
  K0004: ["time", "time"],
  K0005: ["events", "text"],
  K0006: ["batch", "text"],
  K0007: ["nest", "integer"],
  K0008: ["operator", "integer"],
  K0010: ["machine", "integer"],
  K0011: ["processParameter", "text"],
  K0012: ["gage", "integer"],
  K0014: ["partIdentification", "text"],
  K0100: ["characteristics", "integer"],
  K1001: ["number", "text", 30],
  K1002: ["description", "text"],
  K1900: ["remark", "text", 255],
  K2001: ["number", "text", 40],
  K2002: ["description", "text"],
  K2101: ["nominal", "number"],
  K2110: ["lowerLimit", "number"],
  K2111: ["upperLimit", "number"],
  K2142: ["unit", "text", 20],
};
const FIELDS_OF_A_VALUE = ["K0001", "K0002", "K0004", "K0005", "K0006", "K0007", "K0008", "K0010", "K0011", "K0012"];
const ATTRIBUTES = new Map([
  [0, "valid"],
  [129, "invalid"],
  [255, "placeholder"],
  [256, "delete"],
  [290, "not plausible"],
]);

export type AqdefFields = Record<string, string | number>;

export interface AqdefFile {
  part: AqdefFields;
  characteristics: { fields: AqdefFields; values: AqdefFields[] }[];
}

export function readAqdef(text: string): AqdefFile {
  const lines = text.split("\r\n");
  if (lines.pop() !== "") throw new Error("the last line has no end");
  const count = /^K0100 (\d{1,5})$/.exec(lines.shift() ?? "")?.[1];
  if (count === undefined) throw new Error("the file does not begin with the count of its characteristics");
  const characteristics = Array.from({ length: Number(count) }, () => ({ fields: {}, values: [] }));
  const file: AqdefFile = { part: {}, characteristics };
  for (const [at, line] of lines.entries()) {
    try {
      if (line.startsWith("K")) readKeyLine(file, line);
      else readValueLine(file, line);
    } catch (error) {
      throw new Error(`line ${at + 2}: ${(error as Error).message}: ${line}`);
    }
  }
  return file;
}

function readKeyLine(file: AqdefFile, line: string): void {
  const [, key, index = "1", place, content] = /^(K\d{4})(?:\/(\d+)(?:\/(\d+))?)? (.*)$/.exec(line) ?? [];
  if (key === undefined || content === undefined) throw new Error("no key with a content");
  if (key.startsWith("K1")) {
    if (index !== "1") throw new Error("there is one part");
    put(file.part, key, content);
    return;
  }
  const all = index === "0" ? file.characteristics : [characteristicOf(file, Number(index))];
  for (const { fields, values } of all) {
    if (key.startsWith("K2")) put(fields, key, content);
    else put(recordOf(values, key, place), key, content);
  }
}

function readValueLine(file: AqdefFile, line: string): void {
  for (const [at, part] of line.split("\u000f").entries()) {
    const { values } = characteristicOf(file, at + 1);
    const fields = part.split("\u0014");
    if (fields.length > FIELDS_OF_A_VALUE.length) throw new Error(`${fields.length} fields of a value`);
    const value = {};
    for (const [nth, content] of fields.entries())
      if (content !== "") put(value, FIELDS_OF_A_VALUE[nth] as string, content);
    values.push(value);
  }
}

function characteristicOf(file: AqdefFile, number: number) {
  const found = file.characteristics[number - 1];
  if (found === undefined) throw new Error(`there is no characteristic ${number}`);
  return found;
}

function recordOf(values: AqdefFields[], key: string, place: string | undefined): AqdefFields {
  const last = place === undefined ? values.at(-1) : values[Number(place) - 1];
  if (last !== undefined && (place !== undefined || !(nameOf(key) in last))) return last;
  const next = {};
  values.push(next);
  return next;
}

function nameOf(key: string): string {
  const [name] = KEYS[key] ?? [];
  if (name === undefined) throw new Error(`${key} is no known key`);
  return name;
}

function put(fields: AqdefFields, key: string, content: string): void {
  const name = nameOf(key);
  if (name in fields) throw new Error(`a second ${key}`);
  fields[name] = contentOf(key, content);
}

function contentOf(key: string, content: string): string | number {
  const [, kind, mostCharacters = Number.POSITIVE_INFINITY] = KEYS[key] as (typeof KEYS)[string];
  if (content.length > mostCharacters) throw new Error(`over ${mostCharacters} characters`);
  if (kind === "text") return content;
  if (kind === "time") return timeOf(content);
  const pattern = kind === "number" ? /^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/ : /^\d+$/;
  if (!pattern.test(content)) throw new Error("no such number");
  if (kind !== "attribute") return Number(content);
  const meaning = ATTRIBUTES.get(Number(content));
  if (meaning === undefined) throw new Error("no such attribute");
  return meaning;
}

/** `DD.MM.YYYY/HH:MM:SS`, as milliseconds since the Unix epoch if it is meant in UTC. */
function timeOf(content: string): number {
  const match = /^(\d{2})\.(\d{2})\.(\d{4})\/(\d{2}):(\d{2}):(\d{2})$/.exec(content);
  if (match === null) throw new Error("no date and time");
  const [day = 0, month = 0, year = 0, ...time] = match.slice(1).map(Number);
  const date = new Date(Date.UTC(year, month - 1, day, ...time));
  if (date.getUTCDate() !== day || date.getUTCMonth() !== month - 1) throw new Error("no such day");
  return date.getTime();
}
