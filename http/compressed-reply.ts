import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { isStreamBody, JSON_CONTENT_TYPE, type Reply } from "./reply.js";

const gzipAsync = promisify(gzip);

/** Smaller answers fit in a packet or two: compressing them saves nothing that a client would notice. */
const LEAST_BYTES = 2 * 1024;

/** Of the zlib levels the one beyond which JSON hardly shrinks, but the time doubles. */
const LEVEL = 4;

/** Compressed forms of bytes that are answered again and again; they go when those go. */
const kept = new WeakMap<Uint8Array, Uint8Array>();

export function isCompressible({ body, contentType }: Reply): boolean {
  if (body === null || isStreamBody(body) || contentType === undefined) return false;
  return body.byteLength >= LEAST_BYTES && (contentType === JSON_CONTENT_TYPE || contentType.startsWith("text/"));
}

// A coding with its weight, 0 for "not acceptable" (RFC 9110, section 12.5.3).
const GZIP = /(?:^|,)[ \t]*(?:x-)?gzip[ \t]*(?:;[ \t]*q=(\d(?:\.\d{0,3})?)[ \t]*)?(?=,|$)/i;

export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  const match = GZIP.exec(acceptEncoding);
  return match !== null && Number(match[1] ?? 1) > 0;
}

/** The reply with its body compressed, beside the event loop. */
export async function compressedReply(reply: Reply): Promise<Reply> {
  const body = reply.body as Uint8Array;
  let compressed = kept.get(body);
  if (compressed === undefined) {
    compressed = await gzipAsync(body, { level: LEVEL });
    if (reply.isKept) kept.set(body, compressed);
  }
  return { ...reply, body: compressed, headers: [...(reply.headers ?? []), ["Content-Encoding", "gzip"]] };
}
