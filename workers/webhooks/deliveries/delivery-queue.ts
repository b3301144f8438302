/**
 * Most deliveries under way: to one receiver, and in all. Receivers are independent, so each may always have one. A larger `IN_ALL` opens
 * more connections.
 */
export const PER_RECEIVER = 8;
export const IN_ALL = 128;

/** Share of the process's descriptors that deliveries of one queue may take, whatever the receivers are. */
const SHARE_OF_DESCRIPTORS = 1 / 16;
const LEAST_IN_ALL = 4;

/** How many deliveries may be under way in any case. @param descriptorLimit of the process; null if it is not known */
export function mostUnderWay(descriptorLimit: number | null): number {
  if (descriptorLimit === null) return Number.POSITIVE_INFINITY;
  return Math.max(LEAST_IN_ALL, Math.floor(descriptorLimit * SHARE_OF_DESCRIPTORS));
}

interface Receiver<Delivery> {
  /** Oldest first. */
  waiting: Delivery[];
  /** Index in `waiting` of the first that was not taken. */
  next: number;
  running: number;
}

/**
 * Decides which delivery begins next: those of one receiver oldest first, receivers in turn. Deliveries of one event are added in the order
 * of subscription, and begin in it. A receiver has one under way whatever the others do, and up to `PER_RECEIVER` while fewer than
 * `mostShared` are under way. So a receiver that never answers costs the others nothing, unless the process may open few descriptors: then
 * there are places for fewer, and receivers wait for their turn.
 */
export class DeliveryQueue<Delivery> {
  readonly #receivers = new Map<string, Receiver<Delivery>>();
  /** Receivers that may have something to begin, in their turn. */
  readonly #ready = new Set<string>();
  /** Receivers with one under way that wait until there is room among `mostShared`. */
  readonly #starved = new Set<string>();
  readonly #mostRunning: number;
  /** While so many are under way, receivers have one each at most. */
  readonly #mostShared: number;
  #running = 0;
  #waiting = 0;

  /** @param mostRunning deliveries under way at most */
  constructor(mostRunning = Number.POSITIVE_INFINITY) {
    this.#mostRunning = mostRunning;
    this.#mostShared = Math.min(IN_ALL, Math.ceil(mostRunning / 2));
  }

  get runningCount(): number {
    return this.#running;
  }

  get waitingCount(): number {
    return this.#waiting;
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

  /** Takes the next delivery to begin; undefined if none may. Whoever takes it calls `ended` later. */
  take(): Delivery | undefined {
    if (this.#running >= this.#mostRunning) return undefined;
    return (this.#running < this.#mostShared ? this.#takeOf(this.#starved) : undefined) ?? this.#takeOf(this.#ready);
  }

  #takeOf(receiverIds: Set<string>): Delivery | undefined {
    for (const receiverId of receiverIds) {
      receiverIds.delete(receiverId);
      const receiver = this.#receivers.get(receiverId);
      if (receiver === undefined || receiver.next === receiver.waiting.length) continue;
      if (receiver.running >= PER_RECEIVER) continue;
      if (receiver.running > 0 && this.#running >= this.#mostShared) {
        this.#starved.add(receiverId);
        continue;
      }
      receiver.running++;
      this.#running++;
      this.#waiting--;
      const delivery = receiver.waiting[receiver.next++] as Delivery;
      if (receiver.next * 2 > receiver.waiting.length) {
        receiver.waiting = receiver.waiting.slice(receiver.next);
        receiver.next = 0;
      }
      // It goes behind those that wait.
      this.#ready.add(receiverId);
      return delivery;
    }
    return undefined;
  }

  /** One that was taken is under way no more. */
  ended(receiverId: string): void {
    const receiver = this.#receivers.get(receiverId) as Receiver<Delivery>;
    receiver.running--;
    this.#running--;
    this.#ready.add(receiverId);
    this.#forgetIdle(receiverId, receiver);
  }

  /** Removes a waiting delivery, if it waits. */
  remove(receiverId: string, isMeant: (delivery: Delivery) => boolean): void {
    const receiver = this.#receivers.get(receiverId);
    const at = receiver?.waiting.findIndex((one, at) => at >= receiver.next && isMeant(one)) ?? -1;
    if (receiver === undefined || at < 0) return;
    receiver.waiting.splice(at, 1);
    this.#waiting--;
    this.#forgetIdle(receiverId, receiver);
  }

  #forgetIdle(receiverId: string, receiver: Receiver<Delivery>): void {
    if (receiver.running > 0 || receiver.next < receiver.waiting.length) return;
    this.#receivers.delete(receiverId);
    this.#ready.delete(receiverId);
    this.#starved.delete(receiverId);
  }
}
