import pino from "pino";
import { withCanonicalUuids } from "../../core/identifiers.js";
import { withoutKeys } from "../requests/api-keys.js";
import { escapedLines } from "./escaped-text.js";
import { LogDestination } from "./log-destination.js";
import { type LogFormat, logLook } from "./log-format.js";
import type { LogLevel } from "./log-level.js";
import { readableLine } from "./readable-log.js";
import { standardError } from "./standard-error.js";

export type ServiceLog = pino.Logger;

/**
 * The service's log: JSON lines to stderr, or lines that people read. Written beside the event loop, since a client can have a line written with every bad request
 * and stderr may be a pipe that nobody reads: no answer waits for it. What waits when the process ends is written then, as far as it is taken.
 *
 * @param onGone called once a line has found that nobody reads stderr any more
 */
export function createServiceLog(
  level: LogLevel,
  version: string,
  format: LogFormat = "json",
  onGone?: () => void,
): ServiceLog {
  const { isReadable, hasColours } = logLook(format);
  // JSON leaves in what a terminal obeys, but for the oldest control characters.
  const look = (json: string) => (isReadable ? readableLine(json, hasColours) : escapedLines(json));
  const base = { service_version: version };
  const timestamp = pino.stdTimeFunctions.isoTime;
  const droppedLine = (lines: number): string => {
    const warning = { level: pino.levels.values.warn, ...base, dropped: lines };
    return look(
      `${JSON.stringify(warning).slice(0, -1)}${timestamp()},"msg":"log lines were dropped: stderr took none"}\n`,
    );
  };
  const destination = new LogDestination(standardError(), droppedLine, onGone);
  process.on("exit", () => destination.flushSync());
  return pino({ level, base, timestamp }, { write: (json) => destination.write(look(json)) });
}

/** Of a text from outside. */
const SHOWN_CHARACTERS = 200;
/** What is looked at of it: an encoded key is many times as long as it is shown. */
const READ_CHARACTERS = 4_000;

/** A text that came from outside for a log line: cut, without an API key in it, and its ids are spelled as everywhere else in the log. */
export function shownInLog(text: string): string {
  const shown = withCanonicalUuids(withoutKeys(text.slice(0, READ_CHARACTERS)));
  const isWhole = text.length <= READ_CHARACTERS && shown.length <= SHOWN_CHARACTERS;
  return isWhole ? shown : `${shown.slice(0, SHOWN_CHARACTERS).toWellFormed()}…`;
}
