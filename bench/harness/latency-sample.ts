import type { RoundSample } from "./benchmark.js";
import type { LatencyHistogram } from "./latency-histogram.js";

/** A round that began at `startMs` (performance.now()). Its figure is the 99th percentile in ms; the median is told beside it. */
export function p99Sample(latency: LatencyHistogram, startMs: number): RoundSample {
  const ms = (p: number): number => latency.percentileNs(p) / 1e6;
  const seconds = (performance.now() - startMs) / 1000;
  return { value: ms(0.99), seconds, latency: latency.toData(), details: { "p50 ms": ms(0.5) } };
}
