/** Quality reports of many runs. */

import { turns } from "../turns.js";
import { ApiError, type Check, getJson, type Report, type RunSummary } from "./api.js";
import { useResource } from "./resource.js";

/** Whole reports, for a page without pictures. With the reasons and the stream of changes, it has one of six connections left. */
const inTurn = turns(3);
/** A slow whole report holds up no reasons, nor does a picture. */
const reasonsInTurn = turns(1);
const NONE: readonly string[] = [];

/** The report of each run. Undefined: the service cannot read it, as after damage. The others still count. */
export function readReports(
  runs: readonly RunSummary[],
  signal: AbortSignal,
): Promise<readonly (Report | undefined)[]> {
  return Promise.all(runs.map(({ id }) => inTurn(() => readReport(`/runs/${id}/quality-report`, signal))));
}

async function readReport(path: string, signal: AbortSignal): Promise<Report | undefined> {
  try {
    return await getJson<Report>(path, signal);
  } catch (error) {
    if (error instanceof ApiError && error.status === 500) return undefined;
    throw error;
  }
}

/** Names of the checks for which a run did not pass: those that failed, or else those without a verdict. */
export function useFailedNames({ id, status, quality_status: outcome }: RunSummary): readonly string[] {
  const isDue = status === "completed" && (outcome === "failed" || outcome === "indeterminate");
  const path = `/runs/${id}/quality-report?checks=not_passed`;
  const names = useResource<readonly string[]>(isDue ? `names ${path}` : null, (signal) =>
    reasonsInTurn(async () => {
      const isWanted = (check: Check) => outcome !== "failed" || check.status === "failed";
      const report = await readReport(path, signal);
      return (report?.quality_report?.checks ?? []).filter(isWanted).map(({ name }) => name);
    }),
  );
  return names.data.value ?? NONE;
}
