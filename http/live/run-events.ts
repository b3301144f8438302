import { LRUCache } from "lru-cache";
import { formatTimeUs } from "../../core/timestamps.js";
import type { RunChanges } from "../../storage/view/changes/run-changes.js";

/** Enough for the changes between two wakes. */
const KEPT_BYTES = 1024 * 1024;
/** Memory that a cache entry takes beside its bytes. */
const ENTRY_OVERHEAD_BYTES = 500;

/** The events of changed runs. Each is made once for all clients, because all are told of it within a few milliseconds. */
export class RunEvents {
  /** By time and base address: no two changes have the same time. */
  readonly #kept = new LRUCache<string, Uint8Array>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (event) => event.byteLength + ENTRY_OVERHEAD_BYTES,
  });

  /** In the order of the runs. They are shared: they must not be changed. */
  async of({ timesUs, read }: RunChanges, baseUrl: string): Promise<readonly Uint8Array[]> {
    const keys = timesUs.map((timeUs) => `${timeUs} ${baseUrl}`);
    const events = keys.map((key) => this.#kept.get(key));
    const missing = [...events.keys()].filter((place) => events[place] === undefined);
    if (missing.length > 0) {
      const { runs, isWhole } = await read(missing, baseUrl);
      for (const [at, place] of missing.entries()) {
        const event = runEvent(timesUs[place] as number, runs[at] as Uint8Array);
        events[place] = event;
        // The next read of a record that could not be read may succeed.
        if (isWhole) this.#kept.set(keys[place] as string, event);
      }
    }
    return events as Uint8Array[];
  }
}

function runEvent(timeUs: number, json: Uint8Array): Uint8Array {
  const head = Buffer.from(eventHead(timeUs, "run"));
  // In memory of its own, so that it can be cached.
  const event = Buffer.allocUnsafeSlow(head.byteLength + json.byteLength + 2);
  event.set(head);
  event.set(json, head.byteLength);
  event.write("\n\n", head.byteLength + json.byteLength);
  return event;
}

export function eventHead(timeUs: number, name: "ready" | "run" | "reset"): string {
  return `id: ${formatTimeUs(timeUs)}\nevent: ${name}\ndata: `;
}
