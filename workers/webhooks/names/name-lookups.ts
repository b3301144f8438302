/**
 * Looks up receivers' names as the system does, and lets no name hold up another.
 *
 * The system's way is `getaddrinfo`: only it knows what the cell PC is set up with — the hosts file, search domains for a short name as
 * `mes`, mDNS for `mes.local`, a resolv.conf that changes when the network comes up, the order of nsswitch.conf — so a receiver resolves
 * here exactly when `getent ahosts` on this machine says so. c-ares (`dns.Resolver`) needs no threads, but reads neither hosts file nor
 * search domains for what it resolves, knows no mDNS, and keeps the resolv.conf of its start. `getaddrinfo` blocks a thread, though, for
 * half a minute with a name server that does not answer, and in this process there are 4 threads for it and for every file. So
 * it runs in a process of its own, with a thread for each place, and these rules:
 *
 * - A name is looked up once at a time, however many wait for it, and so holds one place at most.
 * - Names that never resolved leave `PLACES_OF_KNOWN` places to those that did: any number of dead names stays beside them.
 * - A name that takes longer than `LAST_GOOD_AFTER_MS`, or does not resolve for now, is what it was last, for a day at most (as RFC 8767
 *   has it): a name server that is down does not stop the deliveries. A name that is said not to exist is nothing any more.
 * - Nobody waits longer than the dispatch window.
 * - A process from which nothing comes while names are asked for is asked for an address, which it knows without a thread. One that does
 *   not answer that either hangs (it was stopped, or a debugger holds it), and is replaced.
 */
import { LRUCache } from "lru-cache";
import { LIMITS } from "../../../core/limits.js";
import type { Timers } from "../../../core/timers.js";

/** Look-ups at a time. */
export const PLACES = 128;
export const PLACES_OF_KNOWN = 32;
/** Below the shortest time-out of an attempt, so that it still can be made. */
export const LAST_GOOD_AFTER_MS = 500;
const LAST_GOOD_MS = 24 * 60 * 60 * 1000;
/** A process that ends by itself is not started again at once, for each name. */
const START_AGAIN_MS = 1_000;
/** What a process that lives answers at once, whatever its threads wait for. */
export const PING = "127.0.0.1";
/**
 * How often a process is looked at that was asked: after `PING_AFTER` looks without an answer it is asked for `PING`, after `HANGS_AFTER`
 * it hangs. Looks are counted, not time: after a sleep of the machine, what was answered meanwhile is read before the next one.
 */
export const WATCH_MS = 500;
export const PING_AFTER = 2;
export const HANGS_AFTER = 8;

export type NamedAddress = { address: string; family: number };
export type LookupCallback = (error: Error | null, addresses: NamedAddress[]) => void;

export interface LookupAnswer {
  hostname: string;
  /** Of the error: `ENOTFOUND`, `EAI_AGAIN` and others; null with addresses. */
  code: string | null;
  addresses: NamedAddress[];
}

/** Where the looking up is done. */
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

/** A name does not resolve; `code` as of `dns.lookup`. */
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
  /** It holds a place; otherwise it waits for one. */
  isRunning: boolean;
  /** It counts among those that had resolved before. */
  isKnown: boolean;
  /** Somebody has waited for it as long as may be. */
  isOverdue: boolean;
  timer: unknown;
}

export class NameLookups {
  readonly #options: NameLookupsOptions;
  readonly #lookups = new Map<string, Lookup>();
  readonly #waitingKnown = new Set<string>();
  readonly #waitingOthers = new Set<string>();
  /** What names were last; one of each receiver's is enough. */
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

  /** `callback` is called once, never before this returns, with addresses or a `NameLookupError`. */
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

  /** Ends its process; whoever waits is told that the name does not resolve. */
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

  /** It takes long: those who wait get what there is. It goes on, and holds its place, if it has one. */
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
