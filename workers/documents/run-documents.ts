/** The answers about one run that may be large, and what of a run serves its files. Pure functions, for any thread. */
import { defectsResponse, manifestResponse, qualityReportResponse, runResponse } from "../../core/run/run-response.js";
import type { RunState } from "../../core/run/run-state.js";
import type { NamedDelivery } from "../../core/webhook/webhook-response.js";

/** `active` is the answer of /runs/active, when the run is the active one. */
export const RUN_DOCUMENT_KINDS = ["detail", "active", "quality-report", "defects", "files"] as const;
export type RunDocumentKind = (typeof RUN_DOCUMENT_KINDS)[number];

/** What becomes the JSON. Its lists are its own: a run that changes in place does not change it. */
export function runDocument(
  kind: RunDocumentKind,
  run: RunState,
  baseUrl: string,
  deliveries: readonly NamedDelivery[],
): object {
  switch (kind) {
    case "detail":
      return runResponse(run, baseUrl, deliveries);
    case "active":
      return { active: true, run: runResponse(run, baseUrl, deliveries) };
    case "quality-report":
      return qualityReportResponse({ ...run, checks: [...run.checks], defects: [...run.defects] });
    case "defects":
      return defectsResponse({ ...run, defects: [...run.defects] });
    case "files":
      return manifestResponse(run, baseUrl);
  }
}

/** The run with what its files and frames are served from, and without its findings, texts and free-form parts. */
export function withoutFindings(run: RunState): RunState {
  const { emitted: _, ...others } = run;
  return {
    ...others,
    metadata: null,
    results: null,
    summary: null,
    checks: [],
    defects: [],
    eventLog: [],
    steps: run.steps.map((step) => ({ ...step, definition: { ...step.definition, params: {} }, result: null })),
  };
}
