import ipaddr from "ipaddr.js";
import { type Timers, UNREFERENCED_TIMERS } from "../../core/timers.js";
import type { ServiceLog } from "./service-log.js";

/** Least time between two lines of the same kind and address. */
const WINDOW_MS = 10_000;

/** Most kinds and addresses that are counted apart; further addresses share one line for each kind. */
const TOLD_APART = 100;

export interface RefusalLine {
  level: "info" | "warn" | "error";
  /** Lines of the same kind are counted together; the kind is a status, for example. */
  kind: string;
  /** Address of the client; empty if unknown. */
  address: string;
  message: string;
  /** Called only for a line that is written. */
  fields(): Record<string, unknown>;
}

/** Ten seconds of one kind and address, after its first line was written. */
interface Counted {
  endMs: number;
  /** Since the last line. */
  count: number;
  /** The first counted line, which stands for all of them. */
  line: (Omit<RefusalLine, "fields"> & { fields: Record<string, unknown> }) | undefined;
}

/**
 * Log lines that anybody can cause with a request. The first line of a kind and address is written at once. Those that follow within ten
 * seconds are counted, and one line reports their `count`. So no client can fill the disk with log lines.
 */
export class RefusalLog {
  readonly #log: ServiceLog;
  readonly #timers: Timers;
  readonly #nowMs: () => number;
  /** In order of their end. */
  readonly #windows = new Map<string, Counted>();
  #timer: unknown;

  constructor(log: ServiceLog, timers: Timers = UNREFERENCED_TIMERS, nowMs: () => number = () => performance.now()) {
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

  /** Writes the counts so far. */
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

/** The address in its shortest form; as IPv4 if it is an IPv4 address in IPv6 form. */
function shownAddress(address: string): string {
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
}
