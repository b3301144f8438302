import pino from "pino";
import type { LogLevel } from "./log-level.js";

export type ServiceLog = pino.Logger;

/** What waits for a reader of stderr that does not keep up; lines beyond are dropped rather than held. */
const MAXIMUM_WAITING_BYTES = 4 * 1024 * 1024;

/**
 * The service's log: JSON lines to stderr. Written beside the event loop, since a client can have a line written with every bad request
 * and stderr may be a pipe that nobody reads: no answer waits for it. What waits when the process ends is written then.
 */
export function createServiceLog(level: LogLevel, version: string): ServiceLog {
  const destination = pino.destination({ fd: 2, sync: false, minLength: 0, maxLength: MAXIMUM_WAITING_BYTES });
  process.on("exit", () => {
    try {
      destination.flushSync();
    } catch {
      // A stderr that is closed or full must not turn the end of the process into another one.
    }
  });
  return pino({ level, base: { service_version: version }, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}
