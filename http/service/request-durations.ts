import { countDuration, createDurationCounts, type DurationCounts } from "../../core/duration-counts.js";

const METHODS = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"]);

/** The method or the route of what is neither. */
const OTHER = "other";
const NONE = "none";

interface Counted {
  readonly method: string;
  readonly status: number;
  readonly durations: DurationCounts;
}

/** Durations of requests by method, route and status: bounded, whatever clients send. */
export class RequestDurations {
  // Of a route a few: a key put together for every request would cost more than its counting.
  readonly #byRoute = new Map<string, Counted[]>();

  /** @param path of the route as declared; undefined when no route has the request's */
  count(method: string, path: string | undefined, status: number, durationMs: number): void {
    // The method of a request without route is whatever came.
    const shown = path !== undefined || METHODS.has(method) ? method : OTHER;
    countDuration(this.#durations(path ?? NONE, shown, status), durationMs / 1000);
  }

  #durations(route: string, method: string, status: number): DurationCounts {
    let counted = this.#byRoute.get(route);
    if (counted === undefined) {
      counted = [];
      this.#byRoute.set(route, counted);
    }
    for (const one of counted) if (one.status === status && one.method === method) return one.durations;
    const durations = createDurationCounts();
    counted.push({ method, status, durations });
    return durations;
  }

  *series(): Generator<{ labels: Record<string, string>; durations: DurationCounts }> {
    for (const [route, counted] of this.#byRoute) {
      for (const { method, status, durations } of counted) {
        yield { labels: { method, route, status: String(status) }, durations };
      }
    }
  }
}
