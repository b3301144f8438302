interface Parked {
  ids: string[];
  /** Of `ids`, those before it have been taken. */
  next: number;
}

/**
 * Deliveries that wait to be queued, oldest first for each receiver: their ids only, since what is known of them is pending state
 * anyway. So a receiver that is slower than events come costs 8 bytes a delivery more than the record of it, and loses none.
 */
export class ParkedDeliveries {
  readonly #receivers = new Map<string, Parked>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Whether a further one of the receiver must go behind others here. */
  has(receiverId: string): boolean {
    return this.#receivers.has(receiverId);
  }

  park(receiverId: string, deliveryId: string): void {
    const parked = this.#receivers.get(receiverId);
    if (parked === undefined) this.#receivers.set(receiverId, { ids: [deliveryId], next: 0 });
    else parked.ids.push(deliveryId);
    this.#count++;
  }

  /** The oldest one of the receiver; undefined when it has none. */
  take(receiverId: string): string | undefined {
    const parked = this.#receivers.get(receiverId);
    if (parked === undefined) return undefined;
    const deliveryId = parked.ids[parked.next++] as string;
    this.#count--;
    if (parked.next === parked.ids.length) {
      this.#receivers.delete(receiverId);
    } else if (parked.next * 2 > parked.ids.length) {
      parked.ids = parked.ids.slice(parked.next);
      parked.next = 0;
    }
    return deliveryId;
  }
}
