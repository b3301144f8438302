import type { Extent } from "../../core/capture/capture.js";
import type { CaptureKind } from "../../storage/captures/capture-path.js";
import type { ExtentReader } from "../../storage/captures/capture-reader.js";
import type { StreamBody } from "../replies/reply.js";

/** Opens extents of one of the two stored files of a run. Rejects with `capture_missing` if the file does not exist. */
export type OpenStoredExtents = (runId: string, kind: CaptureKind, extents: readonly Extent[]) => Promise<ExtentReader>;

/** Calls `use` while these extents are on the disk, which a hub has to fetch first. A cell has them. */
export type UseStored = <T>(
  runId: string,
  kind: CaptureKind,
  extents: readonly Extent[],
  use: () => Promise<T>,
) => Promise<T>;

export interface StoredStreamOptions {
  /** The stored bytes, verified when read; closed on release. */
  extents: ExtentReader;
  /** Bytes before the stored ones; may be empty. */
  head: Uint8Array;
}

/** A body of a head followed by stored bytes. */
export function storedStream({ extents, head }: StoredStreamOptions): StreamBody {
  return {
    totalBytes: head.byteLength + extents.sizeBytes,
    async read(position, lengthBytes, _signal, into) {
      const headPart = head.subarray(position, position + lengthBytes);
      const storedPosition = Math.max(0, position - head.byteLength);
      const storedBytes = lengthBytes - headPart.byteLength;
      if (storedBytes === 0) return headPart;
      const stored = await extents.read(storedPosition, storedBytes, into);
      return headPart.byteLength === 0 ? stored : Buffer.concat([headPart, stored]);
    },
    release: () => extents.close(),
  };
}
