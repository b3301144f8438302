/**
 * Looks up receivers' host names as the system does. A dead name server holds up nobody.
 *
 * The system's way is `getaddrinfo`. Only it knows how the cell PC is set up: the hosts file, search domains for a short name like `mes`,
 * mDNS for `mes.local`, a resolv.conf that changes when the network comes up, the order of nsswitch.conf. So a receiver resolves here
 * exactly when `getent ahosts` on this machine resolves it. c-ares (`dns.Resolver`) needs no threads, but it reads neither the hosts file
 * nor search domains, knows no mDNS, and keeps the resolv.conf of its start. But `getaddrinfo` blocks a thread for half a minute if the
 * name server does not answer, and this process has 4 threads for it and for every file. So it runs in a process of its own with many
 * threads, and with these rules:
 *
 * - A name is looked up once at a time, however many wait for it. So a dead one holds one thread at most.
 * - If a look-up takes longer than `LAST_GOOD_AFTER_MS` or fails for now, the last known addresses are used, for up to 24 hours (as in
 *   RFC 8767). So deliveries go on when a name server is down. If the server says that the name does not exist, they are dropped.
 * - Nobody waits longer than the dispatch window.
 */
import { LRUCache } from "lru-cache";
import { LIMITS } from "../../../core/limits.js";
import type { Timers } from "../../../core/timers.js";
import { isOutOfMemory, shortageOf } from "../../../storage/disk/file-system-error.js";

/** Shorter than the shortest time-out of an attempt, so that the attempt can still be made. */
export const LAST_GOOD_AFTER_MS = 500;
const LAST_GOOD_MS = 24 * 60 * 60 * 1000;
/** A process that has ended by itself is started again only after this time. */
const START_AGAIN_MS = 1_000;

export type NamedAddress = { address: string; family: number };
export type LookupCallback = (error: Error | null, addresses: NamedAddress[]) => void;

export interface LookupAnswer {
  hostname: string;
  /** Code of the error, such as `ENOTFOUND` or `EAI_AGAIN`; null with addresses. */
  code: string | null;
  addresses: NamedAddress[];
}

/** The process that does the look-ups. */
export interface LookupProcess {
  ask(hostname: string): void;
  kill(): void;
}

export interface NameLookupsOptions {
  /** @param onExit called once, when the process has ended; with an error if it could not be started */
  start(onAnswer: (answer: LookupAnswer) => void, onExit: (error?: Error) => void): LookupProcess;
  timers: Timers;
  /** Monotonic, in milliseconds. */
  nowMs(): number;
}

/** A name does not resolve. `code` is that of `dns.lookup`, or names what the machine lacked to start the process. */
export class NameLookupError extends Error {
  override name = "NameLookupError";
  readonly code: string;

  constructor(hostname: string, code: string) {
    super(`the look-up of ${hostname} failed: ${code}`);
    this.code = code;
  }
}

export class NameLookups {
  readonly #options: NameLookupsOptions;
  /** The callers that wait for a name, each with its timer. The process looks up each of these names. */
  readonly #waiting = new Map<string, Map<LookupCallback, unknown>>();
  /** Last known addresses by name. One name for each receiver is enough. */
  readonly #lastGood = new LRUCache<string, { addresses: NamedAddress[]; atMs: number }>({ max: LIMITS.webhooks });
  #process: LookupProcess | null = null;
  #endedAtMs = Number.NEGATIVE_INFINITY;
  /** Code of the error for names that are asked for until the process is started again. */
  #endedCode = "EAI_AGAIN";
  #isClosed = false;

  constructor(options: NameLookupsOptions) {
    this.#options = options;
  }

  /** Calls back once, never before this returns, with addresses or a `NameLookupError`. */
  lookUp(hostname: string, callback: LookupCallback): void {
    const { nowMs, timers } = this.#options;
    if (this.#isClosed || (this.#process === null && nowMs() - this.#endedAtMs < START_AGAIN_MS)) {
      queueMicrotask(() => this.#unresolved(hostname, this.#endedCode, callback));
      return;
    }
    const waiting = this.#waiting.get(hostname) ?? this.#ask(hostname);
    const waitMs = this.#lastGoodOf(hostname) === undefined ? LIMITS.dispatchWindowMs : LAST_GOOD_AFTER_MS;
    const giveUp = (): void => {
      waiting.delete(callback);
      this.#unresolved(hostname, "EAI_AGAIN", callback);
    };
    waiting.set(callback, timers.set(giveUp, waitMs));
  }

  /** Ends the process. Whoever waits gets the last known addresses or an error. */
  close(): void {
    this.#isClosed = true;
    this.#process?.kill();
    this.#ended();
  }

  #ask(hostname: string): Map<LookupCallback, unknown> {
    const waiting = new Map<LookupCallback, unknown>();
    this.#waiting.set(hostname, waiting);
    this.#process ??= this.#options.start(
      (answer) => this.#answered(answer),
      (error) => this.#ended(error),
    );
    this.#process.ask(hostname);
    return waiting;
  }

  #answered({ hostname, code, addresses }: LookupAnswer): void {
    if (code === null) this.#lastGood.set(hostname, { addresses, atMs: this.#options.nowMs() });
    else if (code === "ENOTFOUND") this.#lastGood.delete(hostname);
    this.#settle(hostname, (callback) => {
      if (code === null) callback(null, addresses);
      else this.#unresolved(hostname, code, callback);
    });
  }

  #ended(error?: NodeJS.ErrnoException): void {
    this.#process = null;
    const ownCode = error?.code;
    const code = isOutOfMemory(error) ? "ENOMEM" : ownCode;
    this.#endedCode = code !== undefined && shortageOf({ code }) !== null ? code : "EAI_AGAIN";
    this.#endedAtMs = this.#options.nowMs();
    for (const hostname of [...this.#waiting.keys()]) {
      this.#settle(hostname, (callback) => this.#unresolved(hostname, this.#endedCode, callback));
    }
  }

  #settle(hostname: string, answer: (callback: LookupCallback) => void): void {
    const waiting = this.#waiting.get(hostname);
    this.#waiting.delete(hostname);
    for (const [callback, timer] of waiting ?? []) {
      this.#options.timers.clear(timer);
      answer(callback);
    }
  }

  #unresolved(hostname: string, code: string, callback: LookupCallback): void {
    const isForNow = code === "EAI_AGAIN" || shortageOf({ code }) !== null;
    const lastGood = isForNow ? this.#lastGoodOf(hostname) : undefined;
    if (lastGood !== undefined) callback(null, lastGood);
    else callback(new NameLookupError(hostname, code), []);
  }

  #lastGoodOf(hostname: string): NamedAddress[] | undefined {
    const kept = this.#lastGood.get(hostname);
    return kept !== undefined && this.#options.nowMs() - kept.atMs <= LAST_GOOD_MS ? kept.addresses : undefined;
  }
}
