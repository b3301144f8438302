import { randomBytes } from "node:crypto";
import { since } from "../../core/health.js";
import { generateUuidV7 } from "../../core/identifiers.js";
import type { RunState } from "../../core/run/run-state.js";
import { monotonicMs, type ServiceClock } from "../../core/service-clock.js";
import { ServiceError } from "../../core/service-errors.js";
import type { Timers } from "../../core/timers.js";
import { emitRunEvent } from "../../core/webhook/emit-run-event.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import type { RunEventName } from "../../core/webhook/webhook.js";
import type { WebhookChange } from "../../core/webhook/webhook-change.js";
import type { EventSource } from "../../core/webhook/webhook-event.js";
import { descriptorLimit } from "../../storage/disk/file-system.js";
import type { ReceiverOptions, RecorderToFront } from "../recorder/recorder-messages.js";
import type { RecorderState } from "../recorder/recorder-state.js";
import { mostUnderWay } from "./deliveries/delivery-queue.js";
import { DeliveryScheduler } from "./deliveries/delivery-scheduler.js";
import type { InlineAnswer, InlineRequest } from "./deliveries/tracked-delivery.js";
import type { DispatcherCallbacks, DispatcherHandle, startDispatcher } from "./dispatcher/dispatcher-handle.js";
import type { WebhookReply, WebhookRequest } from "./webhook-requests.js";
import { WebhookWrites } from "./webhook-writes.js";

export interface WebhookServiceOptions {
  state: RecorderState;
  serviceVersion: string;
  receivers: ReceiverOptions | undefined;
  timers: Timers;
  /** Undefined: deliveries are recorded but not sent. */
  startDispatcher: typeof startDispatcher | undefined;
  clock: ServiceClock;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  append(change: WebhookChange, timeUs: number): number;
  send(message: RecorderToFront): void;
  /** Why nothing can be recorded now; null if it can. */
  unavailable(): string | null;
  /** The dispatcher ended by itself. */
  onDispatcherFailure(message: string): void;
  /** Called when `dispatcherFault` has changed. */
  onDispatcherFault(): void;
  report(what: string, error: unknown): void;
}

const NO_DISPATCHER: DispatcherHandle = {
  serving() {},
  deliver() {},
  stop: () => Promise.resolve(),
};

/** What the recorder does for webhooks: events of runs, writes by HTTP, deliveries. */
export class WebhookService {
  readonly #options: WebhookServiceOptions;
  /** The last id that was made for an event, a delivery or a webhook. */
  #lastId: string | null = null;
  /** Sequence number of the last change of a webhook; 0 before there is one. */
  #lastSequence = 0;
  readonly #webhooks: WebhookWrites;
  readonly deliveries: DeliveryScheduler;
  /** Resolves when the dispatcher has loaded its modules; undefined if there is nothing to wait for. */
  readonly dispatcherLoaded: Promise<void> | undefined;
  #dispatcherFailure: string | null = null;
  /** Inline attempts whose result is awaited, by the id of the front's request. */
  readonly #requests = new Map<number, InlineRequest>();

  constructor(options: WebhookServiceOptions) {
    this.#options = options;
    const { state, clock, timers, send, append, report } = options;
    const tick = (): number => clock.tick();
    const newId = (timeUs: number): string => this.#newId(timeUs);
    this.#webhooks = new WebhookWrites({ state: state.webhooks, tick, newId });
    const { allow, deny, extraCa } = options.receivers ?? { allow: [], deny: [], extraCa: null };
    const dispatcherOptions = { serviceVersion: options.serviceVersion, allow, deny, extraCa };
    const callbacks: DispatcherCallbacks = {
      onReports: (reports) => this.deliveries.reports(reports),
      onFailure: (message) => {
        this.#dispatcherFailure = since(options.wallUs(), message);
        this.deliveries.abandonAttempts();
        options.onDispatcherFailure(message);
      },
    };
    const dispatcher = options.startDispatcher?.(dispatcherOptions, callbacks, clock) ?? NO_DISPATCHER;
    this.dispatcherLoaded = dispatcher.loaded;
    this.deliveries = new DeliveryScheduler({
      ...{ state: state.webhooks, timers, tick, nowMs: monotonicMs, newId, append, report },
      onFaultChange: () => options.onDispatcherFault(),
      dispatcher,
      mostUnderWay: mostUnderWay(descriptorLimit()),
      source: () => this.#source(),
      askForContent: (deliveryId) => send({ kind: "delivery_wanted", deliveryId }),
    });
  }

