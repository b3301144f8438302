/** Quality reports of many runs. */
import { ApiError, type Check, getJson, type Report, type RunSummary } from "./api.js";
import { inTurn } from "./previews.js";
import { useResource } from "./resource.js";

/** Reports that are read at once. */
const AT_ONCE = 4;
/** Checks of the reports that are kept: some reports have ten thousand. A finished report never changes. */
const KEPT_CHECKS = 50_000;
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
  forgetOldest();
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

function forgetOldest(): void {
  // A report without checks takes memory, too.
  const weightOf = ({ quality_report: own }: Report): number => 100 + (own?.checks.length ?? 0);
  let kept = [...reports.values()].reduce((sum, report) => sum + weightOf(report), 0);
  for (const [id, report] of reports) {
    if (kept <= KEPT_CHECKS) break;
    reports.delete(id);
    kept -= weightOf(report);
  }
}

/** Names of the checks for which a run did not pass: those that failed, or else those without a verdict. */
export function useFailedNames(run: RunSummary): readonly string[] {
  const { id, status, quality_status: outcome } = run;
  const isDue = status === "completed" && (outcome === "failed" || outcome === "indeterminate");
  const names = useResource<readonly string[]>(isDue ? `failed checks of ${id}` : null, (signal) =>
    inTurn(async () => {
      const [report] = await readReports([run], signal);
      const isWanted = ({ status: one }: Check) =>
        outcome === "failed" ? one === "failed" : one === "error" || one === "not_evaluated";
      return (report?.quality_report?.checks ?? []).filter(isWanted).map(({ name }) => name);
    }),
  );
  return names.data.value ?? NONE;
}

const NONE: readonly string[] = [];

export function forgetReports(): void {
  reports.clear();
}
