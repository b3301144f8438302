/** The statistics of a program, and the newest values of one check. */
import { apiFetch, getJson, queryOf, type Statistics } from "../../data/api.js";

/** As the interface names them; an empty one is not asked for. */
export interface QualityQuery {
  completed_since: string;
  completed_until: string;
  check: string;
}

/** A row of `checks.ndjson` that has a value. */
export interface MeasuredCheck {
  run_id: string;
  serial_number: string | null;
  completed_at: string;
  status: string;
  value: number;
}

export interface ProgramQuality {
  statistics: Statistics;
  /** Of the check that is asked for, the oldest first; empty if none is. */
  newest: readonly MeasuredCheck[];
}

/** A chart of more single values cannot be read. */
const NEWEST_VALUES = 300;

/** @param path of the program */
export async function readProgramQuality(
  path: string,
  query: QualityQuery,
  signal: AbortSignal,
): Promise<ProgramQuality> {
  const statistics = await getJson<Statistics>(`${path}/statistics${queryOf({ ...query })}`, signal);
  const [check] = statistics.checks;
  if (query.check === "" || check === undefined || check.values === 0) return { statistics, newest: [] };
  // The export begins with the oldest. The trend tells from when on there are enough: at most a bucket more than that is read.
  let first = check.trend.length;
  for (let count = 0; first > 0 && count < NEWEST_VALUES; first--) count += check.trend[first - 1]?.count ?? 0;
  const since = check.trend[first]?.from ?? query.completed_since;
  const { body } = await apiFetch(`${path}/checks.ndjson${queryOf({ ...query, completed_since: since })}`, { signal });
  return { statistics, newest: await lastMeasured(body as ReadableStream<Uint8Array<ArrayBuffer>>) };
}

/** Holds few more rows than it gives. */
async function lastMeasured(body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<MeasuredCheck[]> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rows: MeasuredCheck[] = [];
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return rows;
    const lines = (rest + value).split("\n");
    rest = lines.pop() as string;
    for (const line of lines) {
      const row = JSON.parse(line) as MeasuredCheck;
      if (row.value !== null) rows.push(row);
    }
    rows = rows.slice(-NEWEST_VALUES);
  }
}
