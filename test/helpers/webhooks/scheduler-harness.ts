import type { Random } from "../../../core/random.js";
import type { DeliveryAttempt } from "../../../core/webhook/delivery.js";
import { newDelivery } from "../../../core/webhook/emit-run-event.js";
import type { EmittedEvent } from "../../../core/webhook/emitted-event.js";
import { NO_SECRETS, signingSecrets, type Webhook } from "../../../core/webhook/webhook.js";
import type { DeliveryPut, WebhookChange } from "../../../core/webhook/webhook-change.js";
import type { DeliveryContent } from "../../../storage/records/delivery-records.js";
import { DeliveryScheduler } from "../../../workers/webhooks/deliveries/delivery-scheduler.js";
import type { DeliverySchedulerOptions } from "../../../workers/webhooks/deliveries/scheduler-options.js";
import type { InlineAnswer, InlineRequest } from "../../../workers/webhooks/deliveries/tracked-delivery.js";
import { WebhookState } from "../../../workers/webhooks/deliveries/webhook-state.js";
import type { DispatcherHandle } from "../../../workers/webhooks/dispatcher/dispatcher-handle.js";
import type { DeliveryJob } from "../../../workers/webhooks/dispatcher/dispatcher-messages.js";
import { ManualTimers } from "../recorder/manual-timers.js";
import { WEBHOOK } from "./webhook-fixtures.js";

/** What one record of the log says. */
export type SchedulerRecord = { event: EmittedEvent; runId: string } | { change: WebhookChange };

export const RUN_ID = "019bb000-0000-7000-8000-0000000000b1";
const START_US = 1_800_000_000_000_000;
/** A UUIDv7 that counts. */
export function countedId(n: number): string {
  return `019bb000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
}

export function webhookOf(n: number, more: Partial<Webhook> = {}): Webhook {
  return { ...WEBHOOK, id: countedId(n), name: `w${n}`, url: `http://r${n}/`, onFailureMode: "IGNORE", ...more };
}

/**
 * A delivery scheduler whose log, view and dispatcher are the test's: records are appended, committed and seen when it says so, and attempts
 * end as it says. What is under way elsewhere (the front's answers, the dispatcher's reports) waits in `pending`.
 */
export class SchedulerHarness {
  readonly state = new WebhookState();
  readonly timers = new ManualTimers();
  readonly tick: () => number;
  readonly scheduler: DeliveryScheduler;
  readonly records: SchedulerRecord[];
  isDispatcherStopped = false;
  /** Attempts that the dispatcher makes. */
  readonly jobs = new Map<string, DeliveryJob>();
  /** Content that the front was asked for, and how many records it had been sent by then. */
  readonly asked: { id: string; records: number }[] = [];
  committed: number;
  viewed: number;
  /** The next append throws. */
  isFull = false;
  /** What the front cannot read. */
  isUnreadable: (deliveryId: string) => boolean = () => false;
  #timeUs: number;
  #ids: number;

  /** A harness that serves, with these webhooks. */
  static serving(...webhooks: ReturnType<typeof webhookOf>[]): SchedulerHarness {
    const harness = new SchedulerHarness();
    for (const webhook of webhooks) harness.putWebhook(webhook);
    harness.settle();
    harness.scheduler.serving(1);
    return harness;
  }

