import { createRequire } from "node:module";
import { PEERS_PACKAGE } from "./sqlite.js";

/** Text of a table whose first column is text. */
export type WriteCsv = () => number;

interface Papa {
  unparse(rows: unknown[][], options: { newline: string }): string;
}

/** papaparse over rows of numbers, or why it cannot be used here. */
export function papaparseWriter(rows: unknown[][]): WriteCsv | { why: string } {
  try {
    const papa = createRequire(PEERS_PACKAGE)("papaparse") as Papa;
    return () => Buffer.from(`${papa.unparse(rows, { newline: "\n" })}\n`, "latin1").length;
  } catch (error) {
    return cannot("papaparse", error);
  }
}

interface Polars {
  Series(name: string, values: unknown, type?: unknown): unknown;
  DataFrame(columns: Record<string, unknown>): { writeCSV(options: { includeHeader: boolean }): Buffer };
  Float32: unknown;
}

/** polars with one thread over a frame of a column of text and others of f32, or why it cannot be used here. */
export function polarsWriter(times: string[], columns: readonly Float32Array[]): WriteCsv | { why: string } {
  try {
    // Read when the native module is loaded.
    process.env.POLARS_MAX_THREADS = "1";
    const polars = createRequire(PEERS_PACKAGE)("nodejs-polars") as Polars;
    const named: Record<string, unknown> = { timestamp: polars.Series("timestamp", times) };
    for (const [nth, values] of columns.entries()) {
      named[`channel_${nth + 1}`] = polars.Series(`channel_${nth + 1}`, values, polars.Float32);
    }
    const frame = polars.DataFrame(named);
    return () => frame.writeCSV({ includeHeader: false }).length;
  } catch (error) {
    return cannot("nodejs-polars", error);
  }
}

function cannot(name: string, error: unknown): { why: string } {
  const [reason = ""] = (error as Error).message.split("\n");
  return { why: `${name} cannot be loaded (${reason}); node .ci/setup-peers.mjs installs it where that is possible` };
}
