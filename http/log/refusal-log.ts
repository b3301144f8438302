import ipaddr from "ipaddr.js";
import type { Timers } from "../../core/timers.js";
import type { ServiceLog } from "./service-log.js";

/** Between two lines of one kind and address. */
const WINDOW_MS = 10_000;

/** Kinds and addresses that are told apart; further addresses share one line of each kind. */
const TOLD_APART = 100;

export interface RefusalLine {
  level: "info" | "warn" | "error";
  /** What is counted together: a status, say. */
  kind: string;
  /** Of the client's end of the connection; empty where it is not known. */
  address: string;
  message: string;
  /** Made only for a line that is written. */
  fields(): Record<string, unknown>;
}

/** A window of one kind and address: its first line is written. */
interface Counted {
  endMs: number;
  /** Since the last line. */
  count: number;
  /** Of the first that was counted, which stands for all of them. */
  line: (Omit<RefusalLine, "fields"> & { fields: Record<string, unknown> }) | undefined;
}

/**
 * Log lines that anybody can cause with a request. The first one of a kind and address is written at once; those that follow within ten
 * seconds are counted, and told by one line with their `count`. So no client can fill a disk with lines.
 */
export class RefusalLog {
  readonly #log: ServiceLog;
  readonly #timers: Timers;
  readonly #nowMs: () => number;
  /** In the order of their ends. */
  readonly #windows = new Map<string, Counted>();
  #timer: unknown;

  constructor(log: ServiceLog, timers: Timers = SYSTEM_TIMERS, nowMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#timers = timers;
    this.#nowMs = nowMs;
  }

  write(line: RefusalLine): void {
    const own = `${line.kind} ${line.address}`;
    const isToldApart = this.#windows.has(own) || this.#windows.size < TOLD_APART;
    const key = isToldApart ? own : `${line.kind} of others`;
    const counted = this.#windows.get(key);
    if (counted === undefined) {
      this.#begin(key);
      this.#write(line, line.fields());
      return;
    }
    counted.count++;
    counted.line ??= { ...line, address: isToldApart ? line.address : "", fields: line.fields() };
  }

  /** Writes what was counted until now. */
  flush(): void {
    for (const { count, line } of this.#windows.values()) {
      if (line !== undefined) this.#write(line, { ...line.fields, count });
    }
    this.#windows.clear();
    this.#timers.clear(this.#timer);
    this.#timer = undefined;
  }

  #write({ level, address, message }: Omit<RefusalLine, "fields">, fields: Record<string, unknown>): void {
    this.#log[level]({ ...fields, ...(address !== "" && { remote_address: shownAddress(address) }) }, message);
  }

  #begin(key: string): void {
    this.#windows.set(key, { endMs: this.#nowMs() + WINDOW_MS, count: 0, line: undefined });
    this.#timer ??= this.#timers.set(() => this.#endWindows(), WINDOW_MS);
  }

  #endWindows(): void {
    const nowMs = this.#nowMs();
    for (const [key, { endMs, count, line }] of [...this.#windows]) {
      // The others began later.
      if (endMs > nowMs) break;
      this.#windows.delete(key);
      if (line === undefined) continue;
      this.#begin(key);
      this.#write(line, { ...line.fields, count });
    }
    const [next] = this.#windows.values();
    this.#timer = next && this.#timers.set(() => this.#endWindows(), next.endMs - nowMs);
  }
}

const SYSTEM_TIMERS: Timers = {
  // The end of the process does not wait for it.
  set: (callback, delayMs) => setTimeout(callback, delayMs).unref(),
  clear: (handle) => clearTimeout(handle as NodeJS.Timeout | undefined),
};

/** In its shortest form, that of IPv4 also where the connection came over IPv6. */
function shownAddress(address: string): string {
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
}
