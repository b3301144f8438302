import { LIMITS } from "../../../core/limits.js";
import { DeliveryQueue } from "../delivery-queue.js";
import { ParkedDeliveries } from "./parked-deliveries.js";
import type { Tracked } from "./tracked-delivery.js";

/**
 * Automatic deliveries that wait. They are queued while there is room. Beyond that they are parked, which keeps only their ids, until
 * queued ones of the same receiver have gone.
 */
export class DeliveryBacklog {
  readonly queue = new DeliveryQueue<Tracked>();
  readonly #parked = new ParkedDeliveries();
  readonly #limits: { waiting: number; waitingOfReceiver: number };

  constructor(limits: { waiting: number; waitingOfReceiver: number } = LIMITS.deliveryBacklog) {
    this.#limits = limits;
  }

  /** Deliveries that wait, queued or parked. */
  get waitingCount(): number {
    return this.queue.waitingCount + this.#parked.count;
  }

  /** Whether another delivery to the receiver may be queued. */
  hasRoomFor(webhookId: string): boolean {
    return !this.#parked.has(webhookId) && this.#isRoom(webhookId);
  }

  park(webhookId: string, deliveryId: string): void {
    this.#parked.park(webhookId, deliveryId);
  }

  /** Removes and gives the oldest parked delivery to the receiver, if it may be queued now. */
  unpark(webhookId: string): string | undefined {
    return this.#parked.has(webhookId) && this.#isRoom(webhookId) ? this.#parked.take(webhookId) : undefined;
  }

  #isRoom(webhookId: string): boolean {
    const { waiting, waitingOfReceiver } = this.#limits;
    return this.queue.waitingCount < waiting || this.queue.waitingOf(webhookId) < waitingOfReceiver;
  }
}
