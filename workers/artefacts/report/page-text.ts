/** Texts, numbers and times as the page shows them. Whatever comes from outside goes through `escaped` or `shown`. */
import { formatTimeUs } from "../../../core/timestamps.js";

/** A cell with more text could be higher than a sheet, and a row must not be cut in print. */
const MOST_CHARACTERS = 400;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** A text as HTML, also within quotes. Characters that HTML does not allow are replaced. */
export function escaped(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  const allowed = text.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "\ufffd");
  return allowed.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

/**
 * A text from outside as an element of its own. Marks for writing from right to left have no effect beyond it. A long
 * one is cut, and says so.
 */
export function shown(text: string, mostCharacters = MOST_CHARACTERS): string {
  if (text.length <= mostCharacters) return `<bdi>${escaped(text)}</bdi>`;
  const kept = text.slice(0, mostCharacters).replace(/[\ud800-\udbff]$/, "");
  return `<bdi>${escaped(kept)}…</bdi> <span class="note">(cut: ${text.length} characters)</span>`;
}

const MINUS = "\u2212";

/** With a true minus sign, which is as wide as a figure. */
export function fixed(value: number, decimals: number): string {
  const text = Math.abs(value) >= 1e15 ? Math.abs(value).toExponential(3) : Math.abs(value).toFixed(decimals);
  return value < 0 && Number(text) !== 0 ? MINUS + text : text;
}

/** A number of no known unit: up to six significant figures. */
export function plain(value: number): string {
  const size = Math.abs(value);
  const isOdd = size !== 0 && (size < 1e-4 || size >= 1e9);
  return (isOdd ? value.toExponential(3) : String(Number(value.toPrecision(6)))).replace("-", MINUS);
}

export function signed(text: string): string {
  return text.startsWith(MINUS) || Number(text) === 0 ? text : `+${text}`;
}

/** 2026-01-02 03:04:05 UTC */
export function timeShown(timeUs: number | null): string {
  return timeUs === null ? "–" : `${formatTimeUs(timeUs).slice(0, 19).replace("T", " ")} UTC`;
}

export function durationShown(us: number): string {
  const seconds = us / 1e6;
  if (seconds < 120) return `${plain(Number(seconds.toPrecision(3)))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** In powers of 1024. */
export function bytesShown(bytes: number | null): string {
  if (bytes === null) return "–";
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let [size, unit] = [bytes, 0];
  for (; size >= 1024 && unit < units.length - 1; unit++) size /= 1024;
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}
