import { isProcessingOpen } from "../../core/capture/artefact.js";
import type { Extent } from "../../core/capture/capture.js";
import { storedEnd } from "../../core/run/run-files.js";
import type { RunState } from "../../core/run/run-state.js";
import { type CaptureKind, capturePath } from "../../storage/captures/capture-path.js";
import { extentsOfRun } from "../../storage/captures/stored-extents.js";
import type { CaptureRange } from "./capture-message.js";

/** Which stored bytes go to the plant: none, reports and previews, or all. */
export const CAPTURE_POLICIES = ["none", "reports", "all"] as const;
export type CapturePolicy = (typeof CAPTURE_POLICIES)[number];

/** Bytes of one of a run's files that are to be in the plant. */
export interface NamedRange extends CaptureRange {
  sizeBytes: number;
  /** Relative to the captures folder. */
  path: string;
  /** What the run's records name in it, with CRCs. */
  extents: readonly Extent[];
}

/** The ranges of an ended run, the report first. None of captures that retention has removed; none at all while formats are still to be made. */
export function rangesOf(run: RunState, policy: CapturePolicy): NamedRange[] {
  if (policy === "none" || isProcessingOpen(run)) return [];
  const ranges: NamedRange[] = [];
  const addWhole = (kind: CaptureKind, sizeBytes: number): void => {
    const path = capturePath(run.id, kind);
    const extents = extentsOfRun(run).find((named) => named.path === path)?.extents ?? [];
    if (sizeBytes > 0) ranges.push({ runId: run.id, kind, offset: 0, sizeBytes, path, extents });
  };
  addWhole("report", storedEnd(run, "reports"));
  if (run.capturesRemovedAtUs !== null) return ranges;
  if (policy === "all") {
    addWhole("capture", storedEnd(run, "captures"));
    return ranges;
  }
  const path = capturePath(run.id, "capture");
  for (const preview of previewsOf(run)) {
    const { offset, lengthBytes } = preview;
    ranges.push({ runId: run.id, kind: "capture", offset, sizeBytes: lengthBytes, path, extents: [preview] });
  }
  return ranges;
}

function previewsOf({ frames }: RunState): Extent[] {
  return frames.flatMap(({ artefacts }) => {
    const picture = artefacts?.png;
    return picture?.kind === "picture" && picture.preview !== undefined ? [picture.preview] : [];
  });
}
