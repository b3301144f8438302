import { writeFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import { itemBytes, type LineBatch } from "../../../core/capture/capture.js";
import type { FrameSource } from "../../../workers/artefacts/frame/frame-source.js";
import type { MadeFrame } from "./made-frames.js";

const BATCH_LINES = 50;

/** Writes a frame to a file as the recorder stores it, batch by batch, after some other bytes. */
export function storedFrame<F extends MadeFrame>(path: string, frame: F): { source: FrameSource; frame: F } {
  const { planes, geometry } = frame;
  const { width, lines } = geometry;
  const before = Buffer.from("something before");
  const parts: Uint8Array[] = [before];
  const batches: LineBatch[] = [];
  const heightBytes = width * itemBytes(planes.height.dtype);
  const luminanceBytes = planes.luminance === undefined ? 0 : width * itemBytes(planes.luminance.dtype);
  const luminance = frame.luminance ?? new Uint8Array(0);
  let heightCrc32 = 0;
  let offset = before.length;
  for (let line = 0; line < lines; line += BATCH_LINES) {
    const lineCount = Math.min(BATCH_LINES, lines - line);
    const heights = frame.height.subarray(line * heightBytes, (line + lineCount) * heightBytes);
    const lights = luminance.subarray(line * luminanceBytes, (line + lineCount) * luminanceBytes);
    const bytes = Buffer.concat([heights, lights]);
    heightCrc32 = crc32(heights, heightCrc32);
    batches.push({ offset, lengthBytes: bytes.length, crc32: crc32(bytes), lineCount, heightCrc32 });
    parts.push(bytes);
    offset += bytes.length;
  }
  writeFileSync(path, Buffer.concat(parts));
  return { frame, source: { path, frameId: "01932f3a-7c2b-7a10-8000-000000000001", geometry, planes, batches } };
}
