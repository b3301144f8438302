import { crc32 } from "node:zlib";
import type { FileSystem, StoreFile } from "../disk/file-system-interface.js";
import { readFully, TEMPORARY_SUFFIX, withFile, writeFully } from "../disk/whole-files.js";
import { forEachRecord } from "../log/committed-batch.js";
import { encodeHint, hintName } from "../log/hint-format.js";
import type { SealedSegment } from "../log/log-options.js";
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES, segmentName } from "../log/segment.js";
import { HintChoice } from "./hint-choice.js";
import { scanSegment } from "./segment-scan.js";

/** Bytes that are read and verified in one go. After them, others who need the thread or the disk get a turn. */
const CHUNK_BYTES = 256 * 1024;

export interface MakeHintOptions extends SealedSegment {
  fileSystem: FileSystem;
  /** Folder of the segments. */
  directory: string;
  /** Awaited between two chunks. If it rejects, the work ends with that error. */
  giveWay?(): Promise<void>;
}

/**
 * Makes the bytes of a sealed segment's hint file. Every byte of the segment is verified. A damaged segment gets no
 * hint, so that each start reads it whole and reports its damage.
 *
 * @throws FileSystemError; StorageError `format_unsupported`, `record_type_unsupported`; RecordDecodeError; what `giveWay` rejects with
 */
export function makeHint(options: MakeHintOptions): Promise<{ bytes: Uint8Array } | { reason: string }> {
  const { fileSystem, directory, base } = options;
  return withFile(fileSystem, `${directory}/${segmentName(base)}`, (file) => readForHint(options, file));
}

async function readForHint(
  { base, nextBase, giveWay }: MakeHintOptions,
  file: StoreFile,
): Promise<{ bytes: Uint8Array } | { reason: string }> {
  const segmentBytes = await file.size();
  const headerBytes = new Uint8Array(SEGMENT_HEADER_BYTES);
  await readFully(file, headerBytes, 0);
  const { header, damagedCopy } = decodeSegmentHeader(headerBytes);
  if (header === null || damagedCopy !== null || header.base !== base) return { reason: "its header is damaged" };
  const { salt } = header;
  const choice = new HintChoice();
  let segmentCrc = crc32(headerBytes);
  let expected = base;
  const name = segmentName(base);
  const scan = { file, name, base, salt, endSequence: nextBase, sizeBytes: segmentBytes };
  for await (const item of scanSegment({ ...scan, chunkBytes: CHUNK_BYTES })) {
    if (item.kind === "damage") return { reason: `offset ${item.offset}: ${item.reason}` };
    if (item.kind === "superseded") return { reason: `offset ${item.offset}: records of the next segment` };
    if (item.kind === "opening" ? expected !== base : item.firstSequence !== expected)
      return { reason: `offset ${item.offset}: not record ${expected}` };
    segmentCrc = crc32(item.bytes, segmentCrc);
    const { bytes, offset } = item;
    forEachRecord({ bytes, offset, segmentBase: base }, (record, location) => choice.take(record, location));
    if (item.kind === "records") expected = item.lastSequence + 1;
    await giveWay?.();
  }
  if (expected !== nextBase) return { reason: `it ends at ${expected - 1}, and the next one begins at ${nextBase}` };
  if (!choice.hasOpeningState) return { reason: "it has no opening state" };
  const segment = { base, salt, lastSequence: nextBase - 1, segmentBytes, segmentCrc };
  return { bytes: encodeHint(segment, choice.entries()) };
}

/**
 * Writes a hint file: temporary file, fdatasync, rename, then `syncNames`, which makes the name durable. The log gives
 * `syncNames`, because a failed sync of its folder ends the log.
 *
 * @throws FileSystemError; then the file is as it was, or absent
 */
export async function writeHint(
  fileSystem: FileSystem,
  directory: string,
  base: number,
  bytes: Uint8Array,
  syncNames: () => Promise<void>,
): Promise<void> {
  const path = `${directory}/${hintName(base)}`;
  const temporary = `${path}${TEMPORARY_SUFFIX}`;
  try {
    const file = await fileSystem.open(temporary, "createOrUpdate");
    try {
      await file.truncate(0);
      await writeFully(file, bytes, 0, temporary);
      await file.datasync();
    } finally {
      await file.close();
    }
    await fileSystem.rename(temporary, path);
  } catch (error) {
    // A file that cannot be removed now goes at the next start.
    await fileSystem.unlink(temporary).catch(() => {});
    throw error;
  }
  await syncNames();
}
