/** How each check of a program came out over its newest runs. */
import { type Check, getJson, type Report, type RunSummary } from "./api.js";

interface TrendPoint {
  runId: string;
  check: Check;
}

export interface Trend {
  name: string;
  /** Oldest first. */
  points: TrendPoint[];
}

/** Reports that are read at once, and those that are kept: a finished one never changes. */
const AT_ONCE = 4;
const KEPT = 400;
const reports = new Map<string, Report>();

/** @param runs newest first */
export async function readTrends(runs: readonly RunSummary[], signal?: AbortSignal): Promise<Trend[]> {
  const completed = runs.filter(({ status }) => status === "completed").reverse();
  const queue = completed.filter(({ id }) => !reports.has(id));
  const readNext = async (): Promise<void> => {
    for (let run = queue.shift(); run !== undefined; run = queue.shift()) {
      reports.set(run.id, await getJson<Report>(`/runs/${run.id}/quality-report`, signal));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, readNext));
  const trends = new Map<string, Trend>();
  for (const run of completed) {
    for (const check of reports.get(run.id)?.quality_report?.checks ?? []) {
      let trend = trends.get(check.name);
      if (trend === undefined) {
        trend = { name: check.name, points: [] };
        trends.set(check.name, trend);
      }
      trend.points.push({ runId: run.id, check });
    }
  }
  for (const id of reports.keys()) {
    if (reports.size <= KEPT) break;
    reports.delete(id);
  }
  return [...trends.values()];
}

export function forgetReports(): void {
  reports.clear();
}
