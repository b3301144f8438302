/**
 * Looks up receivers' host names as the system does. No name holds up another.
 *
 * The system's way is `getaddrinfo`. Only it knows how the cell PC is set up: the hosts file, search domains for a short name like `mes`,
 * mDNS for `mes.local`, a resolv.conf that changes when the network comes up, the order of nsswitch.conf. So a receiver resolves here
 * exactly when `getent ahosts` on this machine resolves it. c-ares (`dns.Resolver`) needs no threads, but it reads neither the hosts file
 * nor search domains, knows no mDNS, and keeps the resolv.conf of its start. But `getaddrinfo` blocks a thread for half a minute if the
 * name server does not answer, and this process has 4 threads for it and for every file. So it runs in a process of its own, with a
 * thread for each place, and with these rules:
 *
 * - A name is looked up once at a time, however many wait for it. So it holds at most one place.
 * - Names that never resolved leave `PLACES_OF_KNOWN` places to names that did. So dead names cannot take all places.
 * - If a look-up takes longer than `LAST_GOOD_AFTER_MS` or fails for now, the last known addresses are used, for up to 24 hours (as in
 *   RFC 8767). So deliveries go on when a name server is down. If the server says that the name does not exist, they are dropped.
 * - Nobody waits longer than the dispatch window.
 * - If the process does not answer for a while, it is asked for a numeric address, which needs no thread. If it does not answer that
 *   either, it hangs (it was stopped, or a debugger holds it) and is replaced.
 */
import { LRUCache } from "lru-cache";
import { LIMITS } from "../../../core/limits.js";
import type { Timers } from "../../../core/timers.js";

/** Most look-ups at a time. */
export const PLACES = 128;
/** Places that only names that have resolved before may take. */
export const PLACES_OF_KNOWN = 32;
/** Shorter than the shortest time-out of an attempt, so that the attempt can still be made. */
export const LAST_GOOD_AFTER_MS = 500;
const LAST_GOOD_MS = 24 * 60 * 60 * 1000;
/** A process that has ended by itself is started again only after this time. */
const START_AGAIN_MS = 1_000;
/** A name that a healthy process always answers at once. */
export const PING = "127.0.0.1";
/**
 * How often a process with open questions is checked. After `PING_AFTER` checks without an answer it is asked for `PING`; after
 * `HANGS_AFTER` it counts as hanging. Checks are counted, not time: after the machine has slept, answers are read before the next check.
 */
export const WATCH_MS = 500;
export const PING_AFTER = 2;
export const HANGS_AFTER = 8;

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
  start(onAnswer: (answer: LookupAnswer) => void, onExit: () => void): LookupProcess;
  timers: Timers;
  /** Monotonic, in milliseconds. */
  nowMs(): number;
}

/** A name does not resolve. `code` is that of `dns.lookup`. */
export class NameLookupError extends Error {
  override name = "NameLookupError";
  readonly code: string;

  constructor(hostname: string, code: string) {
    super(`the look-up of ${hostname} failed: ${code}`);
    this.code = code;
  }
}

interface Lookup {
  callbacks: LookupCallback[];
  /** True: it holds a place. False: it waits for one. */
  isRunning: boolean;
  /** The name has resolved before. */
  isKnown: boolean;
  /** Somebody has waited for it as long as allowed. */
  isOverdue: boolean;
  timer: unknown;
}

export class NameLookups {
  readonly #options: NameLookupsOptions;
  readonly #lookups = new Map<string, Lookup>();
  readonly #waitingKnown = new Set<string>();
  readonly #waitingOthers = new Set<string>();
  /** Last known addresses by name. One name for each receiver is enough. */
  readonly #lastGood = new LRUCache<string, { addresses: NamedAddress[]; atMs: number }>({ max: LIMITS.webhooks });
  #running = 0;
  #runningOthers = 0;
  #process: LookupProcess | null = null;
  #endedAtMs = Number.NEGATIVE_INFINITY;
  /** Armed while names are asked for. */
  #watch: unknown = null;
  #looksWithoutAnswer = 0;
  #isClosed = false;

  constructor(options: NameLookupsOptions) {
    this.#options = options;
  }

