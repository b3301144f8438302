import { cloudOf, csvOf, pictureOf } from "../../core/capture/artefact.js";
import type { Extent, FrameState } from "../../core/capture/capture.js";
import { npyHeader } from "../../core/capture/npy-header.js";
import type { ManifestEntry } from "../../core/run/run-files.js";
import type { RunState } from "../../core/run/run-state.js";
import { type CaptureKind, FILE_OF_KIND } from "../../storage/captures/capture-path.js";
import type { ExtentReader } from "../../storage/captures/capture-reader.js";
import { heightExtents } from "../../workers/artefacts/frame/plane-crcs.js";
import { type HeaderLines, type StreamBody, storedValidators, type Validators } from "../replies/reply.js";
import type { GeneratedFiles } from "./generated-files.js";
import { type OpenStoredExtents, storedStream } from "./stored-stream.js";

/** Where the bytes of manifest entries come from. */
export interface EntrySources {
  open: OpenStoredExtents;
  generated: GeneratedFiles;
}

/** What a download needs to know of a file: an entry of the manifest, or one of the two files that a frame has besides. */
export interface DownloadEntry extends Pick<ManifestEntry, "name" | "sizeBytes" | "createdAtUs"> {
  source:
    | ManifestEntry["source"]
    | { kind: "frame"; frame: FrameState; format: "preview.png" }
    | { kind: "overview"; frame: FrameState; stride: number };
  /** Further headers of the answer. */
  headers?: HeaderLines;
}

/** How a file is sent that has not been removed. */
export interface EntryContent {
  /** They follow from the CRCs of stored bytes, which never change. */
  validators: Validators;
  /** @throws StorageError `capture_missing` if its file does not exist */
  open(): Promise<StreamBody>;
}

export function entryContent(run: RunState, entry: DownloadEntry, { open, generated }: EntrySources): EntryContent {
  const { source, createdAtUs } = entry;
  const validators = (crc32 = 0): Validators => storedValidators(crc32, entry.sizeBytes ?? 0, createdAtUs);
  const generatedValidators = (crc32?: number, variant = ""): Validators => {
    const { etag, modifiedAtUs } = validators(crc32);
    return { etag: etag.replace(/"$/, `${variant}-${ENCODING}"`), modifiedAtUs };
  };
  switch (source.kind) {
    case "stored": {
      const { file } = source;
      const kind = FILE_OF_KIND[file.storedIn ?? "reports"];
      return { validators: validators(file.crc32), open: () => body(run, kind, [file], NOTHING, open) };
    }
    case "series": {
      const { series } = source;
      return { validators: generatedValidators(csvOf(series)?.offsets.crc32), open: () => generated.csv(run, series) };
    }
    case "overview": {
      const { frame, stride } = source;
      return {
        // The length alone does not tell two strides of a small frame apart.
        validators: generatedValidators(frame.batches.at(-1)?.heightCrc32, `-${stride}`),
        open: async () => generated.overview(run, frame, stride),
      };
    }
    case "frame": {
      const { frame, format } = source;
      if (format === "npy") {
        const head = npyHeader(frame.planes.height.dtype, frame.lines, frame.width);
        return {
          validators: validators(frame.batches.at(-1)?.heightCrc32),
          // Heights are verified alone, so that damaged luminance does not affect them.
          open: () => body(run, "capture", heightExtents(frame), head, open),
        };
      }
      if (format === "ply" || format === "raw.ply") {
        const cloud = cloudOf(frame, format);
        return {
          validators: generatedValidators(cloud?.lineCounts.crc32),
          open: () => generated.cloud(run, frame, format),
        };
      }
      const file = format === "preview.png" ? pictureOf(frame, "png")?.preview : pictureOf(frame, format)?.file;
      if (file === undefined) throw new Error(`frame ${frame.id} has no ${format}`);
      return { validators: validators(file.crc32), open: () => body(run, "capture", [file], NOTHING, open) };
    }
  }
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
