/**
 * Decides which deliveries run at a time. Receivers are independent: each may always have one delivery under way, and up to
 * `PER_RECEIVER` while fewer than `IN_ALL` run in all. So a receiver that never answers costs the others nothing. Deliveries to one
 * receiver run oldest first. A larger `IN_ALL` only opens more connections: measured, two hundred receivers are served no faster.
 *
 * A receiver that has one delivery under way and waits for room may have its next one *ahead*: the dispatcher gets it already, and begins
 * it by itself when the one under way has ended. Until then it counts as waiting.
 */
export const PER_RECEIVER = 8;
export const IN_ALL = 128;

interface Receiver<Delivery> {
  waiting: Delivery[];
  /** Index in `waiting` of the first that was not taken. */
  next: number;
  running: Set<Delivery>;
  /** The delivery that starts when the one that is under way ends. */
  ahead: Delivery | null;
}

export class DeliveryQueue<Delivery> {
  readonly #receivers = new Map<string, Receiver<Delivery>>();
  /** Receivers that may have something to start, in the order in which they are served. */
  readonly #ready = new Set<string>();
  /** Receivers that have a delivery under way and wait for room among `IN_ALL`. */
  readonly #starved = new Set<string>();
  /** Those of them that may have their next delivery taken ahead. */
  readonly #mayGoAhead = new Set<string>();
  #running = 0;
  #waiting = 0;
  #ahead = 0;

  get runningCount(): number {
    return this.#running;
  }

  /** Deliveries that wait, including those that were taken ahead. */
  get waitingCount(): number {
    return this.#waiting + this.#ahead;
  }

  waitingOf(receiverId: string): number {
    const receiver = this.#receivers.get(receiverId);
    return receiver === undefined ? 0 : receiver.waiting.length - receiver.next;
  }

  add(receiverId: string, delivery: Delivery): void {
    let receiver = this.#receivers.get(receiverId);
    if (receiver === undefined) {
      receiver = { waiting: [], next: 0, running: new Set(), ahead: null };
      this.#receivers.set(receiverId, receiver);
    }
    receiver.waiting.push(delivery);
    this.#waiting++;
    this.#ready.add(receiverId);
  }

  /**
   * Takes the next delivery to start; undefined if none may. Whoever takes it calls `ended` later. A delivery that was taken ahead is given
   * again if there is room for it before the one under way has ended.
   */
  take(): Delivery | undefined {
    for (const receiverId of this.#ready) {
      const receiver = this.#receivers.get(receiverId) as Receiver<Delivery>;
      // Receivers take turns: one that was served goes behind those that wait.
      this.#ready.delete(receiverId);
      const running = receiver.running.size;
      const { ahead } = receiver;
      if ((ahead === null && receiver.next === receiver.waiting.length) || running >= PER_RECEIVER) continue;
      if (running > 0 && this.#running >= IN_ALL) {
        this.#starved.add(receiverId);
        if (running === 1 && ahead === null) this.#mayGoAhead.add(receiverId);
        continue;
      }
      this.#ready.add(receiverId);
      const delivery = ahead ?? this.#takeFrom(receiver);
      if (ahead !== null) this.#ahead--;
      receiver.ahead = null;
      receiver.running.add(delivery);
      this.#running++;
      return delivery;
    }
    return undefined;
  }

  /**
   * Takes the next delivery that may be taken ahead. Call it when `take` gives none. `before` tells which delivery it follows.
   *
   * @param mayFollow whether `next` may be dispatched behind `running`, which is under way
   */
  takeAhead(mayFollow: (running: Delivery, next: Delivery) => boolean): Delivery | undefined {
    for (const receiverId of this.#mayGoAhead) {
      this.#mayGoAhead.delete(receiverId);
      const receiver = this.#receivers.get(receiverId);
      if (receiver === undefined || receiver.ahead !== null || receiver.running.size !== 1) continue;
      if (receiver.next === receiver.waiting.length) continue;
      const [running] = receiver.running as Set<Delivery>;
      if (!mayFollow(running as Delivery, receiver.waiting[receiver.next] as Delivery)) continue;
      receiver.ahead = this.#takeFrom(receiver);
      this.#ahead++;
      return receiver.ahead;
    }
    return undefined;
  }

  /** The delivery under way that a delivery taken ahead waits for; undefined if it was not taken ahead. */
  before(receiverId: string, delivery: Delivery): Delivery | undefined {
    const receiver = this.#receivers.get(receiverId);
    return receiver?.ahead === delivery ? [...receiver.running][0] : undefined;
  }

  /** Removes a waiting delivery. @returns false if it does not wait */
  remove(receiverId: string, delivery: Delivery): boolean {
    const receiver = this.#receivers.get(receiverId);
    const at = receiver?.waiting.indexOf(delivery, receiver.next) ?? -1;
    if (receiver === undefined || at < 0) return false;
    receiver.waiting.splice(at, 1);
    this.#waiting--;
    this.#forgetIdle(receiverId, receiver);
    return true;
  }

  ended(receiverId: string, delivery: Delivery): void {
    const receiver = this.#receivers.get(receiverId) as Receiver<Delivery>;
    if (receiver.ahead !== null) this.#ahead--;
    if (receiver.ahead === delivery) {
      receiver.ahead = null;
    } else {
      receiver.running.delete(delivery);
      this.#running--;
      if (receiver.ahead !== null) {
        receiver.running.add(receiver.ahead);
        this.#running++;
        receiver.ahead = null;
      }
    }
    this.#ready.add(receiverId);
    if (this.#running < IN_ALL) {
      for (const starved of this.#starved) this.#ready.add(starved);
      this.#starved.clear();
    }
    this.#forgetIdle(receiverId, receiver);
  }

  #takeFrom(receiver: Receiver<Delivery>): Delivery {
    const delivery = receiver.waiting[receiver.next++] as Delivery;
    if (receiver.next * 2 > receiver.waiting.length) {
      receiver.waiting = receiver.waiting.slice(receiver.next);
      receiver.next = 0;
    }
    this.#waiting--;
    return delivery;
  }

  #forgetIdle(receiverId: string, receiver: Receiver<Delivery>): void {
    if (receiver.running.size > 0 || receiver.next < receiver.waiting.length) return;
    this.#receivers.delete(receiverId);
    this.#ready.delete(receiverId);
    this.#starved.delete(receiverId);
    this.#mayGoAhead.delete(receiverId);
  }
}
