import { crc32 } from "node:zlib";
import type { Extent } from "../core/capture.js";
import { readFully, type StoreFile } from "./file-system.js";

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
