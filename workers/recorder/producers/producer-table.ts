import { canonicalUuid } from "../../../core/identifiers.js";
import { isPlainObject } from "../../../core/json/json.js";
import { LIMITS } from "../../../core/limits.js";
import type { Refusal } from "../../../core/link/refusal.js";
import type { Origin } from "../../../storage/records/record-index.js";
import { refusalBytes } from "../../cell-link/bounds/bounded-refusal.js";

interface StoredRefusal {
  refusal: Refusal;
  bytes: number;
}

/** How far one producer has come in its sequence. It is known by its stable name and outlives its connections and the process. */
export interface Producer {
  readonly name: string;
  /** Last sequence number that was taken: its record is committed or will be. */
  taken: number;
  /** Last sequence number whose record is committed: what may be acknowledged. */
  committed: number;
  /**
   * The last sequence number taken from each instance.
   *
   * Only the `LIMITS.instancesPerProducer` instances with the highest sequence numbers are kept. They sent last, in
   * whatever order the log is read. If all producers together have more than `LIMITS.instances`, the producer with the
   * most loses its oldest.
   */
  readonly instances: Map<string, number>;
  /** Time of its last record, UTC in microseconds. */
  lastUsedUs: number;
  /** By sequence number, oldest first; at most the last `LIMITS.refusalsPerProducer`. */
  readonly refusals: Map<number, StoredRefusal>;
  refusalBytes: number;
}

/** One producer in the opening state of a segment. */
export type ProducerEntry = [
  name: string,
  taken: number,
  refusals: [sequence: number, refusal: Refusal][],
  instances: [instance: string, sequence: number][],
  lastUsedUs: number,
];

export function isProducerEntry(value: unknown): value is ProducerEntry {
  if (!Array.isArray(value)) return false;
  const [name, taken, refusals, instances, lastUsedUs] = value as unknown[];
  if (typeof name !== "string" || !Number.isSafeInteger(taken) || !Number.isSafeInteger(lastUsedUs)) return false;
  if (!Array.isArray(refusals) || !refusals.every(isRefusalEntry)) return false;
  return Array.isArray(instances) && instances.every(isInstanceEntry);
}

function isInstanceEntry(value: unknown): boolean {
  if (!Array.isArray(value) || !Number.isSafeInteger(value[1])) return false;
  return typeof value[0] === "string" && canonicalUuid(value[0]) === value[0];
}

function isRefusalEntry(value: unknown): boolean {
  return Array.isArray(value) && Number.isSafeInteger(value[0]) && isPlainObject(value[1]);
}

/**
 * Producers by name, with their sequence numbers and stored refusals. This makes a resend harmless.
 *
 * It is bounded by `LIMITS.producers`, `LIMITS.instances`, `LIMITS.refusalsPerProducer` and `LIMITS.refusalBytes`. A
 * producer takes about 200 bytes, an instance 100 bytes, and a refusal twice its JSON.
 */
export class ProducerTable {
  readonly #producers = new Map<string, Producer>();
  #refusalBytes = 0;
  #instances = 0;

  get size(): number {
    return this.#producers.size;
  }

  get(name: string): Producer | undefined {
    return this.#producers.get(name);
  }

  /** The producer with this name; undefined if it is new and there are already `LIMITS.producers`. */
  getOrAdd(name: string): Producer | undefined {
    const known = this.#producers.get(name);
    if (known !== undefined) return known;
    return this.#producers.size >= LIMITS.producers ? undefined : this.#add(name);
  }

  /** Notes that a record has taken this sequence number. @param committed true for a record that was read from disk */
  take(origin: Origin, timeUs: number, refusal: Refusal | null, committed: boolean): void {
    const { producer: name, sequence, instance } = origin;
    // A producer in the log is kept even beyond the limit for new producers.
    const producer = this.#producers.get(name) ?? this.#add(name);
    producer.taken = Math.max(producer.taken, sequence);
    producer.lastUsedUs = Math.max(producer.lastUsedUs, timeUs);
    if (committed) producer.committed = producer.taken;
    if (instance !== undefined) this.#noteInstance(producer, instance, sequence);
    if (refusal !== null) this.#storeRefusal(producer, sequence, refusal);
  }

