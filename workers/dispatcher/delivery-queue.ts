/**
 * Which deliveries run at a time. Receivers are independent: each may always have one delivery under way, whatever the others do, and
 * more, up to `PER_RECEIVER`, while fewer than `IN_ALL` run in all. So at most one a webhook and `IN_ALL` run (`LIMITS.webhooks`), and a
 * receiver that never answers costs the others nothing. Within a receiver, oldest first. With more in all, each only has more
 * connections: measured, two hundred receivers are served no faster.
 */
export const PER_RECEIVER = 8;
export const IN_ALL = 128;

interface Receiver<Delivery> {
  waiting: Delivery[];
  /** Of `waiting`, those before it have been taken. */
  next: number;
  running: number;
}

export class DeliveryQueue<Delivery> {
  readonly #receivers = new Map<string, Receiver<Delivery>>();
  /** Receivers that may have something to start, in turn. */
  readonly #ready = new Set<string>();
  /** Receivers that have a delivery under way and wait for room among all. */
  readonly #starved = new Set<string>();
  #running = 0;
  #waiting = 0;

  get runningCount(): number {
    return this.#running;
  }

  get waitingCount(): number {
    return this.#waiting;
  }

  waitingOf(receiverId: string): number {
    const receiver = this.#receivers.get(receiverId);
    return receiver === undefined ? 0 : receiver.waiting.length - receiver.next;
  }

  add(receiverId: string, delivery: Delivery): void {
    let receiver = this.#receivers.get(receiverId);
    if (receiver === undefined) {
      receiver = { waiting: [], next: 0, running: 0 };
      this.#receivers.set(receiverId, receiver);
    }
    receiver.waiting.push(delivery);
    this.#waiting++;
    this.#ready.add(receiverId);
  }

  /** The next one to start; undefined while none may. Whoever takes it says `ended` of it later. */
  take(): Delivery | undefined {
    for (const receiverId of this.#ready) {
      const receiver = this.#receivers.get(receiverId) as Receiver<Delivery>;
      // One receiver after the other: whoever has been served goes behind those that wait.
      this.#ready.delete(receiverId);
      if (receiver.next === receiver.waiting.length || receiver.running >= PER_RECEIVER) continue;
      if (receiver.running > 0 && this.#running >= IN_ALL) {
        this.#starved.add(receiverId);
        continue;
      }
      this.#ready.add(receiverId);
      const delivery = receiver.waiting[receiver.next++] as Delivery;
      if (receiver.next * 2 > receiver.waiting.length) {
        receiver.waiting = receiver.waiting.slice(receiver.next);
        receiver.next = 0;
      }
      receiver.running++;
      this.#running++;
      this.#waiting--;
      return delivery;
    }
    return undefined;
  }

  /** Takes one that waits out of its turn; false when it does not wait. */
  remove(receiverId: string, delivery: Delivery): boolean {
    const receiver = this.#receivers.get(receiverId);
    const at = receiver?.waiting.indexOf(delivery, receiver.next) ?? -1;
    if (receiver === undefined || at < 0) return false;
    receiver.waiting.splice(at, 1);
    this.#waiting--;
    this.#forgetIdle(receiverId, receiver);
    return true;
  }

  ended(receiverId: string): void {
    const receiver = this.#receivers.get(receiverId) as Receiver<Delivery>;
    receiver.running--;
    this.#running--;
    this.#ready.add(receiverId);
    if (this.#running < IN_ALL) {
      for (const starved of this.#starved) this.#ready.add(starved);
      this.#starved.clear();
    }
    this.#forgetIdle(receiverId, receiver);
  }

  #forgetIdle(receiverId: string, receiver: Receiver<Delivery>): void {
    if (receiver.running > 0 || receiver.next < receiver.waiting.length) return;
    this.#receivers.delete(receiverId);
    this.#ready.delete(receiverId);
    this.#starved.delete(receiverId);
  }
}