  /** @param records the durable ones, at a start */
  constructor(records: SchedulerRecord[] = [], options: Partial<DeliverySchedulerOptions> = {}) {
    this.records = [...records];
    this.committed = this.viewed = records.length;
    this.#timeUs = START_US + records.length * 1000;
    this.tick = options.tick ?? (() => ++this.#timeUs);
    this.#ids = 1000 + records.length * 100;
    for (const record of records) this.#apply(record);
    const dispatcher: DispatcherHandle = {
      serving: () => {},
      deliver: (jobs) => {
        for (const job of jobs) {
          if (this.jobs.has(job.deliveryId)) throw new Error(`${job.deliveryId} is being made already`);
          this.jobs.set(job.deliveryId, job);
        }
      },
      stop: () => {
        this.isDispatcherStopped = true;
        return Promise.resolve();
      },
    };
    this.scheduler = new DeliveryScheduler({
      ...{ state: this.state, dispatcher, timers: this.timers, nowMs: () => this.timers.nowMs(), tick: this.tick },
      newId: () => countedId(this.#ids++),
      source: () => ({ serviceVersion: "1", cell: { kioskSerialNumber: null, unitSystem: "metric" } }),
      signers: ({ webhook, secrets }) => ({ secrets: signingSecrets(webhook, secrets, 0), privateKey: null }),
      append: (change) => {
        if (this.isFull) throw new Error("the log is full");
        return this.put(change);
      },
      askForContent: (id) => this.asked.push({ id, records: this.committed }),
      report: () => {},
      onFaultChange: () => {},
      ...options,
    });
  }

  #apply(record: SchedulerRecord): void {
    if ("event" in record) this.state.begin(record.runId, [record.event]);
    else this.state.apply(record.change);
  }

  /** Appends a record; gives its sequence number. */
  put(change: WebhookChange): number {
    this.records.push({ change });
    this.state.apply(change);
    return this.records.length;
  }

  putWebhook(webhook: Webhook, secret: string | null = null): void {
    this.put({ kind: "webhook_put", webhook, secrets: { ...NO_SECRETS, secret } });
  }

  emit(webhooks: readonly Webhook[], padding = ""): EmittedEvent {
    const id = countedId(this.#ids++);
    const event: EmittedEvent = {
      ...{ id, name: "ProgramCompleted", timeUs: this.tick(), payload: `{"event_id":"${id}"}${padding}` },
      deliveries: webhooks.map((webhook) => ({
        ...{ id: countedId(this.#ids++), webhookId: webhook.id, onFailureMode: webhook.onFailureMode },
      })),
    };
    this.emitted(event, RUN_ID);
    return event;
  }

  /** A record of the run holds this event. */
  emitted(event: EmittedEvent, runId: string): void {
    this.records.push({ event, runId });
    this.state.begin(runId, [event]);
    this.scheduler.emitted(event, this.records.length);
  }

  /** All that is appended becomes durable and is seen. */
  settle(): void {
    this.commit(this.records.length);
    this.view(this.records.length);
  }

  commit(sequence: number): void {
    this.committed = sequence;
    this.scheduler.committed(sequence);
  }

  view(sequence: number): void {
    this.viewed = sequence;
    this.scheduler.viewed(sequence);
  }

  /** The delivery as the first `count` records have it. */
  stored(deliveryId: string, count = this.records.length): DeliveryContent | undefined {
    let content: DeliveryContent | undefined;
    const payloads = new Map<string, string>();
    for (const record of this.records.slice(0, count)) {
      if ("event" in record) {
        const { event, runId } = record;
        payloads.set(event.id, event.payload);
        const begun = event.deliveries.find(({ id }) => id === deliveryId);
        if (begun !== undefined) {
          content = {
            delivery: newDelivery(begun, event, runId),
            history: [],
            payload: event.payload,
            isOwnPayload: false,
          };
        }
      } else if (record.change.kind === "delivery_put" && record.change.delivery.id === deliveryId) {
        const { delivery, history, payload } = record.change as DeliveryPut;
        const known = payload ?? (payloads.get(delivery.eventId) as string);
        content = { delivery, history: [...history], payload: known, isOwnPayload: payload !== null };
      }
    }
    return content;
  }

  /** The front answers what it was asked for first. */
  answerContent(): void {
    const { id, records } = this.asked.shift() as { id: string; records: number };
    const content = this.stored(id, records);
    if (this.isUnreadable(id)) this.scheduler.content(id, { kind: "unreadable", reason: "EIO" });
    else this.scheduler.content(id, content === undefined ? { kind: "unknown" } : { kind: "content", content });
  }

  answerAllContent(): void {
    while (this.asked.length > 0) this.answerContent();
  }

  /** The attempt under way ends. */
  attempt(deliveryId: string, isTaken: boolean, answer: Partial<DeliveryAttempt> = {}): void {
    const { attemptNumber } = this.jobs.get(deliveryId) as DeliveryJob;
    this.jobs.delete(deliveryId);
    const attempt: DeliveryAttempt = {
      ...{ attemptNumber, startedAtUs: this.tick(), completedAtUs: this.tick() },
      ...{ error: isTaken ? null : "the receiver answered 500", statusCode: isTaken ? 204 : 500 },
      ...{ responseHeaders: {}, responseBody: "", responseTruncated: false, ...answer },
    };
    this.scheduler.reports([{ deliveryId, attempt }]);
  }

  /** The machine lacks what the attempt needs. */
  lack(deliveryId: string): void {
    this.jobs.delete(deliveryId);
    this.scheduler.reports([{ deliveryId, attempt: { lacking: "the process has no file descriptor left" } }]);
  }

  /** Refuses attempts, without pauses in between, until none follows. */
  refuse(deliveryId: string): void {
    while (this.jobs.has(deliveryId)) this.attempt(deliveryId, false);
  }

  /** A manual retry, as the front asks for it. */
  retry(deliveryId: string, answer: InlineAnswer): InlineRequest | undefined {
    const { webhookId } = this.stored(deliveryId)?.delivery ?? { webhookId: countedId(0) };
    return this.scheduler.retry(deliveryId, webhookId, answer);
  }

  /** One thing that may happen next, chosen at random; false when there is none. `onAttempt` decides whether the receiver takes it. */
  step(random: Random, onAttempt: (job: DeliveryJob) => boolean): boolean {
    const options: (() => void)[] = [];
    if (this.committed < this.records.length) {
      options.push(() => this.commit(random.integer(this.committed + 1, this.records.length)));
    }
    if (this.viewed < this.committed) options.push(() => this.view(random.integer(this.viewed + 1, this.committed)));
    if (this.asked.length > 0) options.push(() => this.answerContent());
    for (const job of this.jobs.values()) options.push(() => this.attempt(job.deliveryId, onAttempt(job)));
    if (this.timers.armed > 0) options.push(() => this.timers.advance(500));
    if (options.length === 0) return false;
    random.pick(options)();
    return true;
  }
}
