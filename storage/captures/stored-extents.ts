import { artefactExtents, artefactExtentsOf } from "../../core/capture/artefact.js";
import type { Extent } from "../../core/capture/capture.js";
import type { Change } from "../../core/link/change.js";
import type { RunState, StoredFile } from "../../core/run/run-state.js";
import type { NamedExtents } from "../repair/check-store.js";
import { type CaptureKind, capturePath, FILE_OF_KIND } from "./capture-path.js";

/** The stored bytes that a change names, of a run that has not ended. */
export function extentsOfChange(change: Change): NamedExtents[] {
  switch (change.kind) {
    case "frame_lines_stored":
      return [named(change.runId, "capture", [change.batch])];
    case "series_appended":
      return [named(change.runId, "capture", [change.append])];
    case "artefact_stored":
      return [named(change.runId, "capture", artefactExtents(change.artefact))].filter(isAny);
    case "file_stored":
      if (change.file.lengthBytes === 0) return [];
      return [named(change.runId, kindOf(change.file), [change.file])];
    default:
      return [];
  }
}

/** All stored bytes that a run names, by file, whether retention has removed them or not. */
export function extentsOfRun(run: RunState): NamedExtents[] {
  const stored: Record<CaptureKind, Extent[]> = { capture: [], report: [] };
  for (const frame of run.frames) stored.capture.push(...frame.batches);
  for (const series of run.series) stored.capture.push(...series.appends);
  stored.capture.push(...artefactExtentsOf(run));
  for (const file of run.files) if (file.lengthBytes > 0) stored[kindOf(file)].push(file);
  return (["capture", "report"] as const).map((kind) => named(run.id, kind, stored[kind])).filter(isAny);
}

function isAny({ extents }: NamedExtents): boolean {
  return extents.length > 0;
}

function kindOf({ storedIn }: Pick<StoredFile, "storedIn">): CaptureKind {
  return FILE_OF_KIND[storedIn ?? "reports"];
}

function named(runId: string, kind: CaptureKind, extents: readonly Extent[]): NamedExtents {
  return {
    path: capturePath(runId, kind),
    extents: extents.map(({ offset, lengthBytes, crc32 }) => ({ offset, lengthBytes, crc32 })),
  };
}
