import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { BenchmarkContext } from "../../harness/benchmark.js";
import { type LatencyData, LatencyHistogram } from "../../harness/latency-histogram.js";
import { getJson } from "../http/http-load.js";
import { startServer } from "../http/server-process.js";

const PROGRAM = fileURLToPath(new URL("./delivery-receivers-process.js", import.meta.url));

/** What the receivers have got since they were started. */
export interface ReceiverFigures {
  ports: number[];
  total: number;
  /** The counts of the receivers that got the fewest and the most. */
  fewest: number;
  most: number;
  /** When the last one came, in milliseconds since the Unix epoch. */
  lastMs: number;
  /** Latencies from an event's `timestamp` to the last byte of its body. */
  latency: LatencyData;
}

/** Receivers in a process of their own, which answer 204 to every event at once. */
export interface DeliveryReceivers {
  /** The address of each receiver. */
  readonly urls: readonly string[];
  figures(): Promise<ReceiverFigures>;
  /** Resolves when each receiver has got `each` more events than in `before`, with what came since then. */
  received(before: ReceiverFigures, each: number): Promise<ReceiverFigures>;
}

const LOOK_EVERY_MS = 20;

export async function startDeliveryReceivers(context: BenchmarkContext, count: number): Promise<DeliveryReceivers> {
  const server = await startServer(context, "the receivers", [PROGRAM, String(count)]);
  const figures = (): Promise<ReceiverFigures> => getJson(server.url);
  const { ports } = await figures();
  return {
    urls: ports.map((port, nth) => `http://127.0.0.1:${port}/${nth}`),
    figures,
    async received(before, each) {
      for (;;) {
        const now = await figures();
        if (now.fewest >= before.fewest + each) {
          if (now.total !== before.total + each * count) throw new Error("a receiver had an event more than once");
          return { ...now, total: now.total - before.total, latency: without(now.latency, before.latency) };
        }
        await sleep(LOOK_EVERY_MS);
      }
    },
  };
}

/** What was counted after `before`; the maximum is that of its highest bucket. */
function without(now: LatencyData, before: LatencyData): LatencyData {
  const former = new Map(before.buckets);
  const buckets = now.buckets
    .map(([index, count]): [number, number] => [index, count - (former.get(index) ?? 0)])
    .filter(([, count]) => count > 0);
  const data = { count: now.count - before.count, maximumNs: now.maximumNs, buckets };
  const histogram = new LatencyHistogram();
  histogram.add(data);
  return { ...data, maximumNs: histogram.percentileNs(1) };
}
