import { canonicalUuid } from "../../core/identifiers.js";
import { isPlainObject } from "../../core/json/json.js";
import { LIMITS } from "../../core/limits.js";
import type { Refusal } from "../../core/link/refusal.js";
import type { Origin } from "../../storage/records/record-index.js";
import { refusalBytes } from "../cell-link/bounds/bounded-refusal.js";

interface StoredRefusal {
  refusal: Refusal;
  bytes: number;
}

/** One producer's place in its sequence, by its stable name. It outlives its connections, and the process. */
export interface Producer {
  readonly name: string;
  /** Last number that was taken: its record is committed or on its way. */
  taken: number;
  /** Last number whose record is committed: what may be acknowledged. */
  committed: number;
  /**
   * The last number that was taken of each instance, the newest last. Only the newest `LIMITS.instancesPerProducer`: these are the ones with
   * the highest numbers, so that the log gives the same in whatever order it is read.
   */
  readonly instances: Map<string, number>;
  /** The last of these; null where there are none. */
  newestInstance: string | null;
  /** Of its last record, UTC in microseconds; 0 in a store of before that was kept. */
  lastUsedUs: number;
  /** By number, oldest first; the last 1,024. */
  readonly refusals: Map<number, StoredRefusal>;
  refusalBytes: number;
}

/** Of one producer, in the opening state of a segment. Those of before instances do not have the last two. */
export type ProducerSnapshot = [
  name: string,
  taken: number,
  refusals: [sequence: number, refusal: Refusal][],
  instances?: [instance: string, sequence: number][],
  lastUsedUs?: number,
];

export function isProducerSnapshot(value: unknown): value is ProducerSnapshot {
  if (!Array.isArray(value) || typeof value[0] !== "string" || !Number.isSafeInteger(value[1])) return false;
  const [, , refusals, instances = [], lastUsedUs = 0] = value as unknown[];
  if (!Number.isSafeInteger(lastUsedUs)) return false;
  if (!Array.isArray(refusals) || !refusals.every(isRefusalSnapshot)) return false;
  return Array.isArray(instances) && instances.every(isInstanceSnapshot);
}

function isInstanceSnapshot(value: unknown): boolean {
  if (!Array.isArray(value) || !Number.isSafeInteger(value[1])) return false;
  return typeof value[0] === "string" && canonicalUuid(value[0]) === value[0];
}

function isRefusalSnapshot(value: unknown): boolean {
  return Array.isArray(value) && Number.isSafeInteger(value[0]) && isPlainObject(value[1]);
}

/**
 * Producers by name with their numbers and stored refusals: what makes a resend harmless. Bounded by `LIMITS.producers`,
 * `LIMITS.refusalsPerProducer` and `LIMITS.refusalBytes` (some 200 bytes a producer, 100 an instance, twice its JSON a refusal).
 */
export class ProducerTable {
  readonly #producers = new Map<string, Producer>();
  readonly #onRefusalDropped: (name: string, sequence: number) => void;
  #refusalBytes = 0;

  /** `onRefusalDropped`: a stored refusal had to make room. */
  constructor(onRefusalDropped: (name: string, sequence: number) => void = () => {}) {
    this.#onRefusalDropped = onRefusalDropped;
  }

  get size(): number {
    return this.#producers.size;
  }

  get(name: string): Producer | undefined {
    return this.#producers.get(name);
  }

  /** The producer of this name; undefined when it is new and there are too many already. */
  getOrAdd(name: string): Producer | undefined {
    const known = this.#producers.get(name);
    if (known !== undefined) return known;
    return this.#producers.size >= LIMITS.producers ? undefined : this.#add(name);
  }

  /** A record of the log says that this number was taken; `committed` when the log says it from disk. */
  take(origin: Origin, timeUs: number, refusal: Refusal | null, committed: boolean): void {
    const { producer: name, sequence, instance } = origin;
    // What the log has counts, also beyond the limit that new producers meet.
    const producer = this.#producers.get(name) ?? this.#add(name);
    producer.taken = Math.max(producer.taken, sequence);
    producer.lastUsedUs = Math.max(producer.lastUsedUs, timeUs);
    if (committed) producer.committed = producer.taken;
    if (instance !== undefined) noteInstance(producer, instance, sequence);
    if (refusal !== null) this.#storeRefusal(producer, sequence, refusal);
  }

