import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { isStreamBody, JSON_CONTENT_TYPE, type Reply } from "./reply.js";

const gzipAsync = promisify(gzip);

/** Smaller answers fit in a packet or two: compressing them saves nothing that a client would notice. */
const LEAST_BYTES = 2 * 1024;

/** Of the zlib levels the one beyond which JSON hardly shrinks, but the time doubles. */
const LEVEL = 4;

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

/** The reply with its body compressed: at once when it is kept and was compressed before, else beside the event loop. */
export function compressedReply(reply: Reply): Reply | Promise<Reply> {
  return reply.compressed ?? compress(reply);
}

async function compress(reply: Reply): Promise<Reply> {
  const body = await gzipAsync(reply.body as Uint8Array, { level: LEVEL });
  const headers = [...(reply.headers ?? []), ["Content-Encoding", "gzip"] as const];
  const compressed = { ...reply, body, headers, lines: undefined };
  if (reply.isKept) reply.compressed = compressed;
  return compressed;
}
