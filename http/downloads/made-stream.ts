import type { StreamBody } from "../replies/reply.js";

/** How a piece is asked for. */
export interface PieceRequest {
  signal: AbortSignal | undefined;
  /** The client has had bytes of this body before: it is not to be turned away now. */
  isContinued: boolean;
}

export interface MadeStreamOptions {
  /** Bytes before the first piece. */
  head: Uint8Array;
  /** Where each piece ends in the whole body; one may be empty. */
  ends: Float64Array;
  /** What `use` makes of the bytes of a piece that is not empty. It does not keep them. */
  piece<T>(nth: number, request: PieceRequest, use: (bytes: Uint8Array) => T): Promise<T>;
}

/**
 * A body of a head and pieces of known length that are made when they are read: of a range, only those that it touches, but that whoever goes
 * on from one piece to the next is expected to go on: the piece behind is begun while the client takes this one.
 */
export function madeStream({ head, ends, piece }: MadeStreamOptions): StreamBody {
  const totalBytes = ends.at(-1) ?? head.length;
  let isContinued = false;
  let lastNth = -1;
  const released = new AbortController();
  const makeAhead = (nth: number): void => {
    if (nth >= ends.length || ends[nth] === (nth === 0 ? head.length : ends[nth - 1])) return;
    // Whoever reads it is told what is wrong with it.
    piece(nth, { signal: released.signal, isContinued: true }, () => {}).catch(() => {});
  };
  return {
    totalBytes,
    /** Up to the end of one piece, and the head before it, so that a failure of the first piece is known before anything is sent. */
    async read(position, lengthBytes, signal, into) {
      const headPart = head.subarray(position, position + lengthBytes);
      const from = position + headPart.length;
      if (headPart.length === lengthBytes || from === totalBytes) return headPart;
      const nth = firstAbove(ends, from);
      const start = nth === 0 ? head.length : (ends[nth - 1] as number);
      const taken = await piece(nth, { signal, isContinued }, (bytes) => {
        const part = bytes.subarray(from - start, from - start + lengthBytes - headPart.length);
        const both = headPart.length + part.length;
        // Copied: the piece is not to be held while a slow client takes a part of it.
        const target = into?.subarray(0, both) ?? new Uint8Array(Buffer.allocUnsafeSlow(both).buffer);
        target.set(headPart);
        target.set(part, headPart.length);
        return target;
      });
      isContinued = true;
      if (lastNth >= 0 && nth > lastNth) makeAhead(nth + 1);
      lastNth = nth;
      return taken;
    },
    release: () => released.abort(),
  };
}

/** Index of the first end above `position`. */
function firstAbove(ends: Float64Array, position: number): number {
  let low = 0;
  let high = ends.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ends[middle] as number) > position) high = middle;
    else low = middle + 1;
  }
  return low;
}
