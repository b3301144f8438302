import { cloudOf, csvOf, pictureOf } from "../../core/capture/artefact.js";
import type { Extent, FrameState } from "../../core/capture/capture.js";
import { npyHeader } from "../../core/capture/npy-header.js";
import type { ManifestEntry } from "../../core/run/run-files.js";
import type { RunState } from "../../core/run/run-state.js";
import { type CaptureKind, FILE_OF_KIND } from "../../storage/captures/capture-path.js";
import type { ExtentReader } from "../../storage/captures/capture-reader.js";
import { heightExtents } from "../../workers/artefacts/frame/plane-crcs.js";
import { type HeaderLines, type StreamBody, storedValidators, type Validators } from "../replies/reply.js";
import type { MadeFiles } from "./made-files.js";
import { type OpenStoredExtents, storedStream } from "./stored-stream.js";

/** Where the bytes of manifest entries come from. */
export interface EntrySources {
  open: OpenStoredExtents;
  made: MadeFiles;
}

/** What a download needs to know of a file: an entry of the manifest, or one of two that a frame has besides. */
export interface DownloadEntry extends Pick<ManifestEntry, "name" | "sizeBytes" | "createdAtUs"> {
  source:
    | ManifestEntry["source"]
    | { kind: "preview"; frame: FrameState }
    | { kind: "overview"; frame: FrameState; stride: number };
  /** Further headers of the answer. */
  headers?: HeaderLines;
}

/** The bytes of a file that has not been removed. @throws StorageError `capture_missing` if its file does not exist */
export async function entryBody(
  run: RunState,
  { source }: Pick<DownloadEntry, "source">,
  { open, made }: EntrySources,
): Promise<StreamBody> {
  switch (source.kind) {
    case "frame": {
      const { frame, format } = source;
      if (format === "npy") return npyBody(run, frame, open);
      if (format === "ply" || format === "raw.ply") return made.cloud(run, frame, format);
      const picture = pictureOf(frame, format);
      if (picture === undefined) throw new Error(`frame ${frame.id} has no ${format}`);
      return body(run, "capture", [picture.file], NOTHING, open);
    }
    case "preview": {
      const { frame } = source;
      const preview = pictureOf(frame, "png")?.preview;
      if (preview === undefined) throw new Error(`frame ${frame.id} has no preview`);
      return body(run, "capture", [preview], NOTHING, open);
    }
    case "overview":
      return made.overview(run, source.frame, source.stride);
    case "series":
      return made.csv(run, source.series);
    case "stored": {
      const { file } = source;
      return body(run, FILE_OF_KIND[file.storedIn ?? "reports"], [file], NOTHING, open);
    }
  }
}

/** The raw height plane of a frame as an NPY file of shape (lines, width), values untouched. */
function npyBody(run: RunState, frame: FrameState, open: OpenStoredExtents): Promise<StreamBody> {
  const head = npyHeader(frame.planes.height.dtype, frame.lines, frame.width);
  // Heights are verified alone, so that damaged luminance does not affect them.
  return body(run, "capture", heightExtents(frame), head, open);
}

async function body(
  run: RunState,
  kind: CaptureKind,
  extents: readonly Extent[],
  head: Uint8Array,
  open: OpenStoredExtents,
): Promise<StreamBody> {
  // A run without stored bytes has no file.
  const isEmpty = extents.every(({ lengthBytes }) => lengthBytes === 0);
  const reader = isEmpty ? NO_EXTENTS : await open(run.id, kind, extents);
  return storedStream({ extents: reader, head });
}

const NOTHING = new Uint8Array(0);
const NO_EXTENTS: ExtentReader = { sizeBytes: 0, read: async () => NOTHING, close: () => {} };

/**
 * Version of the encoders of what is made for each reader: PLY, CSV and overview. Raise it when they write other bytes for
 * the same data: a client must not join parts of two versions.
 */
const ENCODING = 2;

/** The validators of an entry's bytes. They follow from the CRCs of stored bytes, which never change. */
export function entryValidators({ source, sizeBytes, createdAtUs }: DownloadEntry): Validators {
  const bytes = sizeBytes ?? 0;
  switch (source.kind) {
    case "stored":
      return storedValidators(source.file.crc32, bytes, createdAtUs);
    case "series":
      return madeValidators(csvOf(source.series)?.offsets.crc32 ?? 0, bytes, createdAtUs);
    case "preview":
      return storedValidators(pictureOf(source.frame, "png")?.preview?.crc32 ?? 0, bytes, createdAtUs);
    case "overview":
      // The length alone does not tell two strides of a small frame apart.
      return madeValidators(source.frame.batches.at(-1)?.heightCrc32 ?? 0, bytes, createdAtUs, `-${source.stride}`);
    case "frame": {
      const { frame, format } = source;
      if (format === "ply" || format === "raw.ply") {
        return madeValidators(cloudOf(frame, format)?.lineCounts.crc32 ?? 0, bytes, createdAtUs);
      }
      const crc32 = format === "npy" ? frame.batches.at(-1)?.heightCrc32 : pictureOf(frame, format)?.file.crc32;
      return storedValidators(crc32 ?? 0, bytes, createdAtUs);
    }
  }
}

function madeValidators(crc32: number, sizeBytes: number, createdAtUs: number, variant = ""): Validators {
  const { etag, modifiedAtUs } = storedValidators(crc32, sizeBytes, createdAtUs);
  return { etag: etag.replace(/"$/, `${variant}-${ENCODING}"`), modifiedAtUs };
}
