/**
 * What processing makes of captures: the formats of a frame beside its NPY, and the CSV of a step's series. Only what is expensive to make and small
 * to keep is stored. It is in the run's capture file, after the captures. PLY and CSV are built from it for each download.
 */

import { frameFileName, sweepFileName } from "../run/manifest.js";
import type { RunState } from "../run/run-state.js";
import type {
  CloudArtefact,
  CsvArtefact,
  Extent,
  FailedArtefact,
  FrameState,
  PictureArtefact,
  ProcessedFormat,
  Recorded,
  SeriesState,
  StoredArtefact,
} from "./capture.js";

/** In the order in which they are made. */
export const PROCESSED_FORMATS = [
  "raw.ply",
  "png",
  "luminance.png",
  "ply",
] as const satisfies readonly ProcessedFormat[];

/** Names one artefact: a format of a frame, or the CSV of a step's series. */
export type ArtefactSubject = { frameId: string; format: ProcessedFormat } | { stepIndex: number };

/** The artefact's file name in the run's manifest. */
export function artefactFileName(of: ArtefactSubject): string {
  return "stepIndex" in of ? sweepFileName(of.stepIndex) : frameFileName(of.frameId, of.format);
}

/** Longest failure message that is kept. The run's document holds it twice, for each format of each frame. */
const FAILURE_CHARACTERS = 160;
const FIRST_CHARACTERS = 40;

/** Shortens a failure message in its middle: the place, which can be long, comes first, and the reason comes last. */
export function failureMessage(message: string): string {
  if (message.length <= FAILURE_CHARACTERS) return message.toWellFormed();
  const end = message.slice(FIRST_CHARACTERS + 1 - FAILURE_CHARACTERS);
  return `${message.slice(0, FIRST_CHARACTERS)}…${end}`.toWellFormed();
}

/** The stored extents of an artefact. Extents without bytes are left out. */
export function artefactExtents(artefact: StoredArtefact | FailedArtefact): Extent[] {
  // A frame without lines has empty extents.
  return namedExtents(artefact).filter(({ lengthBytes }) => lengthBytes > 0);
}

function namedExtents(artefact: StoredArtefact | FailedArtefact): Extent[] {
  switch (artefact.kind) {
    case "cloud":
      return artefact.mask === null ? [artefact.lineCounts] : [artefact.mask, artefact.lineCounts];
    case "picture":
      return artefact.preview === undefined ? [artefact.file] : [artefact.file, artefact.preview];
    case "csv":
      return [artefact.offsets];
    case "failed":
      return [];
  }
}

/** The stored extents of every artefact of the run. */
export function* artefactExtentsOf({ frames, series }: Pick<RunState, "frames" | "series">): Generator<Extent, void> {
  for (const { artefacts = {} } of frames) for (const made of Object.values(artefacts)) yield* artefactExtents(made);
  for (const { csv } of series) if (csv !== undefined) yield* artefactExtents(csv);
}

/** Undefined when the format has not been made, or could not be. */
export function cloudOf(frame: FrameState, format: "raw.ply" | "ply"): Recorded<CloudArtefact> | undefined {
  const made = frame.artefacts?.[format];
  return made?.kind === "cloud" ? made : undefined;
}

/** Undefined when the format has not been made, or could not be. */
export function pictureOf(frame: FrameState, format: "png" | "luminance.png"): Recorded<PictureArtefact> | undefined {
  const made = frame.artefacts?.[format];
  return made?.kind === "picture" ? made : undefined;
}

/** Undefined when the CSV's index has not been made, or could not be. */
export function csvOf({ csv }: SeriesState): Recorded<CsvArtefact> | undefined {
  return csv?.kind === "csv" ? csv : undefined;
}

/** Formats that processing makes of a complete frame. A frame without luminance has no luminance picture. One without lines has no picture at all. */
export function processedFormats({ planes, lines }: Pick<FrameState, "planes" | "lines">): ProcessedFormat[] {
  return PROCESSED_FORMATS.filter((format) => {
    if (format === "png") return lines > 0;
    return format !== "luminance.png" || (lines > 0 && planes.luminance !== undefined);
  });
}

/** Formats that are still to be made of a frame. Empty until the frame is complete. */
export function openFormats(frame: FrameState): ProcessedFormat[] {
  if (frame.status !== "complete") return [];
  return processedFormats(frame).filter((format) => frame.artefacts?.[format] === undefined);
}

/** False when the format can never appear: no frame has it, making it failed, or retention removed the captures. */
export function canFormatCome(run: Pick<RunState, "capturesRemovedAtUs">, frame: FrameState, format: string): boolean {
  if (run.capturesRemovedAtUs !== null || frame.status === "incomplete") return false;
  if (frame.status === "complete") return openFormats(frame).some((open) => open === format);
  // An open frame may still get lines.
  return format === "npy" || processedFormats({ ...frame, lines: 1 }).some((later) => later === format);
}

/** False when the step's CSV can never appear. Rows are accepted until the step or its run has ended. */
export function canCsvCome(
  { status, steps, series, capturesRemovedAtUs }: Pick<RunState, "status" | "steps" | "series" | "capturesRemovedAtUs">,
  stepIndex: number,
): boolean {
  const own = series.find((one) => one.stepIndex === stepIndex);
  if (own !== undefined) return capturesRemovedAtUs === null && own.csv === undefined;
  const step = steps[stepIndex - 1]?.status;
  return (step === "pending" || step === "running") && (status === "pending" || status === "running");
}

/** True when the series is complete and its CSV is still to be made. */
export function isCsvOpen({ completedAtUs, csv }: SeriesState): boolean {
  return completedAtUs !== null && csv === undefined;
}

/** True when some artefact of the run is still to be made. */
export function isProcessingOpen(run: Pick<RunState, "frames" | "series" | "capturesRemovedAtUs">): boolean {
  if (run.capturesRemovedAtUs !== null) return false;
  return run.frames.some((frame) => openFormats(frame).length > 0) || run.series.some(isCsvOpen);
}

/** The artefacts of the run that are still to be made, frame by frame. */
export function openArtefacts(run: Pick<RunState, "frames" | "series" | "capturesRemovedAtUs">): ArtefactSubject[] {
  if (run.capturesRemovedAtUs !== null) return [];
  return [
    ...run.frames.flatMap((frame) => openFormats(frame).map((format) => ({ frameId: frame.id, format }))),
    ...run.series.filter(isCsvOpen).map(({ stepIndex }) => ({ stepIndex })),
  ];
}
