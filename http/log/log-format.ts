import { isatty } from "node:tty";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** `auto`: readable on a terminal, JSON elsewhere. */
export const LOG_FORMATS = ["auto", "json", "pretty"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

const STDERR = 2;

/** How lines on stderr look. Colours only on a terminal and without NO_COLOR (no-color.org). */
export function logLook(format: LogFormat): { isReadable: boolean; hasColours: boolean } {
  const isTerminal = isatty(STDERR);
  const { NO_COLOR, TERM } = process.env;
  return {
    isReadable: format === "pretty" || (format === "auto" && isTerminal),
    hasColours: isTerminal && TERM !== "dumb" && (NO_COLOR ?? "") === "",
  };
}
