import { manifestOf } from "../../../core/run/run-files.js";
import { qualityStatusOf, type RunState, runProgress } from "../../../core/run/run-state.js";
import { bytesShown, durationShown, escaped, shown, timeShown } from "./page-text.js";

/** An error can have a stack. It may go on on the next sheet. */
const ERROR_CHARACTERS = 4_000;

/** What came out, in words. */
export function outcomeOf(run: RunState): { word: string; tone: "pass" | "fail" | "doubt" } {
  if (run.status === "failed") return { word: "Run failed: no result", tone: "fail" };
  if (run.status === "cancelled") return { word: "Run cancelled: no result", tone: "doubt" };
  if (run.status !== "completed") return { word: "Not finished", tone: "doubt" };
  const quality = qualityStatusOf(run);
  if (quality === null) return { word: "Completed, no checks", tone: "doubt" };
  if (quality === "passed") return { word: "Passed", tone: "pass" };
  return quality === "failed" ? { word: "Failed", tone: "fail" } : { word: "Indeterminate", tone: "doubt" };
}

/** @param notices what the reader must know before anything else */
export function* headSection(run: RunState, notices: readonly string[]): Generator<string, void> {
  const { word, tone } = outcomeOf(run);
  yield `<header>\n<p>Inspection report</p>\n<h1>${run.serialNumber === null ? "No serial number" : shown(run.serialNumber)}</h1>\n`;
  yield `<p><span class="outcome ${tone}">${word}</span></p>\n`;
  for (const notice of notices) yield `<p class="notice">${escaped(notice)}</p>\n`;
  if (run.errorMessage) yield `<p>${shown(run.errorMessage, ERROR_CHARACTERS)}</p>\n`;
  if (run.summary) yield `<p>${shown(run.summary, ERROR_CHARACTERS)}</p>\n`;
  const { completedSteps, totalSteps } = runProgress(run.steps);
  const began = run.startedAtUs;
  const took = began === null || run.completedAtUs === null ? "–" : durationShown(run.completedAtUs - began);
  const facts: [string, string][] = [
    ["Program", shown(run.programName)],
    ["Serial number", run.serialNumber === null ? "–" : shown(run.serialNumber)],
    ["Revision", `${run.revision}${run.revision > 1 ? ", the part was inspected before" : ""}`],
    ["Began", timeShown(began)],
    ["Ended", timeShown(run.completedAtUs)],
    ["Took", took],
    ["Steps", `${completedSteps} of ${totalSteps}`],
    ["State of", timeShown(run.updatedAtUs)],
    ["Run", escaped(run.id)],
  ];
  yield `<dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join("\n")}</dl>\n</header>\n`;
}

/** The run's files. They are not in the page. */
export function* fileSection(run: RunState): Generator<string, void> {
  const files = manifestOf(run);
  yield "<h2>Files</h2>\n";
  if (files.length === 0) {
    yield "<p>This run has no files.</p>\n";
    return;
  }
  const kept = files.filter(({ deletedAtUs }) => deletedAtUs === null);
  const sum = kept.reduce((all, { sizeBytes }) => all + (sizeBytes ?? 0), 0);
  yield `<p>${files.length}, of which ${kept.length} can be downloaded: ${bytesShown(sum)}.</p>\n`;
  yield `<table class="files"><colgroup><col><col style="width:28mm"><col style="width:14mm"><col style="width:30mm"></colgroup>\
<thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col" class="number">Step</th>\
<th scope="col" class="number">Size</th></tr></thead><tbody>\n`;
  for (const { name, type, stepIndex, sizeBytes, deletedAtUs, description } of files) {
    const note = description ? `<br><span class="note">${shown(description)}</span>` : "";
    const size = deletedAtUs === null ? bytesShown(sizeBytes) : `removed ${timeShown(deletedAtUs).slice(0, 10)}`;
    yield `<tr><th scope="row">${shown(name)}${note}</th><td>${escaped(type)}</td><td class="number">${stepIndex ?? ""}</td>\
<td class="number">${size}</td></tr>\n`;
  }
  yield "</tbody></table>\n";
}
