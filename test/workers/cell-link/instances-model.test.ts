import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import { createRandom, type Random } from "../../../core/random.js";
import {
  isRefused,
  ModelProducer,
  ModelService,
  type ProducerKind,
  type StoredMessage,
} from "../../helpers/link/instances-model.js";
import { instanceOf } from "../../helpers/store/state-writer.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 31);
const HISTORIES = sized(1_500, 10_000);
/** Histories with many more instances than a cell has, in which each sends now and then. */
const CROWDED = { share: 0.02, instances: 40, steps: 200 };
const KINDS: readonly ProducerKind[] = ["client", "client", "plain", "plain", "without instance"];

/** One or two names, each with any number of instances, over a service that crashes. */
class History {
  readonly faults: string[] = [];
  readonly counts = { messages: 0, acknowledged: 0, crashes: 0, connections: 0, alternations: 0 };
  readonly #random: Random;
  readonly #durable: StoredMessage[] = [];
  readonly #answers = new Map<number, string>();
  readonly #kinds = new Map<number, ProducerKind>();
  #service: ModelService;
  #producers: ModelProducer[] = [];
  /** Messages without an answer, of processes that ended: they may be stored or not. */
  readonly #abandoned = new Set<number>();
  readonly #owners = new Map<number, ModelProducer>();
  #instances = 0;
  readonly #isCrowded: boolean;

  constructor(random: Random) {
    this.#random = random;
    this.#service = new ModelService(this.#durable, random);
    this.#isCrowded = random.chance(CROWDED.share);
    const begun = this.#isCrowded ? CROWDED.instances : random.integer(1, 4);
    for (let count = begun; count > 0; count--) this.#begin();
  }

  async play(): Promise<void> {
    const steps = this.#isCrowded ? CROWDED.steps : this.#random.integer(5, 30);
    for (let step = 0; step < steps; step++) {
      this.#step();
      if (this.#random.chance(0.7)) await settled();
    }
    await this.#quiet();
    this.#judge();
  }

  #begin(): void {
    const nth = this.#instances++;
    const name = this.#random.chance(0.8) ? "shared" : "other";
    const answered = (key: number, answer: string): void => {
      if (this.#answers.has(key)) this.faults.push(`message ${key} is answered twice`);
      this.#answers.set(key, answer);
    };
    this.#producers.push(new ModelProducer(this.#random.pick(KINDS), name, instanceOf(nth), answered));
  }

  #step(): void {
    const random = this.#random;
    const producer = random.pick(this.#producers);
    switch (random.integer(0, 9)) {
      case 0:
      case 1:
      case 2:
        for (let count = random.integer(1, 4); count > 0; count--) this.#send(producer);
        return;
      case 3:
      case 4:
      case 5:
        if (!producer.isConnected) this.#connect(producer);
        return;
      case 6:
        producer.disconnect();
        return;
      case 7:
        this.#service.commit(random.integer(0, this.#service.waiting));
        return;
      case 8:
        this.#crash();
        return;
      default:
        if (random.chance(0.5)) this.#end(producer);
        this.#begin();
    }
  }

  #send(producer: ModelProducer): void {
    // Without an instance it can keep nothing for later.
    if (producer.kind === "without instance" && !producer.isConnected) return;
    const key = ++this.counts.messages;
    this.#owners.set(key, producer);
    this.#kinds.set(key, producer.kind);
    producer.send(key);
  }

  #connect(producer: ModelProducer): void {
    this.counts.connections++;
    producer.connect(this.#service.link);
  }

  #crash(): void {
    this.counts.crashes++;
    this.#service.crash(this.#random.integer(0, this.#service.waiting));
    for (const producer of this.#producers) producer.disconnect();
    this.counts.alternations += this.#service.alternations;
    this.#service = new ModelService(this.#durable, this.#random);
  }

  #end(producer: ModelProducer): void {
    producer.disconnect();
    this.faults.push(...producer.faults);
    this.#producers = this.#producers.filter((one) => one !== producer);
    for (const [key, owner] of this.#owners) if (owner === producer) this.#abandoned.add(key);
    if (this.#producers.length === 0) this.#producers.push(this.#successor(producer));
  }

  #successor(producer: ModelProducer): ModelProducer {
    return new ModelProducer(
      "plain",
      producer.name,
      instanceOf(LIMITS.instancesPerProducer + this.#instances),
      (key, answer) => {
        this.#answers.set(key, answer);
      },
    );
  }

  /** Every producer that can send again does so, one after the other. */
  async #quiet(): Promise<void> {
    for (const producer of this.#producers) {
      if (producer.kind === "without instance") continue;
      for (let rounds = 0; producer.waiting > 0 && rounds < 20; rounds++) {
        if (!producer.isConnected) this.#connect(producer);
        await settled();
        this.#service.commit(this.#service.waiting);
        await settled();
      }
      if (producer.waiting > 0) this.faults.push(`${producer.waiting} messages of ${producer.kind} are not answered`);
    }
    this.counts.alternations += this.#service.alternations;
    for (const producer of this.#producers) {
      producer.disconnect();
      this.faults.push(...producer.faults);
    }
    await settled();
  }

  #judge(): void {
    const stored = new Map<number, number>();
    for (const { key } of this.#durable) stored.set(key, (stored.get(key) ?? 0) + 1);
    for (let key = 1; key <= this.counts.messages; key++) {
      const times = stored.get(key) ?? 0;
      const answer = this.#answers.get(key);
      const kind = this.#kinds.get(key) as ProducerKind;
      if (answer !== undefined) this.counts.acknowledged++;
      if (times > 1) this.faults.push(`message ${key} of ${kind} is stored ${times} times`);
      if (answer !== undefined && times === 0)
        this.faults.push(`message ${key} of ${kind} was answered (${answer}) and is lost`);
      if (answer === "taken" && isRefused(key))
        this.faults.push(`message ${key} of ${kind} was taken, but it is refused`);
      if (answer === "refused" && !isRefused(key))
        this.faults.push(`message ${key} of ${kind} has another one's refusal`);
      const mustBeStored = kind !== "without instance" && !this.#abandoned.has(key);
      if (mustBeStored && times === 0) this.faults.push(`message ${key} of ${kind} is not stored`);
    }
  }
}

/** Long enough for what was written to arrive and be answered. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 4; turns++) await eventLoopTurn();
}

t.test(`${HISTORIES} histories of instances that share names: what was acknowledged is stored, once`, async (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  const sums = { messages: 0, acknowledged: 0, crashes: 0, connections: 0, alternations: 0 };
  for (let nth = 0; nth < HISTORIES; nth++) {
    const history = new History(createRandom(SEED * 100_000 + nth));
    await history.play();
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += history.counts[key];
    if (history.faults.length === 0) continue;
    t.same(history.faults, [], `history ${nth}`);
    break;
  }
  t.comment(`${HISTORIES} histories: ${JSON.stringify(sums)}`);
  t.ok(sums.alternations > HISTORIES / 10, "instances took turns");
  t.ok(sums.acknowledged > HISTORIES, "and were answered");
});
