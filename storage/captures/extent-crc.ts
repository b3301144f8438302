import { crc32 } from "node:zlib";
import type { Extent } from "../../core/capture/capture.js";
import { readFully, type StoreFile } from "../disk/file-system.js";

/**
 * What the file holds of an extent, read into `piece` again and again: its CRC-32, and how many bytes there are, which is less than the
 * extent has where the file ends within it. One that is not longer than `piece` stands in it then.
 */
export async function readExtentCrc(
  file: Pick<StoreFile, "read">,
  { offset, lengthBytes }: Pick<Extent, "offset" | "lengthBytes">,
  piece: Uint8Array,
): Promise<{ crc: number; readBytes: number }> {
  let crc = 0;
  let readBytes = 0;
  while (readBytes < lengthBytes) {
    const part = piece.subarray(0, Math.min(piece.length, lengthBytes - readBytes));
    const count = await readFully(file, part, offset + readBytes);
    crc = crc32(part.subarray(0, count), crc);
    readBytes += count;
    if (count < part.length) break;
  }
  return { crc, readBytes };
}

/** Where a file ends of which a read at `offset` gave so many bytes and no more: of one that gave none, nothing but that it is not behind that. */
export function fileEndText(offset: number, readBytes: number): string {
  return readBytes > 0 ? `ends at ${offset + readBytes}` : `ends at ${offset} or before`;
}
