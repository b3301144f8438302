import { createRandom } from "../../core/random.js";
import { formatTimeUs } from "../../core/timestamps.js";
import { type CsvAppend, csvRoomBytes, encodeCsvRows } from "../../workers/artefacts/csv-encoder.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";

const CHANNELS = 8;
const START_US = 1_763_757_505_000_000;
const PERIOD_US = 50;

async function open({ size, seed }: BenchmarkContext): Promise<OpenBenchmark> {
  const rows = size === "smoke" ? 500 : 200_000;
  const random = createRandom(seed);
  const integers = Int32Array.from({ length: rows * CHANNELS }, () => random.integer(-1_000_000, 1_000_000));
  const singles = Float32Array.from({ length: rows * CHANNELS }, () => (random.next() - 0.5) * 200);
  const out = new Uint8Array(csvRoomBytes(CHANNELS, rows));
  const base = { firstTimestampUs: START_US, samplePeriodUs: PERIOD_US, valueOffset: null, invalid: [] };
  const sample = (bytes: number, ms: number): RoundSample => ({
    value: bytes / 1e3 / ms,
    seconds: ms / 1000,
    details: { "ns/value": (ms * 1e6) / (rows * CHANNELS) },
  });
  const own = (append: CsvAppend, values: Int32Array | Float32Array) => async (): Promise<RoundSample> => {
    const start = performance.now();
    const bytes = encodeCsvRows(append, CHANNELS, 0, new Uint8Array(values.buffer), out);
    return sample(bytes, performance.now() - start);
  };
  const strings = async (): Promise<RoundSample> => {
    const start = performance.now();
    const lines: string[] = [];
    for (let row = 0; row < rows; row++) {
      let line = formatTimeUs(START_US + row * PERIOD_US);
      for (let at = row * CHANNELS; at < (row + 1) * CHANNELS; at++) line += `,${String(singles[at])}`;
      lines.push(line);
    }
    const bytes = Buffer.from(`${lines.join("\n")}\n`, "latin1").length;
    return sample(bytes, performance.now() - start);
  };
  return {
    runners: {
      decimals: own({ ...base, dtype: "i32", valueScale: 1e-4 }, integers),
      singles: own({ ...base, dtype: "f32", valueScale: null }, singles),
      strings,
    },
    notes: [`${rows} rows of ${CHANNELS} channels in memory, one thread; String(v) writes f32 with up to 17 digits`],
    close: async () => {},
  };
}

export const seriesCsv: Benchmark = {
  name: "series-csv",
  measures:
    "A measurement series as CSV: from raw values in memory to text in memory, in one thread: i32 with four decimals, f32 with the fewest digits " +
    "that read back, and f32 by String(v) joined to lines, as a program would write it first.",
  metric: { name: "throughput", unit: "MB/s", better: "higher" },
  contestants: [
    { name: "decimals", description: "i32 with a scale of 0.0001" },
    { name: "singles", description: "f32, shortest" },
    { name: "strings", description: "f32 by String(v)" },
  ],
  peer: "strings",
  goals: [
    {
      kind: "value",
      contestant: "decimals",
      value: 300,
      direction: "at-least",
      source: "goal of the formats: 300 MB/s for integers with a decimal scale",
    },
    {
      kind: "ratio",
      contestant: "singles",
      peer: "strings",
      ratio: 10,
      direction: "at-least",
      source: "goal of the formats: 10 times String(v)",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 2, measured: 11 } },
  timeoutSeconds: { smoke: 60, full: 300 },
  open,
};
