import { crc32 } from "node:zlib";
import type { CaptureKind } from "../storage/capture-path.js";
import type { Slice, SliceReader } from "../storage/capture-reader.js";
import type { StreamBody } from "./reply.js";

/** Opens parts of what the store keeps of a run, of one of its two files. Rejects with `capture_missing` when the file is not there. */
export type OpenStoredSlices = (runId: string, kind: CaptureKind, slices: readonly Slice[]) => Promise<SliceReader>;

export interface StoredStreamOptions {
  /** The stored bytes; closed on release. */
  slices: SliceReader;
  /** Bytes before the stored ones; may be empty. */
  head: Uint8Array;
  /** CRC-32 of all the stored bytes, where it is known: a client that reads from start to end gets the right bytes or not all. */
  crc32?: number;
}

/** A body of a head and stored bytes, read where the client asks. */
export function storedStream({ slices, head, crc32: wantedCrc }: StoredStreamOptions): StreamBody {
  const totalBytes = head.byteLength + slices.sizeBytes;
  let crc = 0;
  /** How far the CRC has come, if every read so far began where the last one ended. */
  let checkedBytes = 0;

  const check = (stored: Uint8Array, position: number): void => {
    if (wantedCrc === undefined || position !== checkedBytes) return;
    crc = crc32(stored, crc);
    checkedBytes += stored.byteLength;
    if (checkedBytes === slices.sizeBytes && crc !== wantedCrc) {
      throw new Error(`stored bytes are damaged: their CRC-32 is ${crc}, not ${wantedCrc}`);
    }
  };

  return {
    totalBytes,
    async read(position, lengthBytes) {
      const headPart = head.subarray(position, position + lengthBytes);
      const storedPosition = Math.max(0, position - head.byteLength);
      const storedBytes = lengthBytes - headPart.byteLength;
      if (storedBytes === 0) return headPart;
      const stored = await slices.read(storedPosition, storedBytes);
      check(stored, storedPosition);
      return headPart.byteLength === 0 ? stored : Buffer.concat([headPart, stored]);
    },
    release: () => slices.close(),
  };
}
