import pino from "pino";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type ServiceLog = pino.Logger;

/**
 * The service's log: JSON lines to stderr. Written synchronously: an error's line is out before anything else can go wrong, and
 * at the default level there is about one line a minute.
 */
export function createServiceLog(level: LogLevel, version: string): ServiceLog {
  return pino(
    { level, base: { service_version: version }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  );
}
