/**
 * Makes the answers about one run that may be large, and the part of a run that its files are served from. These are
 * pure functions, for any thread.
 */
import { defectsResponse, manifestResponse, qualityReportResponse, runResponse } from "../../core/run/run-response.js";
import type { RunState } from "../../core/run/run-state.js";
import type { NamedDelivery } from "../../core/webhook/webhook-response.js";

/**
 * `active` is the answer of /runs/active, when the run is the active one. `not-passed` is the quality report with only the checks that did
 * not pass, and without defects.
 */
export const RUN_DOCUMENT_KINDS = ["detail", "active", "quality-report", "not-passed", "defects", "files"] as const;
export type RunDocumentKind = (typeof RUN_DOCUMENT_KINDS)[number];

/** The object that becomes the JSON. Its lists are copies, so later changes of the run do not change it. */
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
      return qualityReportResponse({ ...run, defects: [...run.defects] });
    case "not-passed":
      return qualityReportResponse(run, true);
    case "defects":
      return defectsResponse({ ...run, defects: [...run.defects] });
    case "files":
      return manifestResponse(run, baseUrl);
  }
}

/** The run without its findings, texts and free-form parts: its files and frames are served without them. */
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
