/** Lengths in millimetres or inches, and other numbers as people read them. */
import { signal } from "@preact/signals";
import { keepText, keptText } from "../site-data.js";

export type Unit = "mm" | "in";

const STORED = "inspection-units";
const MM_PER_INCH = 25.4;

export const unit = signal<Unit>(keptText("localStorage", STORED) === "in" ? "in" : "mm");

export function setUnit(next: Unit): void {
  keepText("localStorage", STORED, next);
  unit.value = next;
}

/** Millimetres as a number of the unit. */
export function inUnit(mm: number): number {
  return unit.value === "in" ? mm / MM_PER_INCH : mm;
}

/** Decimals that show a tenth of the tolerance's last digit; an inch needs one more. */
export function lengthDecimals(thresholdMm: number | null | undefined): number {
  const fine = thresholdMm ? Math.ceil(-Math.log10(Math.abs(thresholdMm))) + 2 : 3;
  return Math.min(6, Math.max(3, fine)) + (unit.value === "in" ? 1 : 0);
}

const MINUS = "\u2212";

/** With a true minus sign, which is as wide as a figure. */
export function fixed(value: number, decimals: number): string {
  const text = Math.abs(value).toFixed(decimals);
  return value < 0 && Number(text) !== 0 ? MINUS + text : text;
}

export function signed(value: number, decimals: number): string {
  const text = fixed(value, decimals);
  return text.startsWith(MINUS) || Number(text) === 0 ? text : `+${text}`;
}

/** A number of no known unit: up to six significant figures, no zeros at the end. */
export function plain(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  const text =
    size !== 0 && (size < 1e-4 || size >= 1e9) ? value.toExponential(3) : String(Number(value.toPrecision(6)));
  return text.replace("-", MINUS);
}

/** A defect's confidence, which is a share; empty without one. */
export function sureText(confidence: number | null | undefined): string {
  return confidence === null || confidence === undefined ? "" : `${Math.round(confidence * 100)} % sure`;
}

/** A whole number with thin spaces between the thousands; with a noun: `1 value`, `2 values`. */
export function whole(value: number, noun?: string): string {
  const text = String(value).replace(/\B(?=(\d{3})+$)/g, "\u2009");
  return noun === undefined ? text : `${text} ${noun}${value === 1 ? "" : "s"}`;
}

/** In powers of 1024, as the service's options and its health write it. */
export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, count)) / 10));
  const amount = count / 1024 ** power;
  return `${power === 0 || amount >= 100 ? Math.round(amount) : amount.toPrecision(3)} ${units[power]}`;
}
