interface Parked {
  ids: string[];
  /** Index in `ids` of the first that was not taken. */
  next: number;
}

/**
 * Deliveries that wait to be queued, oldest first for each receiver. Only their ids are kept: everything else is in the state of pending
 * deliveries anyway. So a receiver that is slower than its events costs 8 bytes more for each delivery, and loses none.
 */
export class ParkedDeliveries {
  readonly #receivers = new Map<string, Parked>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Whether deliveries to the receiver are parked. A new one must then wait behind them. */
  has(receiverId: string): boolean {
    return this.#receivers.has(receiverId);
  }

  park(receiverId: string, deliveryId: string): void {
    const parked = this.#receivers.get(receiverId);
    if (parked === undefined) this.#receivers.set(receiverId, { ids: [deliveryId], next: 0 });
    else parked.ids.push(deliveryId);
    this.#count++;
  }

  /** Removes and gives the receiver's oldest delivery; undefined if it has none. */
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
