import { createRandom } from "../../core/random.js";
import { formatTimeUs } from "../../core/timestamps.js";
import { type CsvAppend, csvRoomBytes, encodeCsvRows } from "../../workers/artefacts/series/csv-encoder.js";
import { ROWS_PER_BLOCK } from "../../workers/artefacts/series/series-source.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { atLeast } from "../harness/goal.js";
import { loadPeer } from "../peers/peer-package.js";

const CHANNELS = 8;
const ROWS = { smoke: 500, full: 200_000 };
const START_US = 1_763_757_505_000_000;
const PERIOD_US = 50;

/** The part of nodejs-polars that is used here (https://pola-rs.github.io/nodejs-polars). */
interface Polars {
  Series(name: string, values: unknown, type?: unknown): unknown;
  DataFrame(columns: Record<string, unknown>): { writeCSV(options: { includeHeader: boolean }): Buffer };
  Float32: unknown;
}

/** polars with one thread over a frame of a column of text and others of f32; gives the bytes of the text. */
function polarsWriter(times: string[], columns: readonly Float32Array[]): (() => number) | { why: string } {
  // polars reads this variable when its native module is loaded.
  process.env.POLARS_MAX_THREADS = "1";
  const peer = loadPeer<Polars>("nodejs-polars");
  if ("why" in peer) return peer;
  const polars = peer.loaded;
  const named: Record<string, unknown> = { timestamp: polars.Series("timestamp", times) };
  for (const [nth, values] of columns.entries()) {
    named[`channel_${nth + 1}`] = polars.Series(`channel_${nth + 1}`, values, polars.Float32);
  }
  const frame = polars.DataFrame(named);
  return () => frame.writeCSV({ includeHeader: false }).length;
}

async function open({ size, seed }: BenchmarkContext): Promise<OpenBenchmark> {
  const rows = ROWS[size];
  const random = createRandom(seed);
  const integers = Int32Array.from({ length: rows * CHANNELS }, () => random.integer(-1_000_000, 1_000_000));
  const singles = Float32Array.from({ length: rows * CHANNELS }, () => (random.next() - 0.5) * 200);
  const base = { firstTimestampUs: START_US, samplePeriodUs: PERIOD_US, valueOffset: null, invalid: [] };
  /** @param write gives the bytes of the text */
  const round = (write: () => number) => async (): Promise<RoundSample> => {
    const startMs = performance.now();
    const bytes = write();
    const ms = performance.now() - startMs;
    return { value: bytes / 1e3 / ms, seconds: ms / 1000, details: { "ns/value": (ms * 1e6) / (rows * CHANNELS) } };
  };
  /** Block by block, as downloads take them. */
  const own = (append: CsvAppend, values: Int32Array | Float32Array) => (): number => {
    let bytes = 0;
    for (let first = 0; first < rows; first += ROWS_PER_BLOCK) {
      const end = Math.min(first + ROWS_PER_BLOCK, rows);
      const part = values.subarray(first * CHANNELS, end * CHANNELS);
      const raw = new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
      const out = new Uint8Array(Buffer.allocUnsafeSlow(csvRoomBytes(CHANNELS, end - first)).buffer);
      bytes += out.slice(0, encodeCsvRows(append, CHANNELS, first, raw, out)).length;
    }
    return bytes;
  };
  const times = Array.from({ length: rows }, (_, row) => formatTimeUs(START_US + row * PERIOD_US));
  const columns = Array.from({ length: CHANNELS }, (_, channel) =>
    Float32Array.from({ length: rows }, (_, row) => singles[row * CHANNELS + channel] as number),
  );
  const polars = polarsWriter(times, columns);
  const runners: OpenBenchmark["runners"] = {
    decimals: round(own({ ...base, dtype: "i32", valueScale: 1e-4 }, integers)),
    singles: round(own({ ...base, dtype: "f32", valueScale: null }, singles)),
  };
  const notes = [`${rows} rows of ${CHANNELS} channels in memory; polars has its times as text`];
  if ("why" in polars) return { runners, missing: [{ name: "polars", why: polars.why }], notes };
  return { runners: { ...runners, polars: round(polars) }, notes };
}

export const seriesCsv: Benchmark = {
  name: "series-csv",
  measures:
    "A measurement series as CSV: from raw values in memory to text in memory (ours in pieces, as downloads take them), in one thread: i32 with four " +
    "decimals, f32 with the fewest digits that read back, and f32 by polars with one thread.",
  metric: { name: "throughput", unit: "MB/s", better: "higher" },
  contestants: [
    { name: "decimals", description: "i32 with a scale of 0.0001" },
    { name: "singles", description: "f32, shortest" },
    { name: "polars", description: "nodejs-polars: f32, shortest, from columns" },
  ],
  peer: "polars",
  goals: [
    atLeast("decimals", 300, "goal of the formats: 300 MB/s for integers with a decimal scale"),
    atLeast("singles", 1, "goal of the formats: at least as fast as polars", "polars"),
  ],
  rounds: { warmup: 2, measured: 11 },
  timeoutSeconds: 300,
  open,
};
