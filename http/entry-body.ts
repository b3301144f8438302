import { type FrameState, lineBytes } from "../core/capture.js";
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
  if (source.kind === "frame") return npyBody(run, source.frame, open);
  const { offset, lengthBytes, crc32, storedIn = "reports" } = source.file;
  return body(run, FILE_OF_KIND[storedIn], [{ offset, lengthBytes }], NOTHING, open, crc32);
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
  const crc32 = source.kind === "frame" ? (source.frame.batches.at(-1)?.heightCrc32 ?? 0) : source.file.crc32;
  return storedValidators(crc32, sizeBytes ?? 0, createdAtUs);
}
