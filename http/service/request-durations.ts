import { countDuration, createDurationCounts, type DurationCounts } from "../../core/duration-counts.js";

const METHODS = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"]);

/** Shown for an unknown method, and for a request without a route. */
const OTHER = "other";
const NONE = "none";

interface Counted {
  readonly method: string;
  readonly status: number;
  readonly durations: DurationCounts;
}

/** Durations of requests by method, route and status. The number of series is limited, whatever clients send. */
export class RequestDurations {
  // The list of each route is short, so a search costs less than building a key for every request.
  readonly #byRoute = new Map<string, Counted[]>();

  /** @param path of the route as declared; undefined if no route matched */
  count(method: string, path: string | undefined, status: number, durationMs: number): void {
    // Without a route, the method can be anything.
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
