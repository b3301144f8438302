/** A body of known length that is read piece by piece, so that any size is sent with bounded memory. */
export interface StreamBody {
  totalBytes: number;
  /**
   * Bytes from `position` on: at least one, at most `lengthBytes`. May be called ahead of what the client has taken.
   * @param signal aborted when the client is gone: the read may then reject at once
   * @param into memory of at least so many bytes that the read may put them into; it is the caller's, and filled anew by later reads
   */
  read(position: number, lengthBytes: number, signal?: AbortSignal, into?: Uint8Array): Promise<Uint8Array>;
  /** Called once, when the last byte is handed over, the client is gone, or a read failed. No read follows. */
  release(): void;
}

/** What tells one version of a download from another (RFC 9110, section 8.8). */
export interface Validators {
  /** Strong, with its quotes: the same tag means the same bytes. */
  etag: string;
  modifiedAtUs: number;
}

/** Of bytes that are kept with their CRC-32, and never change at their place. */
export function storedValidators(crc32: number, sizeBytes: number, modifiedAtUs: number): Validators {
  return { etag: `"${crc32.toString(16).padStart(8, "0")}-${sizeBytes.toString(16)}"`, modifiedAtUs };
}

export type HeaderLines = readonly (readonly [name: string, value: string])[];

/** What a handler answers. It knows no socket: the server adds length, date and trace id. */
export interface Reply {
  status: number;
  /** Absent without a body. */
  contentType?: string;
  headers?: HeaderLines;
  body: Uint8Array | StreamBody | null;
  /** Of a stream: with them, clients can resume it and ask whether it changed. */
  validators?: Validators;
  /** Set by the pipeline: the tag of a body that is no stream, and whether it depends on Accept-Encoding. */
  etag?: string;
  variesByEncoding?: boolean;
  /** This very object is answered again: what is made of it stands in it from then on. */
  isKept?: boolean;
  /** Of one that is kept: its compressed form, once it has been asked for; a promise while it is being made. */
  compressed?: Reply | Promise<Reply> | undefined;
  /** Of one that is kept: the bytes of its header lines as a front writes them, the trace id of its last answer first. */
  lines?: Uint8Array | undefined;
  /** The connection cannot be trusted after this request: no second one is read from it. */
  closeConnection?: boolean;
}

export function isStreamBody(body: Reply["body"]): body is StreamBody {
  return body !== null && !(body instanceof Uint8Array);
}

export const JSON_CONTENT_TYPE = "application/json";

export function jsonReply(value: unknown, status = 200): Reply {
  return wholeReply(Buffer.from(JSON.stringify(value)), JSON_CONTENT_TYPE, false, status);
}

/** JSON that was serialised before. @param isKept when this very reply will be given again */
export function jsonBytesReply(bytes: Uint8Array, isKept = false): Reply {
  return wholeReply(bytes, JSON_CONTENT_TYPE, isKept);
}

/** Of the one shape that the answers of most requests have. @param isKept when this very reply will be given again */
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

/** A file to keep: its bytes, and its name for the client's disk (RFC 6266, the name in UTF-8 as RFC 8187 says). */
export function downloadReply(body: StreamBody, contentType: string, fileName: string, validators?: Validators): Reply {
  const headers = [["Content-Disposition", contentDisposition(fileName)] as const];
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
