import { type RefusalLine, RefusalLog } from "./refusal-log.js";
import { type ServiceLog, shownInLog } from "./service-log.js";

/** What log lines need to know about a request. */
interface LoggedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  remoteAddress(): string;
}

/** A fault while a request was handled. */
export interface RequestTrouble {
  level: RefusalLine["level"];
  message: string;
  error?: unknown;
  /** Bytes that had been sent before. */
  sentBytes?: number;
}

/** The log lines about requests: at level debug one for every request, else only for errors, limited by a `RefusalLog`. */
export class RequestLog {
  readonly #log: ServiceLog;
  readonly #counted: RefusalLog;
  readonly #hasAll: boolean;

  constructor(log: ServiceLog) {
    this.#log = log;
    this.#counted = new RefusalLog(log);
    // Checked once, so that requests cost nothing extra if their lines are off.
    this.#hasAll = log.isLevelEnabled("debug");
  }

  answered(status: number, incoming: LoggedRequest, traceId: string, tookMs: number): void {
    if (status < 400 && !this.#hasAll) return;
    const fields = () => ({
      trace_id: traceId,
      method: shownInLog(incoming.method),
      path: shownInLog(incoming.path),
      query: shownInLog(incoming.query),
      status,
      duration_ms: Math.round(tookMs * 1000) / 1000,
    });
    if (status < 400) this.#log.debug(fields(), "request");
    else this.#refused(status, incoming.remoteAddress(), fields);
  }

  /** For bytes that were no valid request: there is no method or path. */
  answeredByServer(status: number, traceId: string, cause: string | undefined, address: string): void {
    this.#refused(status, address, () => ({ trace_id: traceId, status, cause }));
  }

  trouble(incoming: LoggedRequest, traceId: string, { level, message, error, sentBytes }: RequestTrouble): void {
    const fields = () => ({
      trace_id: traceId,
      method: shownInLog(incoming.method),
      path: shownInLog(incoming.path),
      ...(sentBytes !== undefined && { position: sentBytes }),
      ...(error !== undefined && { err: error }),
    });
    this.#counted.write({
      level,
      kind: `${message} ${nameOf(error)}`,
      address: incoming.remoteAddress(),
      message,
      fields,
    });
  }

  /** @param open number of open connections */
  connectionRefused(address: string, open: number): void {
    const message = "a connection was refused: too many are open (--max-connections)";
    this.#counted.write({ level: "warn", kind: "connection", address, message, fields: () => ({ open }) });
  }

  /** Writes the counts so far. */
  flush(): void {
    this.#counted.flush();
  }

  #refused(status: number, address: string, fields: RefusalLine["fields"]): void {
    if (this.#hasAll) this.#log.info(fields(), "request");
    else this.#counted.write({ level: "info", kind: `${status}`, address, message: "request", fields });
  }
}

/** The kind of an error: its code or name. */
function nameOf(error: unknown): string {
  const { data, code, name } = (error ?? {}) as { data?: { code?: unknown }; code?: unknown; name?: unknown };
  return String(data?.code ?? code ?? name ?? "");
}