  /** The record of this sequence number is committed; called in the order of the sequence numbers. */
  commit(name: string, sequence: number): void {
    const producer = this.#producers.get(name);
    if (producer !== undefined) producer.committed = sequence;
  }

  /** Forgets a producer that connected and never sent a message, so that names alone cannot fill the table. */
  forgetUnused(name: string): void {
    if (this.#producers.get(name)?.taken === 0) this.#producers.delete(name);
  }

  /** Forgets a producer and everything known about it. */
  forget(name: string): void {
    const producer = this.#producers.get(name);
    if (producer === undefined) return;
    while (producer.refusals.size > 0) this.#dropOldest(producer);
    this.#instances -= producer.instances.size;
    this.#producers.delete(name);
  }

  /** Names of producers that have stored nothing since `timeUs`. The name that has been unused longest comes first. */
  unusedSince(timeUs: number): string[] {
    const unused = [...this.#producers.values()].filter(
      (producer) => producer.taken > 0 && producer.lastUsedUs < timeUs,
    );
    return unused.sort((a, b) => a.lastUsedUs - b.lastUsedUs).map(({ name }) => name);
  }

  /** Producers that have stored something. */
  used(): Iterable<Readonly<Producer>> {
    return [...this.#producers.values()].filter(({ taken }) => taken > 0);
  }

  entries(): ProducerEntry[] {
    return [...this.used()].map((producer) => [
      producer.name,
      producer.taken,
      [...producer.refusals].map(([sequence, stored]) => [sequence, stored.refusal]),
      [...producer.instances],
      producer.lastUsedUs,
    ]);
  }

  /** Replaces everything by the producers of an opening state: they sum up everything before. */
  restore(entries: readonly ProducerEntry[]): void {
    this.#producers.clear();
    this.#refusalBytes = 0;
    this.#instances = 0;
    for (const [name, taken, refusals, instances, lastUsedUs] of entries) {
      this.take({ producer: name, sequence: taken }, lastUsedUs, null, true);
      const producer = this.#producers.get(name) as Producer;
      for (const [instance, sequence] of instances) this.#noteInstance(producer, instance, sequence);
      for (const [sequence, refusal] of refusals) {
        this.#storeRefusal(producer, sequence, refusal);
      }
    }
  }

  #add(name: string): Producer {
    const progress = { name, taken: 0, committed: 0, instances: new Map() };
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
      // The producer with the most refusals loses one. So a faulty producer costs the others nothing.
      this.#dropOldest(this.#most(producer, ({ refusalBytes }) => refusalBytes));
    }
  }

  #noteInstance(producer: Producer, instance: string, sequence: number): void {
    const { instances } = producer;
    const before = instances.get(instance);
    instances.set(instance, Math.max(before ?? 0, sequence));
    if (before !== undefined) return;
    this.#instances++;
    if (instances.size > LIMITS.instancesPerProducer) this.#dropOldestInstance(producer);
    else if (this.#instances > LIMITS.instances)
      this.#dropOldestInstance(this.#most(producer, ({ instances }) => instances.size));
  }

  #dropOldestInstance({ instances }: Producer): void {
    let oldest = "";
    let oldestSequence = Number.POSITIVE_INFINITY;
    for (const [instance, sequence] of instances) {
      if (sequence >= oldestSequence) continue;
      oldest = instance;
      oldestSequence = sequence;
    }
    instances.delete(oldest);
    this.#instances--;
  }

  /** The producer that has most of something; `one` if none has more than it. */
  #most(one: Producer, of: (producer: Producer) => number): Producer {
    let most = one;
    for (const other of this.#producers.values()) if (of(other) > of(most)) most = other;
    return most;
  }

  #dropOldest(producer: Producer): void {
    for (const [sequence, { bytes }] of producer.refusals) {
      producer.refusals.delete(sequence);
      producer.refusalBytes -= bytes;
      this.#refusalBytes -= bytes;
      return;
    }
  }
}
