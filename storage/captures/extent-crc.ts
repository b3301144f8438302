import { crc32 } from "node:zlib";
import type { Extent } from "../../core/capture/capture.js";
import type { StoreFile } from "../disk/file-system-interface.js";
import { readFully } from "../disk/whole-files.js";

/**
 * Reads an extent chunk by chunk into `chunk`. Returns the CRC-32 and the count of the bytes that the file has of it. The count is below the extent's
 * length if the file ends too early. If the extent is not longer than `chunk`, the chunk holds it afterwards.
 */
export async function readExtentCrc(
  file: Pick<StoreFile, "read">,
  { offset, lengthBytes }: Pick<Extent, "offset" | "lengthBytes">,
  chunk: Uint8Array,
): Promise<{ crc: number; readBytes: number }> {
  let crc = 0;
  let readBytes = 0;
  while (readBytes < lengthBytes) {
    const part = chunk.subarray(0, Math.min(chunk.length, lengthBytes - readBytes));
    const count = await readFully(file, part, offset + readBytes);
    crc = crc32(part.subarray(0, count), crc);
    readBytes += count;
    if (count < part.length) break;
  }
  return { crc, readBytes };
}

/** Says where a file ends, after a read at `offset` gave `readBytes` bytes and no more. If it gave none, the file may end before `offset`. */
export function fileEndText(offset: number, readBytes: number): string {
  return readBytes > 0 ? `ends at ${offset + readBytes}` : `ends at ${offset} or before`;
}
