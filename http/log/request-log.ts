import ipaddr from "ipaddr.js";
import { RepeatedLogLines } from "../../core/repeated-log-lines.js";
import { type Timers, UNREFERENCED_TIMERS } from "../../core/timers.js";
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
  level: CountedLine["level"];
  message: string;
  error?: unknown;
  /** Bytes that had been sent before. */
  sentBytes?: number;
}

/** A line that anybody can cause. */
interface CountedLine {
  level: "info" | "warn" | "error";
  /** Address of the client; empty if unknown. */
  address: string;
  message: string;
  fields: Record<string, unknown>;
}

/**
 * The log lines about requests: at level debug one for every request, else only for errors. Anybody can cause those with a request, so they are
 * counted by kind and address.
 */
export class RequestLog {
  readonly #log: ServiceLog;
  readonly #counted: RepeatedLogLines<CountedLine>;
  readonly #hasAll: boolean;

  constructor(log: ServiceLog, timers: Timers = UNREFERENCED_TIMERS) {
    this.#log = log;
    this.#counted = new RepeatedLogLines(timers, ({ level, address, message, fields }, count) => {
      const counted = count === undefined ? {} : { count };
      const from = address === "" ? {} : { remote_address: shownAddress(address) };
      log[level]({ ...fields, ...counted, ...from }, message);
    });
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
    this.#write(level, `${message} ${nameOf(error)}`, incoming.remoteAddress(), message, () => ({
      trace_id: traceId,
      method: shownInLog(incoming.method),
      path: shownInLog(incoming.path),
      ...(sentBytes !== undefined && { position: sentBytes }),
      ...(error !== undefined && { err: error }),
    }));
  }

  /** @param open number of open connections */
  connectionRefused(address: string, open: number): void {
    const message = "a connection was refused: too many are open (--max-connections)";
    this.#write("warn", "connection", address, message, () => ({ open }));
  }

  /** Writes the counts so far. */
  flush(): void {
    this.#counted.flush();
  }

  #refused(status: number, address: string, fields: () => CountedLine["fields"]): void {
    if (this.#hasAll) this.#log.info(fields(), "request");
    else this.#write("info", `${status}`, address, "request", fields);
  }

  #write(
    level: CountedLine["level"],
    kind: string,
    address: string,
    message: string,
    fields: () => CountedLine["fields"],
  ): void {
    this.#counted.write(kind, address, (isToldApart) => ({
      level,
      address: isToldApart ? address : "",
      message,
      fields: fields(),
    }));
  }
}

/** The address in its shortest form; as IPv4 if it is an IPv4 address in IPv6 form. */
function shownAddress(address: string): string {
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
}

/** The kind of an error: its code or name. */
function nameOf(error: unknown): string {
  const { data, code, name } = (error ?? {}) as { data?: { code?: unknown }; code?: unknown; name?: unknown };
  return String(data?.code ?? code ?? name ?? "");
}
