import type { RunState } from "../../../core/run/run-state.js";
import { emitRunEvent } from "../../../core/webhook/emit-run-event.js";
import type { EmittedEvent } from "../../../core/webhook/emitted-event.js";
import type { RunEventName } from "../../../core/webhook/webhook.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import type { EventSource } from "../../../core/webhook/webhook-event.js";
import type { InlineAnswer } from "../../../workers/webhooks/deliveries/tracked-delivery.js";
import type { WebhookRequest } from "../../../workers/webhooks/webhook-requests.js";
import { WebhookWrites } from "../../../workers/webhooks/webhook-writes.js";
import { FIXTURE_VERSION, type RecordedCell } from "../captures/recorded-cell.js";
import { SchedulerHarness } from "./scheduler-harness.js";

/** Between two things that happen one after the other. */
const STEP_US = 1_000;
/** What the example's events say of the cell. */
export const EXAMPLE_SOURCE: EventSource = {
  serviceVersion: FIXTURE_VERSION,
  cell: { kioskSerialNumber: "K-7", unitSystem: "metric" },
};
export const EXAMPLE_RESEND = "01976ea2-0000-7000-8000-000000000030";
/** The public key of RFC 8032, section 7.1, test 1. */
const EXAMPLE_PUBLIC_KEY =
  "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";
const TAKEN = { statusCode: 204, responseHeaders: { server: "mes/4.2" } };
const REFUSED = {
  statusCode: 503,
  error: "the receiver answered 503",
  responseHeaders: { server: "mes/4.2", "content-type": "text/plain" },
  responseBody: "starting",
};

/** The `n`th UUIDv7 of the example cell, made at `timeUs`. */
export function exampleId(timeUs: number, n: number): string {
  const hex = Math.floor(timeUs / 1000)
    .toString(16)
    .padStart(12, "0");
  const count = n.toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${count.padStart(3, "0")}-8000-${count.padStart(12, "0")}`;
}

/**
 * What the recorder does about webhooks in a `RecordedCell`, with its own scheduler: whatever is to follow has happened when a call
 * returns, at the times that the example chooses. Receivers take what comes, but for the next `refusals` attempts.
 */
export class ExampleWebhooks {
  refusals = 0;
  /** The time of what happened last, in microseconds since the Unix epoch. */
  timeUs = 0;
  readonly #cell: RecordedCell;
  readonly #harness: SchedulerHarness;
  readonly #webhooks: WebhookWrites;
  #ids: number;

  /** @param firstId number of the first id that is made here */
  constructor(cell: RecordedCell, firstId: number) {
    this.#cell = cell;
    this.#ids = firstId;
    const tick = (): number => {
      this.timeUs += STEP_US;
      return this.timeUs;
    };
    const newId = (timeUs: number): string => this.#newId(timeUs);
    const append = (change: WebhookChange, timeUs: number): number => this.#append(change, timeUs);
    this.#harness = new SchedulerHarness([], { tick, newId, append, source: () => EXAMPLE_SOURCE });
    this.#webhooks = new WebhookWrites({ state: this.#harness.state, tick, wallUs: () => this.timeUs, newId });
    this.#harness.scheduler.serving(1);
    cell.request = (request) => this.request(request);
  }

  #newId(timeUs: number): string {
    return exampleId(timeUs, this.#ids++);
  }

  #append(change: WebhookChange, timeUs: number): number {
    this.#cell.applyWebhook(timeUs, change);
    return this.#harness.put(change);
  }

  /** As the recorder takes it. */
  request(request: WebhookRequest): Promise<string> {
    return new Promise((resolve, reject) => {
      const answer: InlineAnswer = (outcome) => {
        if ("error" in outcome) reject(outcome.error);
        else resolve(outcome.deliveryId);
      };
      switch (request.op) {
        case "create": {
          const change = this.#webhooks.create(request.webhook);
          this.#append(change, this.timeUs);
          resolve(change.webhook.id);
          break;
        }
        case "update":
        case "delete": {
          const { op, webhookId: id } = request;
          const change = op === "update" ? this.#webhooks.update(id, request.change) : this.#webhooks.delete(id);
          if (change !== undefined) this.#append(change, this.timeUs);
          resolve(id);
          break;
        }
        case "rotate_secret": {
          const change = this.#webhooks.rotateSecret(request.webhookId, request.rotation);
          this.#append(change, this.timeUs);
          resolve(request.webhookId);
          break;
        }
        case "resend":
          resolve(EXAMPLE_RESEND);
          break;
        case "require_no_resend":
          resolve(request.webhookId);
          break;
        case "resend_figures":
          resolve(JSON.stringify({ deliveries: 1, attempted: 1, delivered: 1, failed: 0, state: "done" }));
          break;
        case "cancel_resend":
          resolve(request.resendId);
          break;
        case "signing_key":
          resolve(EXAMPLE_PUBLIC_KEY);
          break;
        case "test":
          this.#harness.scheduler.test(request.webhookId, answer);
          break;
        case "retry":
          this.#harness.scheduler.retry(request.deliveryId, request.webhookId, answer);
          break;
      }
      this.#settle();
    });
  }

  /** What a transition of the run at `timeUs` tells the webhooks of: it goes into the run's record. */
  emit(name: RunEventName, run: RunState, timeUs: number): EmittedEvent {
    this.timeUs = timeUs;
    const newId = (): string => this.#newId(timeUs);
    const event = emitRunEvent(EXAMPLE_SOURCE, this.#harness.state.webhooks(), name, run, true, timeUs, newId);
    if (event === undefined) throw new Error(`no webhook of the example subscribes to ${name}`);
    return event;
  }

  /** The run's record with the event is written: it is delivered. */
  emitted(event: EmittedEvent, runId: string): void {
    this.#harness.emitted(event, runId);
    this.#settle();
  }

  #settle(): void {
    const harness = this.#harness;
    for (;;) {
      harness.settle();
      const [deliveryId] = harness.jobs.keys();
      if (harness.asked.length > 0) harness.answerContent();
      else if (deliveryId !== undefined) this.#attempt(deliveryId);
      else if (harness.scheduler.figures.running > 0) this.#pause();
      else return;
    }
  }

  #attempt(deliveryId: string): void {
    const isTaken = this.refusals === 0;
    if (!isTaken) this.refusals--;
    this.#harness.attempt(deliveryId, isTaken, isTaken ? TAKEN : REFUSED);
  }

  /** Until the next attempt of a delivery that waits for it. */
  #pause(): void {
    const pauseMs = 100;
    this.timeUs += pauseMs * 1000;
    this.#harness.timers.advance(pauseMs);
  }
}
