import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { isStreamBody, JSON_CONTENT_TYPE, type Reply } from "./reply.js";

const gzipAsync = promisify(gzip);

/** Smaller answers fit in a packet or two: a client would not notice their compression. */
const LEAST_BYTES = 2 * 1024;

/** Above this zlib level, JSON hardly gets smaller but compression takes twice the time. */
const LEVEL = 4;

export function isCompressible({ body, contentType }: Reply): boolean {
  if (body === null || isStreamBody(body) || contentType === undefined) return false;
  return body.byteLength >= LEAST_BYTES && (contentType === JSON_CONTENT_TYPE || contentType.startsWith("text/"));
}

/** Measured cost of a cached compressed reply besides its bytes, rounded up. */
const FORM_OVERHEAD_BYTES = 1_050;

/** The largest compressed body that is cached; JSON and text hardly ever compress to more. */
function largestKeptForm(bodyBytes: number): number {
  return Math.ceil(bodyBytes / 2) + 1024;
}

/** The most memory that a cached reply can take, in bytes: its body, and the compressed body that is cached with it on first use. */
export function keptBytes(reply: Reply): number {
  const { byteLength } = reply.body as Uint8Array;
  return isCompressible(reply) ? byteLength + largestKeptForm(byteLength) + FORM_OVERHEAD_BYTES : byteLength;
}

/**
 * The reply with its body compressed by another thread. A cached reply is compressed once: later requests get that result at once, and
 * simultaneous requests share it.
 */
export function compressedReply(reply: Reply): Reply | Promise<Reply> {
  if (reply.compressed !== undefined) return reply.compressed;
  const compressed = compress(reply);
  if (reply.isKept) reply.compressed = compressed;
  return compressed;
}

async function compress(reply: Reply): Promise<Reply> {
  let kept: Reply | undefined;
  try {
    const plain = reply.body as Uint8Array;
    let body: Uint8Array = await gzipAsync(plain, { level: LEVEL });
    const isKept = reply.isKept === true && body.byteLength <= largestKeptForm(plain.byteLength);
    if (isKept) body = inOwnMemory(body);
    const headers = [...(reply.headers ?? []), ["Content-Encoding", "gzip"] as const];
    const compressed = { ...reply, body, headers, isKept, lines: undefined, compressed: undefined };
    if (isKept) kept = compressed;
    return compressed;
  } finally {
    if (reply.isKept) reply.compressed = kept;
  }
}

/** A copy: zlib returns a slice of a larger buffer, which would stay in memory with it. */
function inOwnMemory(bytes: Uint8Array): Uint8Array {
  const own = Buffer.allocUnsafeSlow(bytes.byteLength);
  own.set(bytes);
  return own;
}
