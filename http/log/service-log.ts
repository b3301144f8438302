import pino from "pino";
import { withCanonicalUuids } from "../../core/identifiers.js";
import { withoutKeys } from "../requests/api-keys.js";
import { escapedLines } from "./escaped-text.js";
import { LogDestination } from "./log-destination.js";
import { type LogFormat, type LogLevel, logLook } from "./log-format.js";
import { readableLine } from "./readable-log.js";
import { standardError } from "./standard-error.js";

export type ServiceLog = pino.Logger;

/**
 * The service's log on stderr: JSON lines, or readable ones. No answer waits for it, because any client can cause lines, and stderr may be a pipe
 * that nobody reads. Lines that still wait when the process ends are written then, if stderr accepts them.
 *
 * @param onGone called once, when the reader of stderr has gone
 */
export function createServiceLog(
  level: LogLevel,
  version: string,
  format: LogFormat = "json",
  onGone?: () => void,
): ServiceLog {
  const { isReadable, hasColours } = logLook(format);
  // JSON escapes only the oldest control characters, so JSON lines are escaped too.
  const look = (json: string) => (isReadable ? readableLine(json, hasColours) : escapedLines(json));
  const base = { service_version: version };
  const timestamp = pino.stdTimeFunctions.isoTime;
  const droppedLine = (lines: number): string => {
    const warning = { level: pino.levels.values.warn, ...base, dropped: lines };
    return look(
      `${JSON.stringify(warning).slice(0, -1)}${timestamp()},"msg":"log lines were dropped: stderr did not accept them"}\n`,
    );
  };
  const destination = new LogDestination(standardError(), droppedLine, onGone);
  process.on("exit", () => destination.flushSync());
  return pino({ level, base, timestamp }, { write: (json) => destination.write(look(json)) });
}

/** How much of a text from outside a log line shows. */
const SHOWN_CHARACTERS = 200;
/** How much of it is searched for keys: an encoded key is many times longer than its shown form. */
const READ_CHARACTERS = 4_000;

/** A text from outside for a log line: shortened, without API keys, and with ids spelled as everywhere else in the log. */
export function shownInLog(text: string): string {
  const shown = withCanonicalUuids(withoutKeys(text.slice(0, READ_CHARACTERS)));
  const isWhole = text.length <= READ_CHARACTERS && shown.length <= SHOWN_CHARACTERS;
  return isWhole ? shown : `${shown.slice(0, SHOWN_CHARACTERS).toWellFormed()}…`;
}
