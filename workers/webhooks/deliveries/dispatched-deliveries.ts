import type { DispatcherHandle } from "../dispatcher-handle.js";
import type { BegunWindow, DeliveryJob } from "../dispatcher-messages.js";
import { jobOf } from "./delivery-action.js";
import type { Tracked } from "./tracked-delivery.js";
import type { KeptWebhook } from "./webhook-state.js";

/** Hands deliveries to the dispatcher. Jobs are sent together, so that the bytes of one event cross to its thread once. */
export class DispatchedDeliveries {
  readonly #dispatcher: DispatcherHandle;
  /** Automatic deliveries that the dispatcher has. */
  readonly #automatic = new Set<Tracked>();
  #jobs: DeliveryJob[] = [];

  constructor(dispatcher: DispatcherHandle) {
    this.#dispatcher = dispatcher;
  }

  /** Dispatches automatic attempts, with `flush`. */
  dispatchAutomatic(tracked: Tracked, kept: KeptWebhook, attempts: number): void {
    this.#automatic.add(tracked);
    this.#dispatch(tracked, kept, attempts, tracked.window);
  }

  /** Dispatches an attempt that somebody waits for, with `flush`. */
  dispatchInline(tracked: Tracked, kept: KeptWebhook, attempts: number): void {
    this.#dispatch(tracked, kept, attempts, null);
  }

  /** Begins a delivery now that was dispatched behind another one. */
  begin(tracked: Tracked): void {
    this.flush();
    this.#dispatcher.begin(tracked.id);
  }

  flush(): void {
    if (this.#jobs.length === 0) return;
    this.#dispatcher.deliver(this.#jobs);
    this.#jobs = [];
  }

  /** No further automatic attempt of this delivery follows by itself. */
  release(tracked: Tracked): void {
    this.#dispatcher.release(tracked.id);
  }

  /** As `release`, for all automatic deliveries of a webhook. */
  releaseOf(webhookId: string): void {
    for (const tracked of this.#automatic) if (tracked.webhookId === webhookId) this.release(tracked);
  }

  /** The dispatcher has ended or released it. */
  ended(tracked: Tracked): void {
    this.#automatic.delete(tracked);
  }

  #dispatch(tracked: Tracked, kept: KeptWebhook, attempts: number, window: BegunWindow | null): void {
    tracked.phase = "running";
    const afterId = tracked.place?.before(tracked.webhookId, tracked)?.id ?? null;
    this.#jobs.push(jobOf(tracked, kept, attempts, window, afterId));
  }
}

/** Whether `next` may be dispatched before `running` ends: it is read, and no window of it runs while it waits. */
export function mayFollow(running: Tracked, next: Tracked): boolean {
  return running.phase === "running" && next.payload !== null && next.window === null;
}
