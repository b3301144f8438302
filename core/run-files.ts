import { type Extent, type FrameState, itemBytes } from "./capture.js";
import { type FileType, FORMAT_TYPES, type FrameFormat, frameFileName } from "./manifest.js";
import { npyHeader } from "./npy-header.js";
import type { RunState, StoredFile, StoredKind } from "./run-state.js";

/** One entry of a run's manifest, and where its bytes come from. */
export interface ManifestEntry {
  name: string;
  type: FileType;
  contentType: string;
  sizeBytes: number | null;
  description: string | null;
  stepIndex: number | null;
  frameId: string | null;
  createdAtUs: number;
  updatedAtUs: number;
  /** When retention removed the bytes; null while they are there. */
  deletedAtUs: number | null;
  source: { kind: "stored"; file: StoredFile } | { kind: "frame"; frame: FrameState; format: FrameFormat };
}

/**
 * Where the bytes of a file.put of this type go. Retention goes by the manifest's type (decisions.md): what a co-processor made from the
 * captures is removed with them, and only reports stay.
 */
export function storedKindOf(type: FileType): StoredKind {
  return type === "report" ? "reports" : "captures";
}

/** Where in the run's file of that kind the bytes end that its records name; 0 when they name none. */
export function storedEnd(run: RunState, kind: StoredKind): number {
  let end = 0;
  const reach = (extent: Pick<Extent, "offset" | "lengthBytes">): void => {
    if (extent.offset + extent.lengthBytes > end) end = extent.offset + extent.lengthBytes;
  };
  for (const file of run.files) if ((file.storedIn ?? "reports") === kind) reach(file);
  if (kind === "captures") {
    for (const frame of run.frames) frame.batches.forEach(reach);
    for (const series of run.series) series.appends.forEach(reach);
  }
  return end;
}

/** The run once retention has removed its captured bytes at `timeUs`: every record stays, updated_at moves with the files. */
export function withoutCaptures(run: RunState, timeUs: number): RunState {
  return { ...run, capturesRemovedAtUs: timeUs, updatedAtUs: timeUs };
}

/** Formats that a frame has had: none before it is whole. Retention may have removed them since. */
export function formatsOf(frame: FrameState): FrameFormat[] {
  return frame.status === "complete" ? ["npy"] : [];
}

/** Formats that a frame of the run offers for download now. */
export function availableFormats(run: RunState, frame: FrameState): FrameFormat[] {
  return run.capturesRemovedAtUs === null ? formatsOf(frame) : [];
}

/** Size of a format's file. */
export function formatBytes(frame: FrameState, format: FrameFormat): number | null {
  if (format !== "npy") return null;
  const { dtype } = frame.planes.height;
  return npyHeader(dtype, frame.lines, frame.width).length + frame.lines * frame.width * itemBytes(dtype);
}

/** The run's manifest, oldest entry first; entries whose bytes retention removed stay listed. */
export function manifestOf(run: RunState): ManifestEntry[] {
  const entries: ManifestEntry[] = run.files.map((file) => {
    const deletedAtUs = file.storedIn === "captures" ? run.capturesRemovedAtUs : null;
    return {
      name: file.name,
      type: file.type,
      contentType: file.contentType,
      sizeBytes: file.lengthBytes,
      description: file.description,
      stepIndex: file.stepIndex,
      frameId: file.frameId,
      createdAtUs: file.createdAtUs,
      updatedAtUs: deletedAtUs ?? file.createdAtUs,
      deletedAtUs,
      source: { kind: "stored", file },
    };
  });
  for (const frame of run.frames) {
    for (const format of formatsOf(frame)) {
      const createdAtUs = frame.completedAtUs ?? run.createdAtUs;
      entries.push({
        name: frameFileName(frame.id, format),
        ...FORMAT_TYPES[format],
        sizeBytes: formatBytes(frame, format),
        description: null,
        stepIndex: frame.stepIndex,
        frameId: frame.id,
        createdAtUs,
        updatedAtUs: run.capturesRemovedAtUs ?? createdAtUs,
        deletedAtUs: run.capturesRemovedAtUs,
        source: { kind: "frame", frame, format },
      });
    }
  }
  return entries.sort((a, b) => a.createdAtUs - b.createdAtUs);
}
