import type { RunFile } from "../answers.js";

type FrameFile = Pick<RunFile, "type" | "frame_id" | "step_index" | "deleted_at">;

/** Ids of the frames that a step of a run took, oldest first: ids sort by time. */
function framesOfStep(files: readonly FrameFile[], stepIndex: number): string[] {
  const ids = files.flatMap(({ type, frame_id: id, step_index: step }) =>
    type === "array" && step === stepIndex && id ? [id] : [],
  );
  return [...new Set(ids)].sort();
}

/**
 * The frame of another run of the program that was taken where this one was: by the same step, and as the same one of its frames.
 * Undefined if that run has none, or if retention removed it.
 */
export function sameStepFrame(
  frame: { id: string; step_index: number },
  files: readonly FrameFile[],
  otherFiles: readonly FrameFile[],
): string | undefined {
  const nth = Math.max(0, framesOfStep(files, frame.step_index).indexOf(frame.id));
  const id = framesOfStep(otherFiles, frame.step_index)[nth];
  const isRemoved = otherFiles.some((file) => file.frame_id === id && Boolean(file.deleted_at));
  return isRemoved ? undefined : id;
}
