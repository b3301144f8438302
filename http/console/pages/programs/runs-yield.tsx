import type { RunSummary } from "../../data/api.js";
import { type OutcomeCounts, percentText, YieldBar, yieldOf } from "../../ui/bars.js";

export function RunsYield({ runs }: { runs: readonly RunSummary[] }) {
  const counts: OutcomeCounts = { passed: 0, failed: 0, indeterminate: 0 };
  for (const { status, quality_status: outcome } of runs) {
    if (status === "completed" && outcome !== null) counts[outcome]++;
  }
  return (
    <span class="runs-yield">
      <span class="number">{percentText(yieldOf(counts))}</span>
      <YieldBar counts={counts} />
    </span>
  );
}
