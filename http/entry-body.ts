import { csvOf, pictureOf } from "../core/artefact.js";
import { type FrameState, lineBytes } from "../core/capture.js";
import type { FrameFormat } from "../core/manifest.js";
import { npyHeader } from "../core/npy-header.js";
import type { ManifestEntry } from "../core/run-files.js";
import type { RunState } from "../core/run-state.js";
import { type CaptureKind, FILE_OF_KIND } from "../storage/capture-path.js";
import type { Slice, SliceReader } from "../storage/capture-reader.js";
import { type StreamBody, storedValidators, type Validators } from "./reply.js";
import { storedStream } from "./stored-stream.js";

/** Opens parts of what the store keeps of a run, of one of its two files. Rejects with `capture_missing` when the file is not there. */
export type OpenStoredSlices = (runId: string, kind: CaptureKind, slices: readonly Slice[]) => Promise<SliceReader>;

/** The bytes of a manifest entry; it has not been removed. */
export function entryBody(run: RunState, { source }: ManifestEntry, open: OpenStoredSlices): Promise<StreamBody> {
  if (source.kind === "frame") return frameBody(run, source.frame, source.format, open);
  if (source.kind === "series") return Promise.reject(new Error("the pool makes it"));
  const { offset, lengthBytes, crc32, storedIn = "reports" } = source.file;
  return body(run, FILE_OF_KIND[storedIn], [{ offset, lengthBytes }], NOTHING, open, crc32);
}

function frameBody(run: RunState, frame: FrameState, format: FrameFormat, open: OpenStoredSlices): Promise<StreamBody> {
  switch (format) {
    case "npy":
      return npyBody(run, frame, open);
    case "png":
    case "luminance.png": {
      const picture = pictureOf(frame, format);
      if (picture === undefined) throw new Error(`frame ${frame.id} has no ${format}`);
      return body(run, "capture", [picture.file], NOTHING, open, picture.file.crc32);
    }
    default:
      return Promise.reject(new Error("the pool makes it"));
  }
}

/** The raw height plane of a frame as an NPY file of shape (lines, width), values untouched. */
export function npyBody(run: RunState, frame: FrameState, open: OpenStoredSlices): Promise<StreamBody> {
  const heightLineBytes = lineBytes(frame.planes, frame.width).height;
  const slices = frame.batches.map(({ offset, lineCount }) => ({ offset, lengthBytes: lineCount * heightLineBytes }));
  const head = npyHeader(frame.planes.height.dtype, frame.lines, frame.width);
  return body(run, "capture", slices, head, open, frame.batches.at(-1)?.heightCrc32 ?? 0);
}

async function body(
  run: RunState,
  kind: CaptureKind,
  slices: readonly Slice[],
  head: Uint8Array,
  open: OpenStoredSlices,
  crc32: number,
): Promise<StreamBody> {
  // A run of which no byte was stored has no file.
  const isEmpty = slices.every(({ lengthBytes }) => lengthBytes === 0);
  const reader = isEmpty ? NO_SLICES : await open(run.id, kind, slices);
  return storedStream({ slices: reader, head, crc32 });
}

const NOTHING = new Uint8Array(0);
const NO_SLICES: SliceReader = { sizeBytes: 0, read: async () => NOTHING, close: () => {} };

/** What tells the version of an entry's bytes: they never change at their place. */
export function entryValidators({ source, sizeBytes, createdAtUs }: ManifestEntry): Validators {
  return storedValidators(crc32Of(source), sizeBytes ?? 0, createdAtUs);
}

/** Of what is stored of it. */
function crc32Of(source: ManifestEntry["source"]): number {
  switch (source.kind) {
    case "stored":
      return source.file.crc32;
    case "series":
      return csvOf(source.series)?.offsets.crc32 ?? 0;
    case "frame": {
      const { frame, format } = source;
      if (format === "png" || format === "luminance.png") return pictureOf(frame, format)?.file.crc32 ?? 0;
      return frame.batches.at(-1)?.heightCrc32 ?? 0;
    }
  }
}
