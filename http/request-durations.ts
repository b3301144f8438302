import { countDuration, createDurationCounts, type DurationCounts } from "../core/duration-counts.js";

const METHODS = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"]);

/** The method or the route of what is neither. */
const OTHER = "other";
const NONE = "none";

/** Durations of requests by method, route and status: bounded, whatever clients send. */
export class RequestDurations {
  // Nested, by strings that are there already: a key put together for every request would cost more than its counting.
  readonly #byRoute = new Map<string, Map<string, Map<number, DurationCounts>>>();

  /** @param path of the route as declared; undefined when no route has the request's */
  count(method: string, path: string | undefined, status: number, durationMs: number): void {
    const byMethod = entry(this.#byRoute, path ?? NONE, () => new Map<string, Map<number, DurationCounts>>());
    // The method of a request without route is whatever came.
    const shown = path !== undefined || METHODS.has(method) ? method : OTHER;
    const byStatus = entry(byMethod, shown, () => new Map<number, DurationCounts>());
    countDuration(entry(byStatus, status, createDurationCounts), durationMs / 1000);
  }

  *series(): Generator<{ labels: Record<string, string>; durations: DurationCounts }> {
    for (const [route, byMethod] of this.#byRoute) {
      for (const [method, byStatus] of byMethod) {
        for (const [status, durations] of byStatus)
          yield { labels: { method, route, status: String(status) }, durations };
      }
    }
  }
}

function entry<Key, Value>(of: Map<Key, Value>, key: Key, create: () => Value): Value {
  let value = of.get(key);
  if (value === undefined) {
    value = create();
    of.set(key, value);
  }
  return value;
}