  /** Calls back once, never before this returns, with addresses or a `NameLookupError`. */
  lookUp(hostname: string, callback: LookupCallback): void {
    const { nowMs } = this.#options;
    if (this.#isClosed || (this.#process === null && nowMs() - this.#endedAtMs < START_AGAIN_MS)) {
      queueMicrotask(() => this.#unresolved(hostname, "EAI_AGAIN", [callback]));
      return;
    }
    const lookup = this.#lookups.get(hostname) ?? this.#begin(hostname);
    const hasLastGood = this.#lastGoodOf(hostname) !== undefined;
    if (lookup.isOverdue && hasLastGood) {
      queueMicrotask(() => this.#unresolved(hostname, "EAI_AGAIN", [callback]));
      return;
    }
    lookup.callbacks.push(callback);
    if (lookup.timer === null) {
      const delayMs = hasLastGood ? LAST_GOOD_AFTER_MS : LIMITS.dispatchWindowMs;
      lookup.timer = this.#options.timers.set(() => this.#overdue(hostname, lookup), delayMs);
    }
    this.#pump();
  }

  /** Ends the process. Whoever waits gets the last known addresses or an error. */
  close(): void {
    this.#isClosed = true;
    this.#stopWatching();
    this.#process?.kill();
    this.#process = null;
    for (const [hostname, lookup] of this.#lookups) this.#settle(lookup, "EAI_AGAIN", hostname);
    this.#lookups.clear();
  }

  #begin(hostname: string): Lookup {
    const isKnown = this.#lastGoodOf(hostname) !== undefined;
    const lookup: Lookup = { callbacks: [], isRunning: false, isKnown, isOverdue: false, timer: null };
    this.#lookups.set(hostname, lookup);
    (isKnown ? this.#waitingKnown : this.#waitingOthers).add(hostname);
    return lookup;
  }

  #pump(): void {
    const take = (waiting: Set<string>): void => {
      const [hostname] = waiting as Iterable<string>;
      if (hostname === undefined) return;
      waiting.delete(hostname);
      this.#run(hostname);
    };
    while (this.#waitingKnown.size > 0 && this.#running < PLACES) take(this.#waitingKnown);
    const placesOfOthers = PLACES - PLACES_OF_KNOWN;
    while (this.#waitingOthers.size > 0 && this.#running < PLACES && this.#runningOthers < placesOfOthers) {
      take(this.#waitingOthers);
    }
  }

  #run(hostname: string): void {
    const lookup = this.#lookups.get(hostname) as Lookup;
    lookup.isRunning = true;
    this.#running++;
    if (!lookup.isKnown) this.#runningOthers++;
    this.#process ??= this.#options.start(
      (answer) => this.#answered(answer),
      () => this.#ended(),
    );
    this.#process.ask(hostname);
    if (this.#watch === null) this.#watchOn();
  }

  #watchOn(): void {
    this.#watch = this.#options.timers.set(() => this.#look(), WATCH_MS);
  }

  #stopWatching(): void {
    if (this.#watch !== null) this.#options.timers.clear(this.#watch);
    this.#watch = null;
    this.#looksWithoutAnswer = 0;
  }

  #look(): void {
    this.#looksWithoutAnswer++;
    if (this.#looksWithoutAnswer === PING_AFTER) this.#process?.ask(PING);
    if (this.#looksWithoutAnswer < HANGS_AFTER) {
      this.#watchOn();
      return;
    }
    this.#process?.kill();
    this.#ended();
  }

  #answered({ hostname, code, addresses }: LookupAnswer): void {
    this.#looksWithoutAnswer = 0;
    const lookup = this.#lookups.get(hostname);
    if (lookup?.isRunning !== true) return;
    this.#lookups.delete(hostname);
    this.#running--;
    if (!lookup.isKnown) this.#runningOthers--;
    if (code === null) this.#lastGood.set(hostname, { addresses, atMs: this.#options.nowMs() });
    else if (code === "ENOTFOUND") this.#lastGood.delete(hostname);
    this.#settle(lookup, code, hostname, addresses);
    this.#pump();
    if (this.#running === 0) this.#stopWatching();
  }

  /** A look-up takes long: whoever waits gets the last known addresses or an error. If it holds a place, it goes on. */
  #overdue(hostname: string, lookup: Lookup): void {
    lookup.isOverdue = true;
    this.#settle(lookup, "EAI_AGAIN", hostname);
    if (lookup.isRunning) return;
    this.#lookups.delete(hostname);
    this.#waitingKnown.delete(hostname);
    this.#waitingOthers.delete(hostname);
  }

  #ended(): void {
    this.#process = null;
    this.#stopWatching();
    this.#endedAtMs = this.#options.nowMs();
    const all = [...this.#lookups];
    this.#lookups.clear();
    this.#waitingKnown.clear();
    this.#waitingOthers.clear();
    this.#running = 0;
    this.#runningOthers = 0;
    for (const [hostname, lookup] of all) this.#settle(lookup, "EAI_AGAIN", hostname);
  }

  #settle(lookup: Lookup, code: string | null, hostname: string, addresses: NamedAddress[] = []): void {
    this.#options.timers.clear(lookup.timer);
    lookup.timer = null;
    const callbacks = lookup.callbacks.splice(0);
    if (code === null) for (const callback of callbacks) callback(null, addresses);
    else this.#unresolved(hostname, code, callbacks);
  }

  #unresolved(hostname: string, code: string, callbacks: readonly LookupCallback[]): void {
    const lastGood = code === "EAI_AGAIN" ? this.#lastGoodOf(hostname) : undefined;
    for (const callback of callbacks) {
      if (lastGood !== undefined) callback(null, lastGood);
      else callback(new NameLookupError(hostname, code), []);
    }
  }

  #lastGoodOf(hostname: string): NamedAddress[] | undefined {
    const kept = this.#lastGood.get(hostname);
    return kept !== undefined && this.#options.nowMs() - kept.atMs <= LAST_GOOD_MS ? kept.addresses : undefined;
  }
}
