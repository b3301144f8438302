import { artefactExtentsOf, cloudOf, csvOf, PROCESSED_FORMATS, pictureOf } from "../capture/artefact.js";
import { type Extent, type FrameState, itemBytes, type SeriesState } from "../capture/capture.js";
import { npyHeader } from "../capture/npy-header.js";
import { plyHeader, vertexBytes } from "../capture/ply-header.js";
import {
  type FileType,
  FORMAT_TYPES,
  type FrameFormat,
  frameFileName,
  type OfferedFormat,
  SWEEP_TYPE,
  sweepFileName,
} from "./manifest.js";
import type { RunState, StoredFile, StoredKind } from "./run-state.js";

/** One entry of a run's manifest, with the source of its bytes. */
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
  source:
    | { kind: "stored"; file: StoredFile }
    | { kind: "frame"; frame: FrameState; format: FrameFormat }
    | { kind: "series"; series: SeriesState };
}

/**
 * The run's file that gets the bytes of a file.put of this type. Retention goes by the manifest's type: files that a co-processor
 * made from the captures are removed with them, and only reports stay.
 */
export function storedKindOf(type: FileType): StoredKind {
  return type === "report" ? "reports" : "captures";
}

/** Offset in the run's file of that kind where the last extent named by its records ends; 0 when they name none. */
export function storedEnd(run: RunState, kind: StoredKind): number {
  let end = 0;
  const reach = (extent: Pick<Extent, "offset" | "lengthBytes">): void => {
    if (extent.offset + extent.lengthBytes > end) end = extent.offset + extent.lengthBytes;
  };
  for (const file of run.files) if ((file.storedIn ?? "reports") === kind) reach(file);
  if (kind === "captures") {
    for (const frame of run.frames) frame.batches.forEach(reach);
    for (const series of run.series) series.appends.forEach(reach);
    for (const extent of artefactExtentsOf(run)) reach(extent);
  }
  return end;
}

/** The run after retention removed its captured bytes at `timeUs`. Everything else stays, and updated_at moves. */
export function withoutCaptures(run: RunState, timeUs: number): RunState {
  return { ...run, capturesRemovedAtUs: timeUs, updatedAtUs: timeUs };
}

/** Formats that have been made of a frame; none before it is complete. Retention may have removed them since. */
export function formatsOf(frame: FrameState): FrameFormat[] {
  if (frame.status !== "complete") return [];
  const { png } = frame.artefacts ?? {};
  // The PNG is made from the same heights: if they were damaged then, the NPY cannot be served either. A missing file may come back, so it does
  // not count.
  const hasHeights = png?.kind !== "failed" || png.code !== "capture_damaged";
  const made = PROCESSED_FORMATS.filter((format) => (frame.artefacts?.[format]?.kind ?? "failed") !== "failed");
  return hasHeights ? ["npy", ...made] : made;
}

/** Formats that a frame of the run offers for download now. A frame that has a height map has a preview. */
export function availableFormats(run: RunState, frame: FrameState): OfferedFormat[] {
  const formats = run.capturesRemovedAtUs === null ? formatsOf(frame) : [];
  return formats.includes("png") ? [...formats, "preview.png"] : formats;
}

/** Size of a format's file; null for one that has not been made. */
export function formatBytes(frame: FrameState, format: OfferedFormat): number | null {
  switch (format) {
    case "npy": {
      const { dtype } = frame.planes.height;
      return npyHeader(dtype, frame.lines, frame.width).length + frame.lines * frame.width * itemBytes(dtype);
    }
    case "png":
    case "luminance.png":
      return pictureOf(frame, format)?.file.lengthBytes ?? null;
    case "preview.png":
      return pictureOf(frame, "png")?.preview?.lengthBytes ?? null;
    case "raw.ply":
    case "ply": {
      const cloud = cloudOf(frame, format);
      if (cloud === undefined) return null;
      const head = plyHeader(frame, cloud.points, cloud.mask !== null);
      return head.length + cloud.points * vertexBytes(frame.planes);
    }
  }
}

/** When the format was made. */
export function formatCreatedAtUs(frame: FrameState, format: OfferedFormat): number {
  const made = format === "preview.png" ? "png" : format;
  const createdAtUs = made === "npy" ? frame.completedAtUs : frame.artefacts?.[made]?.atUs;
  return createdAtUs ?? 0;
}

/** The run's manifest, oldest entry first. Entries whose bytes retention removed stay listed. */
export function manifestOf(run: RunState): ManifestEntry[] {
  const entries: ManifestEntry[] = run.files.map((file) => ({
    ...lifeOf(run, file.createdAtUs, file.storedIn === "captures"),
    name: file.name,
    type: file.type,
    contentType: file.contentType,
    sizeBytes: file.lengthBytes,
    description: file.description,
    stepIndex: file.stepIndex,
    frameId: file.frameId,
    source: { kind: "stored", file },
  }));
  for (const frame of run.frames) {
    for (const format of formatsOf(frame)) {
      entries.push({
        ...lifeOf(run, formatCreatedAtUs(frame, format), true),
        name: frameFileName(frame.id, format),
        ...FORMAT_TYPES[format],
        sizeBytes: formatBytes(frame, format),
        description: null,
        stepIndex: frame.stepIndex,
        frameId: frame.id,
        source: { kind: "frame", frame, format },
      });
    }
  }
  for (const series of run.series) {
    const csv = csvOf(series);
    if (csv === undefined) continue;
    entries.push({
      ...lifeOf(run, csv.atUs, true),
      name: sweepFileName(series.stepIndex),
      ...SWEEP_TYPE,
      sizeBytes: csv.totalBytes,
      description: null,
      stepIndex: series.stepIndex,
      frameId: null,
      source: { kind: "series", series },
    });
  }
  return entries.sort((a, b) => a.createdAtUs - b.createdAtUs);
}

function lifeOf(run: RunState, createdAtUs: number, isCaptured: boolean) {
  const deletedAtUs = isCaptured ? run.capturesRemovedAtUs : null;
  return { createdAtUs, updatedAtUs: deletedAtUs ?? createdAtUs, deletedAtUs };
}
