import { countDuration, createDurationCounts, type DurationCounts } from "../../../core/duration-counts.js";
import type { DeliveryAttempt } from "../../../core/webhook/delivery.js";

/** How an attempt ended: taken (2xx), answered with another status, or without an answer. */
export const ATTEMPT_OUTCOMES = ["taken", "refused", "unanswered"] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** What is counted of deliveries since the start, for the service's metrics. Plain data: it crosses threads. */
export interface DeliveryFigures {
  /** Ends of deliveries; each manual retry and each test is an end of its own. */
  delivered: number;
  failed: number;
  /** Of attempts, by their outcome: how long each took. */
  attempts: Record<AttemptOutcome, DurationCounts>;
  /** From an event to its delivery. */
  latencies: DurationCounts;
  /** Deliveries that wait for their turn, and those under way. */
  waiting: number;
  running: number;
  /** Tests and manual retries whose requests wait for an answer. */
  wanted: number;
  /** Deliveries that wait because what is stored of them cannot be read. */
  unreadable: number;
  /** Of events whose deliveries wait or are under way. */
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
    now: Pick<DeliveryFigures, "waiting" | "running" | "wanted" | "unreadable" | "payloadBytes">,
  ): DeliveryFigures {
    return { ...this.#counts, ...now };
  }
}
