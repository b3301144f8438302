import { createRandom } from "../../../core/random.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { type KernelMemory, typeScriptKernels, wasmKernels } from "../../../workers/artefacts/kernel-memory.js";
import type { CsvAppend } from "../../../workers/artefacts/series/csv-encoder.js";
import { CsvRows } from "../../../workers/artefacts/series/csv-kernels.js";
import { ROWS_PER_BLOCK } from "../../../workers/artefacts/series/series-source.js";
import type {
  Benchmark,
  BenchmarkContext,
  MissingContestant,
  OpenBenchmark,
  RoundSample,
} from "../../harness/benchmark.js";
import { papaparseWriter, polarsWriter, type WriteCsv } from "../../peers/csv-writers.js";

const CHANNELS = 8;
const START_US = 1_763_757_505_000_000;
const PERIOD_US = 50;

async function open({ size, seed }: BenchmarkContext): Promise<OpenBenchmark> {
  const rows = size === "smoke" ? 500 : 200_000;
  const random = createRandom(seed);
  const integers = Int32Array.from({ length: rows * CHANNELS }, () => random.integer(-1_000_000, 1_000_000));
  const singles = Float32Array.from({ length: rows * CHANNELS }, () => (random.next() - 0.5) * 200);
  const [wasm, typeScript] = [await wasmKernels(), typeScriptKernels()];
  const base = { firstTimestampUs: START_US, samplePeriodUs: PERIOD_US, valueOffset: null, invalid: [] };
  const sample = (bytes: number, ms: number): RoundSample => ({
    value: bytes / 1e3 / ms,
    seconds: ms / 1000,
    details: { "ns/value": (ms * 1e6) / (rows * CHANNELS) },
  });
  /** Block by block, as downloads take them: each in memory of its own. */
  const own = (memory: KernelMemory, append: CsvAppend, values: Int32Array | Float32Array) => async () => {
    const start = performance.now();
    let bytes = 0;
    for (let first = 0; first < rows; first += ROWS_PER_BLOCK) {
      const end = Math.min(first + ROWS_PER_BLOCK, rows);
      memory.reset();
      const text = new CsvRows(memory, CHANNELS, end - first);
      const part = values.subarray(first * CHANNELS, end * CHANNELS);
      text.write(append, first, new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
      bytes += text.bytes.length;
    }
    return sample(bytes, performance.now() - start);
  };
  const time = (row: number): string => formatTimeUs(START_US + row * PERIOD_US);
  const strings = async (): Promise<RoundSample> => {
    const start = performance.now();
    const lines: string[] = [];
    for (let row = 0; row < rows; row++) {
      let line = time(row);
      for (let at = row * CHANNELS; at < (row + 1) * CHANNELS; at++) line += `,${String(singles[at])}`;
      lines.push(line);
    }
    const bytes = Buffer.from(`${lines.join("\n")}\n`, "latin1").length;
    return sample(bytes, performance.now() - start);
  };
  const table = Array.from({ length: rows }, (_, row) => [
    time(row),
    ...Array.from(integers.subarray(row * CHANNELS, (row + 1) * CHANNELS), (value) => value / 1e4),
  ]);
  const columns = Array.from({ length: CHANNELS }, (_, channel) =>
    Float32Array.from({ length: rows }, (_, row) => singles[row * CHANNELS + channel] as number),
  );
  const peers: Record<string, WriteCsv | { why: string }> = {
    papaparse: papaparseWriter(table),
    polars: polarsWriter(
      table.map(([text]) => String(text)),
      columns,
    ),
  };
  const runners: OpenBenchmark["runners"] = {};
  const missing: MissingContestant[] = [];
  for (const [name, write] of Object.entries(peers)) {
    if (typeof write !== "function") missing.push({ name, why: write.why });
    else {
      runners[name] = async () => {
        const start = performance.now();
        const bytes = write();
        return sample(bytes, performance.now() - start);
      };
    }
  }
  return {
    runners: {
      ...runners,
      decimals: own(wasm, { ...base, dtype: "i32", valueScale: 1e-4 }, integers),
      singles: own(wasm, { ...base, dtype: "f32", valueScale: null }, singles),
      "typescript-decimals": own(typeScript, { ...base, dtype: "i32", valueScale: 1e-4 }, integers),
      "typescript-singles": own(typeScript, { ...base, dtype: "f32", valueScale: null }, singles),
      strings,
    },
    missing,
    notes: [
      `${rows} rows of ${CHANNELS} channels in memory, one thread each; String(v) writes f32 with up to 17 digits; papaparse and polars have their times as text`,
    ],
    close: async () => {},
  };
}

export const seriesCsv: Benchmark = {
  name: "series-csv",
  measures:
    "A measurement series as CSV: from raw values in memory to text in memory (ours in pieces of their own, as downloads take them), in one thread: i32 with four decimals, f32 with the fewest digits " +
    "that read back, f32 by String(v) joined to lines, as a program would write it first, the decimals by papaparse, and f32 by polars with one thread.",
  metric: { name: "throughput", unit: "MB/s", better: "higher" },
  contestants: [
    { name: "decimals", description: "i32 with a scale of 0.0001, in WebAssembly" },
    { name: "singles", description: "f32, shortest, in WebAssembly" },
    { name: "typescript-decimals", description: "i32 with a scale of 0.0001, without WebAssembly" },
    { name: "typescript-singles", description: "f32, shortest, without WebAssembly" },
    { name: "strings", description: "f32 by String(v)" },
    { name: "papaparse", description: "papaparse: the decimals as numbers, from rows" },
    { name: "polars", description: "nodejs-polars: f32, shortest, from columns" },
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
      peer: "polars",
      ratio: 1,
      direction: "at-least",
      source: "goal of the formats: at least as fast as polars",
    },
    {
      kind: "ratio",
      contestant: "singles",
      peer: "strings",
      ratio: 10,
      direction: "at-least",
      source: "goal of the formats where polars cannot be had: 10 times String(v)",
    },
    {
      kind: "ratio",
      contestant: "decimals",
      peer: "papaparse",
      ratio: 20,
      direction: "at-least",
      source: "goal of the formats: 20 times papaparse",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 2, measured: 11 } },
  timeoutSeconds: { smoke: 60, full: 300 },
  open,
};
