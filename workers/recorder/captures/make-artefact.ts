import type { ArtefactSubject } from "../../../core/capture/artefact.js";
import type { Extent, ProcessedFormat, StoredArtefact } from "../../../core/capture/capture.js";
import type { RunState } from "../../../core/run/run-state.js";
import { frameSource } from "../../artefacts/frame/frame-source.js";
import type { TaskErrorData } from "../../artefacts/pool/task-failures.js";
import type { ArtefactMaker } from "./artefact-maker.js";

/**
 * The result of making an artefact. `made`: the bytes to store, and a function that gives the artefact once the extents of these bytes
 * are known. `failed`: why there is none.
 */
export type MadeArtefact =
  | {
      kind: "made";
      of: ArtefactSubject;
      parts: readonly Uint8Array[];
      placed(extents: readonly Extent[]): StoredArtefact;
    }
  | { kind: "failed"; of: ArtefactSubject; code: string; message: string };

type Parts = Omit<Extract<MadeArtefact, { kind: "made" }>, "kind" | "of">;

/** Has one artefact of the run made from the bytes in the capture file at `path`. */
export async function makeArtefact(
  maker: ArtefactMaker,
  run: RunState,
  of: ArtefactSubject,
  path: string,
): Promise<MadeArtefact> {
  const made =
    "stepIndex" in of
      ? await makeCsv(maker, run, of.stepIndex, path)
      : await makeFormat(maker, run, of.frameId, of.format, path);
  return "error" in made ? { kind: "failed", of, ...made.error } : { kind: "made", of, ...made };
}

async function makeFormat(
  maker: ArtefactMaker,
  run: RunState,
  frameId: string,
  format: ProcessedFormat,
  path: string,
): Promise<Parts | { error: TaskErrorData }> {
  const frame = run.frames.find(({ id }) => id === frameId);
  if (frame === undefined) throw new Error(`run ${run.id} has no frame ${frameId}`);
  const source = frameSource(frame, path);
  switch (format) {
    case "png": {
      // Both are asked for together. The filter may take minutes, and would come before a preview that is asked for
      // later.
      const [answer, preview] = await Promise.all([maker.make("heightMap", source), maker.make("preview", source)]);
      if ("error" in answer) return answer;
      if ("error" in preview) return preview;
      return {
        parts: [answer.value, preview.value],
        placed: ([file, preview]) => ({ kind: "picture", file: file as Extent, preview: preview as Extent }),
      };
    }
    case "luminance.png": {
      const answer = await maker.make("luminance", source);
      if ("error" in answer) return answer;
      return { parts: [answer.value], placed: ([file]) => ({ kind: "picture", file: file as Extent }) };
    }
    case "raw.ply": {
      if (frame.lines === 0) return cloud(new Uint32Array(0), null);
      const answer = await maker.make("countPoints", source);
      return "error" in answer ? answer : cloud(answer.value, null);
    }
    case "ply": {
      if (frame.lines === 0) return cloud(new Uint32Array(0), new Uint8Array(0));
      const answer = await maker.make("filter", source);
      return "error" in answer ? answer : cloud(answer.value.lineCounts, answer.value.bits);
    }
  }
}

function cloud(lineCounts: Uint32Array, bits: Uint8Array | null): Parts {
  const points = lineCounts.reduce((sum, count) => sum + count, 0);
  const counts = bytesOf(lineCounts);
  return {
    parts: bits === null ? [counts] : [counts, bits],
    placed: ([lineExtent, mask]) => ({ kind: "cloud", points, lineCounts: lineExtent as Extent, mask: mask ?? null }),
  };
}

async function makeCsv(
  maker: ArtefactMaker,
  run: RunState,
  stepIndex: number,
  path: string,
): Promise<Parts | { error: TaskErrorData }> {
  const series = run.series.find((one) => one.stepIndex === stepIndex);
  if (series === undefined) throw new Error(`run ${run.id} has no series of step ${stepIndex}`);
  const answer = await maker.make("indexSeries", { path, channels: series.channels, appends: series.appends });
  if ("error" in answer) return answer;
  const { totalBytes, offsets } = answer.value;
  return { parts: [bytesOf(offsets)], placed: ([extent]) => ({ kind: "csv", totalBytes, offsets: extent as Extent }) };
}

/** The bytes in the order of memory. It is little-endian on every platform that Node supports. */
function bytesOf(values: Uint32Array | Float64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
