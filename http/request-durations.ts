import { countDuration, createDurationCounts, type DurationCounts } from "../core/duration-counts.js";

const METHODS = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"]);

/** Durations of requests by method, route and status: bounded, whatever clients send. */
export class RequestDurations {
  readonly #byStatus = new Map<string, Map<number, DurationCounts>>();

  /** @param path of the route as declared; undefined when no route has the request's */
  count(method: string, path: string | undefined, status: number, durationMs: number): void {
    // The method of a request without route is whatever came.
    const key = path === undefined ? (METHODS.has(method) ? `${method} ` : "other ") : `${method} ${path}`;
    let statuses = this.#byStatus.get(key);
    if (statuses === undefined) {
      statuses = new Map();
      this.#byStatus.set(key, statuses);
    }
    let durations = statuses.get(status);
    if (durations === undefined) {
      durations = createDurationCounts();
      statuses.set(status, durations);
    }
    countDuration(durations, durationMs / 1000);
  }

  *series(): Generator<{ labels: Record<string, string>; durations: DurationCounts }> {
    for (const [key, statuses] of this.#byStatus) {
      const space = key.indexOf(" ");
      const labels = { method: key.slice(0, space), route: key.slice(space + 1) || "none" };
      for (const [status, durations] of statuses) yield { labels: { ...labels, status: String(status) }, durations };
    }
  }
}
