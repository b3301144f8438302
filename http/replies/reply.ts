/** A body of known length that is read in chunks, so that any size can be sent with little memory. */
export interface StreamBody {
  totalBytes: number;
  /**
   * Reads from `position` on: at least one byte, at most `lengthBytes`. May be called before the client has taken the bytes before.
   * @param signal aborted when the client leaves: the read may then reject at once
   * @param into memory of at least `lengthBytes` for the result; it belongs to the caller, and later reads overwrite it
   */
  read(position: number, lengthBytes: number, signal?: AbortSignal, into?: Uint8Array): Promise<Uint8Array>;
  /** Called once: after the last byte, when the client has left, or when a read failed. No read follows. */
  release(): void;
}

/** What is sent to a client that stays connected. The server asks for the next chunk when the client has taken the last one. */
export interface LiveBody<Chunk> {
  /** Resolves when there is something to send; with undefined when there will be nothing more. */
  next(): Promise<Chunk | undefined>;
  /** Aborted when the answer must end at once, even if the client takes nothing. */
  readonly cut: AbortSignal;
  /** Called once, when the answer has ended or the client is gone. `next` then resolves with undefined. */
  release(): void;
}

/** A body whose length nobody knows, or without an end of its own. */
export interface LiveStream extends LiveBody<Uint8Array> {
  /** A few bytes that mean nothing to the client, to be sent between two chunks; none if there are no such bytes. */
  readonly filler: Uint8Array;
}

/** Part of a message to a WebSocket, which is a text. A large message has many, so that a client costs the memory of one. */
export interface MessagePart {
  readonly bytes: Uint8Array;
  readonly isLast: boolean;
}

/** Messages to a WebSocket, one after the other. */
export interface LiveSocket extends LiveBody<MessagePart> {
  /** How the connection is closed, once `next` has resolved with undefined. */
  readonly ending: { readonly code: number; readonly reason: string };
}

/** Identifies the version of a download (RFC 9110, section 8.8). */
export interface Validators {
  /** Strong, with its quotes: the same tag means the same bytes. */
  etag: string;
  modifiedAtUs: number;
}

/** The validators of stored bytes, from their CRC-32 and size. Stored bytes never change. */
export function storedValidators(crc32: number, sizeBytes: number, modifiedAtUs: number): Validators {
  return { etag: `"${crc32.toString(16).padStart(8, "0")}-${sizeBytes.toString(16)}"`, modifiedAtUs };
}

export type HeaderLines = readonly (readonly [name: string, value: string])[];

/** What a handler answers, independent of the server, which adds length, date and trace id. */
export interface Reply {
  status: number;
  /** Absent without a body. */
  contentType?: string;
  headers?: HeaderLines;
  body: Uint8Array | StreamBody | null;
  /** The body is sent chunk by chunk in place of `body`, which is null. */
  live?: LiveStream;
  /** The connection becomes a WebSocket. The status is 101, and `body` null. */
  socket?: LiveSocket;
  /** For a stream: with them, clients can resume a download and ask whether it has changed. */
  validators?: Validators;
  /** Set by the pipeline for a body that is no stream: its tag, and whether it depends on Accept-Encoding. */
  etag?: string;
  variesByEncoding?: boolean;
  /** The handler has chosen among codings that were made before; Content-Encoding is among its headers. The pipeline does not compress it. */
  isInChosenCoding?: boolean;
  /** This object is cached and answered again: the fields below then cache what is derived from it. */
  isKept?: boolean;
  /** The compressed reply, once it has been asked for; a promise while it is being made. */
  compressed?: Reply | Promise<Reply> | undefined;
  /** The header lines as the server writes them, starting with the trace id of the last answer. */
  lines?: Uint8Array | undefined;
  /** Close the connection after this answer: no further request is read from it. */
  closeConnection?: boolean;
}

export function isStreamBody(body: Reply["body"]): body is StreamBody {
  return body !== null && !(body instanceof Uint8Array);
}

export const JSON_CONTENT_TYPE = "application/json";

export function jsonReply(value: unknown, status = 200): Reply {
  return wholeReply(Buffer.from(JSON.stringify(value)), JSON_CONTENT_TYPE, false, status);
}

/** A reply of serialised JSON. @param isKept this object will be cached and answered again */
export function jsonBytesReply(bytes: Uint8Array, isKept = false): Reply {
  return wholeReply(bytes, JSON_CONTENT_TYPE, isKept);
}

/** A reply with all fields, so that most replies have the same hidden class in V8. @param isKept this object will be cached and answered again */
export function wholeReply(body: Uint8Array, contentType: string, isKept: boolean, status = 200): Reply {
  return {
    status,
    contentType,
    headers: NO_HEADERS,
    body,
    isKept,
    etag: "",
    variesByEncoding: false,
    compressed: undefined,
    lines: undefined,
  };
}

const NO_HEADERS: HeaderLines = [];

/** A file to save, under this name (RFC 6266, with the name in UTF-8 by RFC 8187). */
export function downloadReply(
  body: StreamBody,
  contentType: string,
  fileName: string,
  validators?: Validators,
  further: HeaderLines = [],
): Reply {
  const headers = [["Content-Disposition", contentDisposition(fileName)] as const, ...further];
  return { status: 200, contentType, headers, body, ...(validators !== undefined && { validators }) };
}

export function contentDisposition(fileName: string): string {
  const plain = fileName.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  if (plain === fileName) return `attachment; filename="${fileName}"`;
  const extended = encodeURIComponent(fileName).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${extended}`;
}
