/** Quality reports of many runs, and how each check of a program came out over its newest runs. */
import { ApiError, type Check, getJson, type Report, type RunSummary } from "./api.js";

interface TrendPoint {
  runId: string;
  check: Check;
}

export interface Trend {
  name: string;
  /** Oldest first. */
  points: TrendPoint[];
}

export interface Trends {
  trends: Trend[];
  /** Completed runs, and how many of them are left out because the service cannot read them. */
  completed: number;
  unreadable: number;
}

/** Reports that are read at once, and those that are kept: a finished one never changes. */
const AT_ONCE = 4;
const KEPT = 400;
const reports = new Map<string, Report>();

/** The report of each run. Undefined: the service cannot read it, as after damage. The others still count. */
export async function readReports(
  runs: readonly RunSummary[],
  signal?: AbortSignal,
): Promise<readonly (Report | undefined)[]> {
  const found: (Report | undefined)[] = [];
  const queue = runs.entries();
  const readNext = async (): Promise<void> => {
    for (const [at, run] of queue) found[at] = await readReport(run, signal);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, readNext));
  for (const id of reports.keys()) {
    if (reports.size <= KEPT) break;
    reports.delete(id);
  }
  return found;
}

async function readReport({ id, status }: RunSummary, signal?: AbortSignal): Promise<Report | undefined> {
  const known = reports.get(id);
  if (known !== undefined) return known;
  try {
    const report = await getJson<Report>(`/runs/${id}/quality-report`, signal);
    if (status === "completed") reports.set(id, report);
    return report;
  } catch (error) {
    if (error instanceof ApiError && error.status === 500) return undefined;
    throw error;
  }
}

/** @param runs newest first */
export async function readTrends(runs: readonly RunSummary[], signal?: AbortSignal): Promise<Trends> {
  const completed = runs.filter(({ status }) => status === "completed").reverse();
  const found = await readReports(completed, signal);
  const trends = new Map<string, Trend>();
  completed.forEach(({ id: runId }, at) => {
    for (const check of found[at]?.quality_report?.checks ?? []) {
      let trend = trends.get(check.name);
      if (trend === undefined) {
        trend = { name: check.name, points: [] };
        trends.set(check.name, trend);
      }
      trend.points.push({ runId, check });
    }
  });
  const unreadable = found.filter((report) => report === undefined).length;
  return { trends: [...trends.values()], completed: completed.length, unreadable };
}

export function forgetReports(): void {
  reports.clear();
}
