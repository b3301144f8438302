import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import type { FindingQuery } from "../../storage/findings/finding-query.js";
import { type ChecksFormat, EXPORT_BEGINS, type ExportPiece } from "../../workers/artefacts/findings/checks-export.js";
import { contentDisposition, type LiveStream, type Reply } from "../replies/reply.js";
import type { MakeArtefact } from "./generated-files.js";

/** Text of numbers gets hardly any smaller at higher levels, but takes twice the time. */
const GZIP_LEVEL = 4;

const NO_FILLER = new Uint8Array(0);
const NEVER = new AbortController().signal;

export interface ChecksDownload {
  make: MakeArtefact;
  query: FindingQuery;
  format: ChecksFormat;
  contentType: string;
  /** What comes before the rows. */
  head: Uint8Array;
  /** For `dfq` (ExportTask). */
  namesJson: string;
  isCompressed: boolean;
}

/**
 * The rows of a program's checks, sent while they are made: nobody knows their length before. A client costs two pieces of
 * memory, however large the download is.
 *
 * @param gone aborted when this client does not wait for the first piece any more
 */
export async function checksReply(download: ChecksDownload, gone: AbortSignal): Promise<Reply> {
  const { make, query, format, contentType, head, namesJson, isCompressed } = download;
  const task = { query, format, namesJson };
  // The first piece is made before the answer begins, so that its failure still has a status.
  const first = await make("checksPiece", { ...task, from: EXPORT_BEGINS }, { signal: gone, isContinued: false });
  const ended = new AbortController();
  const next: MakeNext = (from, room) =>
    make("checksPiece", { ...task, from }, { signal: ended.signal, isContinued: true, room });
  const headers: [string, string][] = [
    ["Content-Disposition", contentDisposition(`checks-${query.programId}.${format}`)],
    ["Cache-Control", "no-store"],
  ];
  if (isCompressed) headers.push(["Content-Encoding", "gzip"]);
  // What compresses them still reads a piece when it asks for the next one.
  const pieces = piecesFrom(head, first, isCompressed ? (from) => next(from) : next);
  const live = new ChecksStream(isCompressed ? compressed(pieces) : pieces, ended);
  return { status: 200, contentType, headers, body: null, live, isInChosenCoding: true };
}

/** @param room memory for it that nobody needs any more */
type MakeNext = (from: NonNullable<ExportPiece["next"]>, room?: ArrayBuffer) => Promise<ExportPiece>;

/**
 * While one piece is sent, the next one is made in the memory of the one before. New memory for each would make V8
 * search the front's whole heap for garbage several times a second, for some milliseconds each.
 */
async function* piecesFrom(
  head: Uint8Array,
  first: ExportPiece,
  make: MakeNext,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (head.length > 0) yield head;
  let room: ArrayBuffer | undefined;
  for (let piece = first; ; ) {
    const ahead = piece.next === null ? undefined : make(piece.next, room);
    // Its failure is reported where it is awaited.
    ahead?.catch(() => {});
    if (piece.bytes.length > 0) yield piece.bytes;
    if (ahead === undefined) return;
    room = piece.bytes.buffer;
    piece = await ahead;
  }
}

async function* compressed(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const source = Readable.from(pieces, { objectMode: true, highWaterMark: 1 });
  const gzip = createGzip({ level: GZIP_LEVEL });
  source.on("error", (error) => gzip.destroy(error));
  source.pipe(gzip);
  try {
    for await (const chunk of gzip) yield chunk as Uint8Array;
  } finally {
    source.destroy();
    gzip.destroy();
  }
}

class ChecksStream implements LiveStream {
  /** Nothing may stand between two rows. */
  readonly filler = NO_FILLER;
  readonly cut = NEVER;
  readonly #chunks: AsyncGenerator<Uint8Array, void, undefined>;
  readonly #ended: AbortController;

  constructor(chunks: AsyncGenerator<Uint8Array, void, undefined>, ended: AbortController) {
    this.#chunks = chunks;
    this.#ended = ended;
  }

  async next(): Promise<Uint8Array | undefined> {
    try {
      return (await this.#chunks.next()).value ?? undefined;
    } catch (error) {
      // A client that has left is no failure.
      if (this.#ended.signal.aborted) return undefined;
      throw error;
    }
  }

  release(): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    this.#chunks.return().catch(() => {});
  }
}