  /** What ended the dispatcher, and since when; null while it works. */
  get dispatcherFailure(): string | null {
    return this.#dispatcherFailure;
  }

  /** Why some deliveries wait although the dispatcher works; null if none does. */
  get dispatcherFault(): string | null {
    return this.deliveries.fault;
  }

  #source(): EventSource {
    return { serviceVersion: this.#options.serviceVersion, cell: this.#options.state.cell() };
  }

  /** Makes the event for a run's transition; undefined if no webhook subscribes. */
  emit(name: RunEventName, run: RunState, timeUs: number): EmittedEvent | undefined {
    const { state } = this.#options;
    const programExists = state.program(run.programId) !== undefined;
    const newId = (): string => this.#newId(timeUs);
    return emitRunEvent(this.#source(), state.webhooks.webhooks(), name, run, programExists, timeUs, newId);
  }

  #newId(timeUs: number): string {
    this.#lastId = generateUuidV7(Math.floor(timeUs / 1000), randomBytes(10), this.#lastId);
    return this.#lastId;
  }

  /** Takes a write by HTTP. It is answered when it is committed, after the batch that holds it was sent. */
  request(id: number, request: WebhookRequest): void {
    const reply = (answer: WebhookReply): void => this.#options.send({ kind: "reply", id, reply: answer });
    const refuse = (error: ServiceError): void => reply({ ok: false, error: error.data });
    const unavailable = this.#options.unavailable();
    if (unavailable !== null) {
      refuse(new ServiceError("unavailable", unavailable, {}));
      return;
    }
    const inline: InlineAnswer = (outcome) => {
      this.#requests.delete(id);
      if ("error" in outcome) refuse(outcome.error);
      else reply({ ok: true, id: outcome.deliveryId });
    };
    try {
      switch (request.op) {
        case "create": {
          const change = this.#webhooks.create(request.webhook);
          this.#record(change.webhook.id, change, reply);
          return;
        }
        case "update":
          this.#record(request.webhookId, this.#webhooks.update(request.webhookId, request.change), reply);
          return;
        case "delete":
          this.#record(request.webhookId, this.#webhooks.delete(request.webhookId), reply);
          return;
        case "test":
          this.#waitsFor(id, this.deliveries.test(request.webhookId, inline));
          return;
        case "retry":
          this.#waitsFor(id, this.deliveries.retry(request.deliveryId, request.webhookId, inline));
          return;
      }
    } catch (error) {
      if (error instanceof ServiceError) {
        refuse(error);
      } else {
        this.#options.report(`a request about webhooks (${request.op}) failed`, error);
        refuse(new ServiceError("unavailable", "the request could not be recorded", {}));
      }
    }
  }

  /**
   * Nobody waits for the answer any more. Changes of settings go on, and so do attempts that have begun. Others are
   * dropped.
   */
  dropRequest(id: number): void {
    const request = this.#requests.get(id);
    if (request !== undefined)
      this.deliveries.drop(request, new ServiceError("unavailable", "nobody waits for the answer", {}));
  }

  #waitsFor(id: number, request: InlineRequest | undefined): void {
    if (request?.isAnswered === false) this.#requests.set(id, request);
  }

  /** @param change undefined when nothing changes */
  #record(webhookId: string, change: WebhookChange | undefined, reply: (answer: WebhookReply) => void): void {
    const done: WebhookReply = { ok: true, id: webhookId };
    if (change === undefined) {
      // The change that makes it unnecessary may not be committed yet.
      this.#replyWhenCommitted(this.#lastSequence, done, reply);
      return;
    }
    const timeUs = change.kind === "webhook_put" ? change.webhook.updatedAtUs : this.#options.clock.tick();
    const sequence = this.#options.append(change, timeUs);
    this.#lastSequence = sequence;
    this.deliveries.webhookChanged(webhookId);
    this.#replyWhenCommitted(sequence, done, reply);
  }

  #replyWhenCommitted(sequence: number, done: WebhookReply, reply: (answer: WebhookReply) => void): void {
    this.deliveries.commits.add(sequence, (isCommitted) => {
      const error = new ServiceError("unavailable", "recording has ended: health says why", {});
      reply(isCommitted ? done : { ok: false, error: error.data });
    });
  }
}