  /** True while the refusal of this number is stored. */
  holdsRefusal(name: string, sequence: number): boolean {
    return this.#producers.get(name)?.refusals.has(sequence) ?? false;
  }

  /** The record of this number is committed; called in the order of the numbers. */
  commit(name: string, sequence: number): void {
    const producer = this.#producers.get(name);
    if (producer !== undefined) producer.committed = sequence;
  }

  /** Forgets a producer that connected and never sent a message: names alone fill no table. */
  forgetUnused(name: string): void {
    if (this.#producers.get(name)?.taken === 0) this.#producers.delete(name);
  }

  /** Forgets a producer with all that is known of it. */
  forget(name: string): void {
    const producer = this.#producers.get(name);
    if (producer === undefined) return;
    while (producer.refusals.size > 0) this.#dropOldest(producer);
    this.#producers.delete(name);
  }

  /** Names, longest unused first, that have stored nothing since then. */
  unusedSince(timeUs: number): string[] {
    const unused = [...this.#producers.values()].filter(
      (producer) => producer.taken > 0 && producer.lastUsedUs < timeUs,
    );
    return unused.sort((a, b) => a.lastUsedUs - b.lastUsedUs).map(({ name }) => name);
  }

  /** All that have stored something. */
  used(): Iterable<Readonly<Producer>> {
    return [...this.#producers.values()].filter(({ taken }) => taken > 0);
  }

  snapshot(): ProducerSnapshot[] {
    return [...this.used()].map((producer) => [
      producer.name,
      producer.taken,
      [...producer.refusals].map(([sequence, stored]) => [sequence, stored.refusal]),
      [...producer.instances],
      producer.lastUsedUs,
    ]);
  }

  /** Takes in a snapshot that the log holds. It never sets a number back. */
  restore(snapshot: readonly ProducerSnapshot[]): void {
    for (const [name, taken, refusals, instances = [], lastUsedUs = 0] of snapshot) {
      this.take({ producer: name, sequence: taken }, lastUsedUs, null, true);
      const producer = this.#producers.get(name) as Producer;
      for (const [instance, sequence] of instances) noteInstance(producer, instance, sequence);
      for (const [sequence, refusal] of refusals) {
        if (!producer.refusals.has(sequence)) this.#storeRefusal(producer, sequence, refusal);
      }
    }
  }

  #add(name: string): Producer {
    const progress = { name, taken: 0, committed: 0, instances: new Map(), newestInstance: null };
    const producer: Producer = { ...progress, lastUsedUs: 0, refusals: new Map(), refusalBytes: 0 };
    this.#producers.set(name, producer);
    return producer;
  }

  #storeRefusal(producer: Producer, sequence: number, refusal: Refusal): void {
    const bytes = refusalBytes(refusal);
    producer.refusals.set(sequence, { refusal, bytes });
    producer.refusalBytes += bytes;
    this.#refusalBytes += bytes;
    if (producer.refusals.size > LIMITS.refusalsPerProducer) this.#dropOldest(producer);
    while (this.#refusalBytes > LIMITS.refusalBytes) {
      // Of the one that has most: a producer gone wild costs the others nothing.
      let most = producer;
      for (const other of this.#producers.values()) if (other.refusalBytes > most.refusalBytes) most = other;
      this.#dropOldest(most);
    }
  }

  #dropOldest(producer: Producer): void {
    for (const [sequence, { bytes }] of producer.refusals) {
      producer.refusals.delete(sequence);
      producer.refusalBytes -= bytes;
      this.#refusalBytes -= bytes;
      this.#onRefusalDropped(producer.name, sequence);
      return;
    }
  }
}

/** Keeps the instances in the order of their last numbers, and the newest of them only. */
function noteInstance(producer: Producer, instance: string, sequence: number): void {
  const { instances } = producer;
  const before = instances.get(instance) ?? 0;
  if (before >= sequence) return;
  if (instance !== producer.newestInstance) {
    // Behind the others; only a replay comes back to numbers below theirs.
    instances.delete(instance);
    const later = [...instances].filter(([, last]) => last > sequence);
    for (const [one] of later) instances.delete(one);
    instances.set(instance, sequence);
    for (const [one, last] of later) instances.set(one, last);
    if (later.length === 0) producer.newestInstance = instance;
    const [oldest] = instances.keys();
    if (instances.size > LIMITS.instancesPerProducer && oldest !== undefined) instances.delete(oldest);
    return;
  }
  instances.set(instance, sequence);
}
