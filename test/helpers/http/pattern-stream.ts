import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { downloadReply, type StreamBody } from "../../../http/replies/reply.js";

export const download = (body: StreamBody) => downloadReply(body, "application/octet-stream", "pattern.bin");

export const GET = (path: string, headers = "") => `GET ${path} HTTP/1.1\r\nHost: cell:8000\r\n${headers}\r\n`;

export function patternByte(position: number): number {
  return (position * 31 + (position >> 8) * 7) & 0xff;
}

/** Bytes of `patternByte`, each read a turn later, and what became of them. */
export function patternStream(totalBytes: number) {
  const seen = { reads: 0, handedOutBytes: 0, released: 0, releasedWhileReading: false, reading: 0 };
  const body = {
    totalBytes,
    async read(position: number, lengthBytes: number) {
      seen.reads++;
      seen.reading++;
      await eventLoopTurn();
      seen.reading--;
      seen.handedOutBytes += lengthBytes;
      const bytes = new Uint8Array(lengthBytes);
      for (let i = 0; i < lengthBytes; i++) bytes[i] = patternByte(position + i);
      return bytes;
    },
    release() {
      seen.released++;
      seen.releasedWhileReading = seen.reading > 0;
    },
  };
  return { body, seen };
}
