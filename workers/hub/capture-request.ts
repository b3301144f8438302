import type { CaptureKind } from "../../storage/captures/capture-path.js";

/** Bytes of one of a run's two files (capture-path.ts). */
export interface ByteRange {
  offset: number;
  lengthBytes: number;
}

/** Stored bytes of a run that somebody wants to read at a hub. */
export interface CaptureRequest {
  cell: string;
  storeId: string;
  runId: string;
  kind: CaptureKind;
  /** Each is an extent of the run's records, or begins and ends with one. */
  ranges: readonly ByteRange[];
  /** They were fetched again and do not match their CRCs: the answer only says whom to ask. */
  isDamaged?: boolean;
}

/** What the cache of captures has done since the start, for metrics. */
export interface CacheFigures {
  /** On the disk now. */
  bytes: number;
  files: number;
  fetchedChunks: number;
  fetchedBytes: number;
  evictedBytes: number;
}
