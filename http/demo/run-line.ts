import { counted } from "../../core/counted.js";
import type { DemoCellReport } from "../../workers/demo-cell/demo-cell-messages.js";

type EndedRun = Extract<DemoCellReport, { kind: "run_ended" }>;

/** One line about what the cell did with one part. */
export function runLine({ number, serialNumber, ending, outcome, placedDefects }: EndedRun): string {
  const words = {
    passed: "passed",
    failed: "failed the inspection",
    indeterminate: "indeterminate: not all could be measured",
  };
  const result = outcome === null ? `the run ${ending === "failed" ? "failed" : "was cancelled"}` : words[outcome];
  const defects = placedDefects === 0 ? "" : `, ${counted(placedDefects, "defect")} found`;
  return `run ${String(number).padStart(2)}  ${serialNumber}  ${result}${outcome === null ? "" : defects}`;
}
