import { countDuration, createDurationCounts, type DurationCounts } from "../../../core/duration-counts.js";
import type { DeliveryAttempt } from "../../../core/webhook/delivery.js";

/** How an attempt ended: `taken` (status 2xx), `refused` (another status) or `unanswered`. */
export const ATTEMPT_OUTCOMES = ["taken", "refused", "unanswered"] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** What was counted about deliveries since the start, for the service's metrics. Plain data, since it crosses threads. */
export interface DeliveryFigures {
  /** Ends of deliveries. Each manual retry and each test counts as an end of its own. */
  delivered: number;
  failed: number;
  /** How long attempts took, by their outcome. */
  attempts: Record<AttemptOutcome, DurationCounts>;
  /** Time from an event to its delivery. */
  latencies: DurationCounts;
  /** Deliveries that wait in a queue. */
  waiting: number;
  /** Deliveries under way. */
  running: number;
  /** Requests for tests and manual retries that wait for an answer. */
  requested: number;
  /** Deliveries that wait because their stored data cannot be read, or because the machine lacked what a connection needs. */
  postponed: number;
  /** Bytes in memory of events whose deliveries wait or are under way. */
  payloadBytes: number;
}

/** Counts deliveries as they end. */
export class DeliveryCounts {
  readonly #counts = {
    delivered: 0,
    failed: 0,
    attempts: {
      taken: createDurationCounts(),
      refused: createDurationCounts(),
      unanswered: createDurationCounts(),
    } satisfies Record<AttemptOutcome, DurationCounts>,
    latencies: createDurationCounts(),
  };

  attempt({ startedAtUs, completedAtUs, statusCode, error }: DeliveryAttempt): void {
    const outcome = error === null ? "taken" : statusCode === null ? "unanswered" : "refused";
    countDuration(this.#counts.attempts[outcome], (completedAtUs - startedAtUs) / 1e6);
  }

  delivered(sinceEventUs: number): void {
    this.#counts.delivered++;
    countDuration(this.#counts.latencies, sinceEventUs / 1e6);
  }

  failed(): void {
    this.#counts.failed++;
  }

  figures(
    now: Pick<DeliveryFigures, "waiting" | "running" | "requested" | "postponed" | "payloadBytes">,
  ): DeliveryFigures {
    return { ...this.#counts, ...now };
  }
}
