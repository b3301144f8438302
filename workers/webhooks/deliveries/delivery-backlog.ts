import { LIMITS } from "../../../core/limits.js";
import { DeliveryQueue } from "../delivery-queue.js";
import { ParkedDeliveries } from "./parked-deliveries.js";
import type { Tracked } from "./tracked-delivery.js";

/**
 * Automatic deliveries that wait for their turn: queued while there is room, and beyond it parked, as pending state only, until those of
 * their receiver that are queued have gone.
 */
export class DeliveryBacklog {
  readonly queue = new DeliveryQueue<Tracked>();
  readonly #parked = new ParkedDeliveries();
  readonly #limits: { waiting: number; waitingOfReceiver: number };

  constructor(limits: { waiting: number; waitingOfReceiver: number } = LIMITS.deliveryBacklog) {
    this.#limits = limits;
  }

  /** Those that are parked among them. */
  get waitingCount(): number {
    return this.queue.waitingCount + this.#parked.count;
  }

  /** Whether a further one of the receiver may be queued. */
  hasRoomFor(webhookId: string): boolean {
    return !this.#parked.has(webhookId) && this.#isRoom(webhookId);
  }

  park(webhookId: string, deliveryId: string): void {
    this.#parked.park(webhookId, deliveryId);
  }

  /** The oldest parked one of the receiver, if it may be queued now. */
  unpark(webhookId: string): string | undefined {
    return this.#parked.has(webhookId) && this.#isRoom(webhookId) ? this.#parked.take(webhookId) : undefined;
  }

  #isRoom(webhookId: string): boolean {
    const { waiting, waitingOfReceiver } = this.#limits;
    return this.queue.waitingCount < waiting || this.queue.waitingOf(webhookId) < waitingOfReceiver;
  }
}
