import { randomBytes } from "node:crypto";
import { since } from "../../core/health.js";
import { generateUuidV7 } from "../../core/identifiers.js";
import type { RunState } from "../../core/run/run-state.js";
import { monotonicMs, type ServiceClock } from "../../core/service-clock.js";
import { ServiceError } from "../../core/service-errors.js";
import type { Timers } from "../../core/timers.js";
import { emitRunEvent } from "../../core/webhook/emit-run-event.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { type RunEventName, signingSecrets } from "../../core/webhook/webhook.js";
import type { WebhookChange } from "../../core/webhook/webhook-change.js";
import type { EventSource } from "../../core/webhook/webhook-event.js";
import type { Signers } from "../../core/webhook/webhook-signature.js";
import { descriptorLimit } from "../../storage/disk/file-system.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import type { ReceiverOptions, RecorderToFront } from "../recorder/recorder-messages.js";
import type { RecorderState } from "../recorder/recorder-state.js";
import { mostUnderWay } from "./deliveries/delivery-queue.js";
import { DeliveryScheduler } from "./deliveries/delivery-scheduler.js";
import type { InlineAnswer, InlineRequest } from "./deliveries/tracked-delivery.js";
import type { KeptWebhook } from "./deliveries/webhook-state.js";
import type { DispatcherCallbacks, DispatcherHandle, startDispatcher } from "./dispatcher/dispatcher-handle.js";
import { ResendService } from "./resends/resend-service.js";
import { SigningKey } from "./signing-key.js";
import type { WebhookReply, WebhookRequest } from "./webhook-requests.js";
import { WebhookWrites } from "./webhook-writes.js";

export interface WebhookServiceOptions {
  state: RecorderState;
  fileSystem: FileSystem;
  /** The data directory, where the signing key is. */
  directory: string;
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
  readonly resends: ResendService;
  readonly #signingKey: SigningKey;
  /** Resolves when the dispatcher has loaded its modules, and the signing key was read; undefined if there is nothing to wait for. */
  readonly loaded: Promise<unknown> | undefined;
  #dispatcherFailure: string | null = null;
  /** Inline attempts whose result is awaited, by the id of the front's request. */
  readonly #requests = new Map<number, InlineRequest>();

  constructor(options: WebhookServiceOptions) {
    this.#options = options;
    const { state, clock, timers, send, append, report, wallUs } = options;
    const tick = (): number => clock.tick();
    const newId = (timeUs: number): string => this.#newId(timeUs);
    this.#webhooks = new WebhookWrites({ state: state.webhooks, tick, wallUs, newId });
    this.#signingKey = this.#createSigningKey();
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
    const key = this.#usesSigningKey() ? this.#signingKey.ensure().catch(() => {}) : undefined;
    this.loaded = key === undefined ? dispatcher.loaded : Promise.all([key, dispatcher.loaded]);
    this.deliveries = new DeliveryScheduler({
      ...{ state: state.webhooks, timers, tick, nowMs: monotonicMs, newId, append, report },
      onFaultChange: () => options.onDispatcherFault(),
      dispatcher,
      mostUnderWay: mostUnderWay(descriptorLimit()),
      source: () => this.#source(),
      signers: (kept) => this.#signers(kept),
      askForContent: (deliveryId) => {
        if (!this.resends.wanted(deliveryId)) send({ kind: "delivery_wanted", deliveryId });
      },
    });
    this.resends = new ResendService({
      ...{ state, deliveries: this.deliveries, timers, tick, newId, append, report },
      source: () => this.#source(),
      askForRun: (deliveryId, runId) => send({ kind: "run_wanted", deliveryId, runId }),
    });
  }

  /** The service listens on this port, and its view has everything in the log: deliveries and resends go on. */
  serving(port: number): void {
    this.deliveries.serving(port);
    this.resends.serving();
  }

  /** What ended the dispatcher, and since when; null while it works. */
  get dispatcherFailure(): string | null {
    return this.#dispatcherFailure;
  }

  /** Why some deliveries wait although the dispatcher works; null if none does. */
  get dispatcherFault(): string | null {
    return this.deliveries.fault;
  }

  #createSigningKey(): SigningKey {
    const { fileSystem, directory, report } = this.#options;
    const onMade = (): void => {
      if (!this.#usesSigningKey()) return;
      report("the signing key was missing", new Error("a new one was made: receivers need its public key"));
    };
    return new SigningKey({ fileSystem, directory, onMade });
  }

  #usesSigningKey(): boolean {
    for (const { signing } of this.#options.state.webhooks.webhooks()) if (signing === "ed25519") return true;
    return false;
  }

  #signers({ webhook, secrets }: KeptWebhook): Signers | { lacking: string } {
    const hmac = signingSecrets(webhook, secrets, this.#options.wallUs());
    if (webhook.signing === "hmac") return { secrets: hmac, privateKey: null };
    const { privateKey, fault } = this.#signingKey;
    if (privateKey !== null) return { secrets: hmac, privateKey };
    // The delivery is tried again later. The key may be readable by then.
    void this.#signingKey.ensure().catch(() => {});
    return { lacking: fault };
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
    if (needsSigningKey(request) && this.#signingKey.publicKey === null) {
      const ready = (): void => this.request(id, request);
      void this.#signingKey.ensure().then(ready, refuse);
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
          this.resends.webhookDeleted(request.webhookId);
          return;
        case "rotate_secret":
          this.#record(request.webhookId, this.#webhooks.rotateSecret(request.webhookId, request.rotation), reply);
          return;
        case "resend":
        case "resend_figures":
        case "cancel_resend":
        case "require_no_resend":
          this.#resend(request, reply);
          return;
        case "signing_key":
          reply({ ok: true, id: this.#signingKey.publicKey as string });
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

  /** @throws ServiceError */
  #resend(request: ResendRequest, reply: (answer: WebhookReply) => void): void {
    const { webhookId } = request;
    switch (request.op) {
      case "resend": {
        const { id, sequence } = this.resends.create(webhookId, request.perSecond, request.items);
        this.#replyWhenCommitted(sequence, { ok: true, id }, (answer) => {
          if (answer.ok) this.resends.committed(id);
          reply(answer);
        });
        return;
      }
      case "resend_figures":
        reply({ ok: true, id: JSON.stringify(this.resends.figures(webhookId, request.resendId)) });
        return;
      case "cancel_resend": {
        const sequence = this.resends.cancel(webhookId, request.resendId);
        this.#replyWhenCommitted(sequence, { ok: true, id: request.resendId }, reply);
        return;
      }
      case "require_no_resend":
        this.resends.requireNone(webhookId);
        reply({ ok: true, id: webhookId });
        return;
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

type ResendRequest = Extract<
  WebhookRequest,
  { op: "resend" | "resend_figures" | "cancel_resend" | "require_no_resend" }
>;

function needsSigningKey(request: WebhookRequest): boolean {
  switch (request.op) {
    case "signing_key":
      return true;
    case "create":
      return request.webhook.settings.signing === "ed25519";
    case "update":
      return request.change.settings.signing === "ed25519";
    default:
      return false;
  }
}
