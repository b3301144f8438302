import { escaped } from "./escaped-text.js";

/** Longest text in a line: what a client sent may have any length. */
const LONGEST_TEXT = 200;

const LEVELS: Readonly<Record<number, { name: string; colour: string }>> = {
  10: { name: "trace", colour: "90" },
  20: { name: "debug", colour: "90" },
  30: { name: "info", colour: "32" },
  40: { name: "warn", colour: "33" },
  50: { name: "error", colour: "31" },
  60: { name: "fatal", colour: "41;37" },
};
const FAINT = "90";

/** Fields that are the same in every line, or have their own place in it. */
const NO_FIELDS: ReadonlySet<string> = new Set(["level", "time", "msg", "service_version", "err"]);

/**
 * A JSON line of the log in readable form: local time, level, message, fields, and the stack of an error below. Fields that are null, 0, false or
 * empty are left out. Control characters are escaped: a client can put them into a path, and a terminal would act on them.
 */
export function readableLine(json: string, hasColours: boolean): string {
  const paint = (colour: string, text: string) => (hasColours ? `\u001b[${colour}m${text}\u001b[0m` : text);
  const line = parseObject(json);
  if (line === undefined) return `${escaped(json.trimEnd())}\n`;
  const level = LEVELS[line.level as number] ?? { name: String(line.level), colour: "0" };
  const shown = [localTime(line.time), paint(level.colour, level.name.padEnd(5)), escaped(String(line.msg ?? ""))];
  const fields = Object.entries(line).filter(([name, value]) => !NO_FIELDS.has(name) && saysSomething(value));
  if (fields.length > 0) {
    shown.push(paint(FAINT, fields.map(([name, value]) => `${escaped(name)}=${valueText(value)}`).join(" ")));
  }
  return `${shown.join("  ")}\n${errorLines(line.err)}`;
}

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function localTime(time: unknown): string {
  return new Date(String(time)).toTimeString().slice(0, 8);
}

function saysSomething(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

function valueText(value: unknown): string {
  const text = typeof value === "string" ? value : (errorText(value) ?? JSON.stringify(value));
  const cut = text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
  return escaped(typeof value === "string" && /[\s"=]/.test(cut) ? JSON.stringify(cut) : cut);
}

/** Text of an error as threads send it to each other: code, message and parameters. Undefined for any other value. */
function errorText(value: unknown): string | undefined {
  const { code, message, params } = value as { code?: unknown; message?: unknown; params?: unknown };
  if (typeof code !== "string" || typeof message !== "string") return undefined;
  return `${code}: ${message}${saysSomething(params) ? ` ${JSON.stringify(params)}` : ""}`;
}

/** Lines of an error as pino writes it, indented, so that none looks like a line of the log. */
function errorLines(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  const { type, message, stack, ...others } = error as Record<string, unknown>;
  const lines = String(stack ?? `${type}: ${message}`).split("\n");
  if (saysSomething(others)) lines.push(JSON.stringify(others));
  return lines.map((line) => `    ${escaped(line)}\n`).join("");
}
