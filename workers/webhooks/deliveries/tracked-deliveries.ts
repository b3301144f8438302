import type { Delivery } from "../../../core/webhook/delivery.js";
import type { BegunDelivery } from "../../../core/webhook/emit-run-event.js";
import { type EventPayload, EventPayloads } from "./event-payloads.js";
import { Tracked } from "./tracked-delivery.js";
import { ViewProgress } from "./view-progress.js";

/** Most bytes of payloads in memory. The front reads further ones again when they are needed. */
const KEPT_PAYLOAD_BYTES = 64 * 1024 * 1024;

/**
 * The deliveries that something is to be done about. A delivery stays here until the view has its last record. So whoever asks about a
 * delivery that is not here finds all of it in the view.
 */
export class TrackedDeliveries {
  readonly #byId = new Map<string, Tracked>();
  readonly #payloads = new EventPayloads();
  readonly #view = new ViewProgress();

  get payloadBytes(): number {
    return this.#payloads.keptBytes;
  }

  get(deliveryId: string): Tracked | undefined {
    return this.#byId.get(deliveryId);
  }

  has(deliveryId: string): boolean {
    return this.#byId.has(deliveryId);
  }

  all(): Iterable<Tracked> {
    return this.#byId.values();
  }

  /** @param sequence of its latest record; 0: the view has it */
  track(
    deliveryId: string,
    webhookId: string,
    delivery: Delivery | BegunDelivery | null,
    phase: Tracked["phase"],
    sequence: number,
  ): Tracked {
    const tracked = new Tracked(deliveryId, webhookId, delivery, phase, sequence);
    this.#byId.set(deliveryId, tracked);
    return tracked;
  }

  hasRoomFor(payload: EventPayload): boolean {
    return this.#payloads.keptBytes + payload.bytes.length <= KEPT_PAYLOAD_BYTES;
  }

  keep(tracked: Tracked, payload: EventPayload): void {
    tracked.payload = payload;
    this.#payloads.hold(payload);
  }

  /** These deliveries begin with a record that the view does not have yet. */
  awaitBegin(sequence: number, deliveries: readonly Tracked[]): void {
    this.#view.await(sequence, deliveries, false);
  }

  /** The view has all records up to this one. Calls `onSeen` for deliveries whose first record it has now, and forgets ended ones. */
  viewed(sequence: number, onSeen: (tracked: Tracked) => void): void {
    this.#view.advance(sequence, (tracked, isEnd) => {
      if (isEnd) this.#forget(tracked);
      else if (tracked.phase === "unseen") onSeen(tracked);
    });
  }

  /** Forgets a delivery when the view has its last record. A released one stays pending, and is sent again at the next start. */
  end(tracked: Tracked): void {
    if (this.#view.has(tracked.sequence)) this.#forget(tracked);
    else this.#view.await(tracked.sequence, [tracked], true);
  }

  /** Forgets a delivery at once. */
  drop(tracked: Tracked): void {
    this.#byId.delete(tracked.id);
    if (tracked.payload !== null) this.#payloads.release(tracked.payload);
  }

  /** Forgets a delivery unless something is under way again. */
  #forget(tracked: Tracked): void {
    const isAtRest = tracked.phase === "idle" && !tracked.isAwaited && tracked.isRecorded;
    if (!isAtRest || !this.#view.has(tracked.sequence)) return;
    // It may have been forgotten before, and be tracked anew since.
    if (this.#byId.get(tracked.id) === tracked) this.drop(tracked);
  }
}
