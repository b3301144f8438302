import { LIMITS } from "../../../core/limits.js";
import { ServiceError } from "../../../core/service-errors.js";
import type { Timers } from "../../../core/timers.js";
import type { RecordWaits } from "../../../storage/log/record-waits.js";
import type { InlineAnswer, InlineRequest, TrackedDelivery } from "./tracked-delivery.js";

/** After so long an attempt under way has ended, and there is room for another request. */
const RETRY_AFTER_SECONDS = LIMITS.dispatchWindowMs / 1000;

/**
 * Tests and manual retries that somebody waits for. Their number is bounded for each receiver, so that a slow one takes no room from
 * others. No attempt begins when its outcome would come too late for whoever waits.
 */
export class InlineRequests {
  readonly #timers: Timers;
  readonly #commits: RecordWaits;
  #isStopped = false;
  readonly #counts = new Map<string, number>();
  #count = 0;
  readonly #onOverdue: (request: InlineRequest) => void;

  /** @param onOverdue called for a request that has waited as long as it may and has not begun */
  constructor(timers: Timers, commits: RecordWaits, onOverdue: (request: InlineRequest) => void) {
    this.#timers = timers;
    this.#commits = commits;
    this.#onOverdue = onOverdue;
  }

  /** Requests that wait for an answer. */
  get count(): number {
    return this.#count;
  }

  /** Whether another request for this receiver may wait. Otherwise it is refused. */
  admits(webhookId: string, answer: InlineAnswer): boolean {
    const error = this.#isStopped ? stopping() : this.#refusal(webhookId);
    if (error !== undefined) answer({ error });
    return error === undefined;
  }

  #refusal(webhookId: string): ServiceError | undefined {
    const waiting = this.#counts.get(webhookId) ?? 0;
    if (waiting < LIMITS.inlineOfReceiver) return undefined;
    const why = `${waiting} tests and retries of this receiver wait already, the most allowed`;
    return new ServiceError("unavailable", why, { retry_after_seconds: RETRY_AFTER_SECONDS });
  }

  /** @param isResend nobody waits: it has no time-out, and was not admitted */
  add(tracked: TrackedDelivery, answer: InlineAnswer, isResend = false): InlineRequest {
    const { webhookId } = tracked;
    this.#counts.set(webhookId, (this.#counts.get(webhookId) ?? 0) + 1);
    this.#count++;
    const request: InlineRequest = { tracked, isResend, answer, timer: null, isAnswered: false };
    if (!isResend) request.timer = this.#timers.set(() => this.#onOverdue(request), LIMITS.inlineWaitMs);
    tracked.requests.push(request);
    return request;
  }

  /** The attempt of the delivery's first request begins now. */
  begin(tracked: TrackedDelivery): void {
    const request = tracked.requests.shift() as InlineRequest;
    this.#clear(request);
    tracked.current = request;
  }

  /** Answers a request. A second answer is ignored. */
  answer(request: InlineRequest, outcome: Parameters<InlineAnswer>[0]): void {
    if (request.isAnswered) return;
    request.isAnswered = true;
    this.#count--;
    this.#clear(request);
    const { webhookId } = request.tracked;
    const left = (this.#counts.get(webhookId) ?? 0) - 1;
    if (left > 0) this.#counts.set(webhookId, left);
    else this.#counts.delete(webhookId);
    request.answer(outcome);
  }

  /** Answers the clients who wait for a delivery that the receiver has taken. */
  answerDelivered(tracked: TrackedDelivery): void {
    const waiting = tracked.requests.filter(({ isResend }) => !isResend);
    tracked.requests = tracked.requests.filter(({ isResend }) => isResend);
    for (const request of waiting) this.answerRecorded(request, tracked);
  }

  /** Whether attempts can still be asked for. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Refuses all requests of the delivery whose attempts have not begun. */
  refuseAll(tracked: TrackedDelivery, error: ServiceError): void {
    for (const request of tracked.requests.splice(0)) this.answer(request, { error });
  }

  /** Answers a request once the delivery's latest record is committed. */
  answerRecorded(request: InlineRequest, { id, sequence, isRecorded, delivery }: TrackedDelivery): void {
    const outcome = { deliveryId: id, isDelivered: delivery?.status === "delivered" };
    this.#commits.add(sequence, (isCommitted) => {
      const error = new ServiceError("unavailable", "the outcome could not be recorded", {});
      this.answer(request, isCommitted && isRecorded ? outcome : { error });
    });
  }

  /** Admits no more requests, and refuses those of these deliveries whose attempts have not begun. */
  stop(deliveries: Iterable<TrackedDelivery>): void {
    this.#isStopped = true;
    for (const tracked of deliveries) this.refuseAll(tracked, stopping());
  }

  /** As `stop`. Also refuses requests whose attempts were cut short or will not be recorded. */
  abandon(deliveries: Iterable<TrackedDelivery>): void {
    this.#isStopped = true;
    for (const tracked of deliveries) {
      this.refuseAll(tracked, stopping());
      if (tracked.current !== null) this.answer(tracked.current, { error: stopping() });
      tracked.current = null;
    }
  }

  #clear(request: InlineRequest): void {
    if (request.timer !== null) this.#timers.clear(request.timer);
    request.timer = null;
  }
}

function stopping(): ServiceError {
  return new ServiceError("unavailable", "the service is stopping", {});
}

/** Why a request is refused that has waited as long as it may. */
export function overdue(): ServiceError {
  const waited = `the attempt could not begin within ${LIMITS.inlineWaitMs / 1000} s`;
  return new ServiceError("unavailable", waited, { retry_after_seconds: RETRY_AFTER_SECONDS });
}
