import type { LogLine, RecorderToFront } from "../recorder-messages.js";

/** Writes to the service's log. The functions need no `this`. */
export interface LogLines {
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
  /** Logs an error as the `cause` of a line. */
  report(what: string, error: unknown, fields: LogLine["fields"]): void;
}

/** Log lines that go to the front, which writes the log. */
export function logLines(send: (message: RecorderToFront) => void): LogLines {
  const line: LogLines["line"] = (level, message, fields) => {
    send({ kind: "log", line: { level, message, fields } });
  };
  return {
    line,
    report(what, error, fields) {
      line("error", what, { ...fields, cause: causeOf(error) });
    },
  };
}

export function causeOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
