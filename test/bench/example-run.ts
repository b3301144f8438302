/** Made-up benchmarks, machines and runs for the tests of the harness. */
import type { Benchmark, RoundSample } from "../../bench/harness/benchmark.js";
import { LatencyHistogram } from "../../bench/harness/latency-histogram.js";
import type { Machine } from "../../bench/harness/machine.js";
import type { BenchmarkResult, BenchRun } from "../../bench/harness/result.js";

export const BENCHMARK: Benchmark = {
  name: "example",
  measures: "From here to there.",
  metric: { name: "throughput", unit: "req/s", better: "higher" },
  contestants: [
    { name: "ours", description: "the service" },
    { name: "peer", description: "a bare server" },
  ],
  peer: "peer",
  goals: [
    { contestant: "ours", peer: "peer", direction: "at-least", target: 0.7, source: "the issue" },
    { contestant: "ours", direction: "at-most", target: 100, source: "made up" },
  ],
  rounds: { warmup: 1, measured: 9 },
  timeoutSeconds: 10,
  open: () => Promise.reject(new Error("not opened here")),
};

export const MACHINE: Machine = {
  cpuModel: "Example CPU",
  cpuCount: 2,
  memoryBytes: 2 ** 34,
  kernel: "Linux 6.1",
  nodeVersion: "v20.15.0",
  loadAverage: [0.5, 1, 1.5],
  directory: "/data",
  fileSystem: "ext2/3/4",
  fdatasync: { medianUs: 120, minimumUs: 90, maximumUs: 900, verdict: "plausible", plausible: true },
  gitRevision: "0123abc",
  gitDirty: true,
};

export const OURS = [80, 82, 79, 81, 80.5, 78, 83, 79.5, 80.2];
export const PEER = [100, 102, 98, 101, 99, 100.5, 103, 97, 100.1];

function samples(values: readonly number[]): RoundSample[] {
  return values.map((value) => {
    const latency = new LatencyHistogram();
    for (let i = 1; i <= 100; i++) latency.record(i * 10_000);
    return { value, seconds: 1, latency: latency.toData(), details: { "CPU %": value / 2 } };
  });
}

/** @param peer without rounds: it is missing */
export function exampleResult(ours: readonly number[], peer: readonly number[]): BenchmarkResult {
  const contestants = [
    { name: "ours", warmup: samples([1]), rounds: samples(ours) },
    { name: "peer", warmup: samples([1]), rounds: samples(peer) },
  ].filter(({ rounds }) => rounds.length > 0);
  const missing = peer.length > 0 ? [] : [{ name: "peer", why: "not installed" }];
  return {
    name: "example",
    metric: BENCHMARK.metric,
    seconds: 12,
    notes: ["a note"],
    missing,
    error: null,
    contestants,
  };
}

export function exampleRun(ours: readonly number[], peer: readonly number[]): BenchRun {
  const startedAt = "2026-01-01T00:00:00.000Z";
  const benchmarks = [exampleResult(ours, peer)];
  return { format: "inspection-bench", version: 2, startedAt, seconds: 12, size: "full", machine: MACHINE, benchmarks };
}
