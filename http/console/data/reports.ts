/** Quality reports of many runs. */
import { ApiError, getJson, type Report, type RunSummary } from "./api.js";

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

export function forgetReports(): void {
  reports.clear();
}
