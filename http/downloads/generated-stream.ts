import { lowerBound } from "../../core/lower-bound.js";
import type { StreamBody } from "../replies/reply.js";

/** Options of a request for a piece. */
export interface PieceRequest {
  signal: AbortSignal | undefined;
  /** The client already has bytes of this body, so it must not be refused now. */
  isContinued: boolean;
  /** Memory that the piece may use. It is gone for the caller. */
  room?: ArrayBuffer | undefined;
}

export interface GeneratedStreamOptions {
  /** Bytes before the first piece. */
  head: Uint8Array;
  /** End position of each piece in the whole body; a piece may be empty. */
  ends: Float64Array;
  /** A piece that is not empty. */
  piece(nth: number, request: PieceRequest): Promise<Uint8Array>;
}

/**
 * A body of a head and pieces of known length, made when they are read. For a range, only the pieces that it touches are made. When a client
 * goes on from one piece to the next, the piece after that is made ahead.
 */
export function generatedStream({ head, ends, piece }: GeneratedStreamOptions): StreamBody {
  const totalBytes = ends.at(-1) ?? head.length;
  let isContinued = false;
  let lastNth = -1;
  const released = new AbortController();
  const makeAhead = (nth: number): void => {
    if (nth >= ends.length || ends[nth] === (nth === 0 ? head.length : ends[nth - 1])) return;
    // An error is reported to the client that reads the piece.
    piece(nth, { signal: released.signal, isContinued: true }).catch(() => {});
  };
  return {
    totalBytes,
    /** Reads up to the end of one piece, together with the head before the first, so that its failure is known before anything is sent. */
    async read(position, lengthBytes, signal, into) {
      const headPart = head.subarray(position, position + lengthBytes);
      const from = position + headPart.length;
      if (headPart.length === lengthBytes || from === totalBytes) return headPart;
      const nth = lowerBound(0, ends.length - 1, (at) => (ends[at] as number) <= from);
      const start = nth === 0 ? head.length : (ends[nth - 1] as number);
      const bytes = await piece(nth, { signal, isContinued });
      isContinued = true;
      if (lastNth >= 0 && nth > lastNth) makeAhead(nth + 1);
      lastNth = nth;
      const part = bytes.subarray(from - start, from - start + lengthBytes - headPart.length);
      const both = headPart.length + part.length;
      // Copied, so that a slow client does not hold the piece.
      const target = into?.subarray(0, both) ?? new Uint8Array(Buffer.allocUnsafeSlow(both).buffer);
      target.set(headPart);
      target.set(part, headPart.length);
      return target;
    },
    release: () => released.abort(),
  };
}
