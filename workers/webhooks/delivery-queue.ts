/**
 * Which deliveries run at a time. Receivers are independent: each may always have one delivery under way, whatever the others do, and
 * more, up to `PER_RECEIVER`, while fewer than `IN_ALL` run in all. So at most one a webhook and `IN_ALL` run (`LIMITS.webhooks`), and a
 * receiver that never answers costs the others nothing. Within a receiver, oldest first. With more in all, each only has more
 * connections: measured, two hundred receivers are served no faster. But whoever has one under way and waits for room among all may have one
 * more go ahead: it is given to the dispatcher before its turn, which comes when the one under way has ended, and then needs to be
 * asked of nobody. Until then it counts as one that waits.
 */
export const PER_RECEIVER = 8;
export const IN_ALL = 128;

interface Receiver<Delivery> {
  waiting: Delivery[];
  /** Of `waiting`, those before it have been taken. */
  next: number;
  running: Set<Delivery>;
  /** Taken before its turn: it takes the place of the one that runs, which is the only one then. */
  ahead: Delivery | null;
}

export class DeliveryQueue<Delivery> {
  readonly #receivers = new Map<string, Receiver<Delivery>>();
  /** Receivers that may have something to start, in turn. */
  readonly #ready = new Set<string>();
  /** Receivers that have a delivery under way and wait for room among all. */
  readonly #starved = new Set<string>();
  /** Those of them that may have one more go ahead. */
  readonly #mayGoAhead = new Set<string>();
  #running = 0;
  #waiting = 0;
  #ahead = 0;

  get runningCount(): number {
    return this.#running;
  }

  /** Those that were taken ahead of their turn among them. */
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
   * The next one to start; undefined while none may. Whoever takes it says `ended` of it later. One that was taken ahead of its turn comes
   * once more where there is room for it before the one that it follows has ended.
   */
  take(): Delivery | undefined {
    for (const receiverId of this.#ready) {
      const receiver = this.#receivers.get(receiverId) as Receiver<Delivery>;
      // One receiver after the other: whoever has been served goes behind those that wait.
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
   * The next one that may be given away before its turn, once `take` gives none; as `take`. What it follows, `before` tells.
   * @param mayFollow whether the second may be given away behind the first, which is under way
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

  /** The one under way whose end a delivery that was taken waits for; undefined: its turn has come. */
  before(receiverId: string, delivery: Delivery): Delivery | undefined {
    const receiver = this.#receivers.get(receiverId);
    return receiver?.ahead === delivery ? [...receiver.running][0] : undefined;
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
