/** A body of known length that is read piece by piece, so that any size is sent with bounded memory. */
export interface StreamBody {
  totalBytes: number;
  /** Bytes from `position` on: at least one, at most `lengthBytes`. May be called ahead of what the client has taken. */
  read(position: number, lengthBytes: number): Promise<Uint8Array>;
  /** Called once, when the last byte is handed over, the client is gone, or a read failed. No read follows. */
  release(): void;
}

/** What a handler answers. It knows no socket: the server adds length, date and trace id. */
export interface Reply {
  status: number;
  /** Absent without a body. */
  contentType?: string;
  headers?: readonly (readonly [name: string, value: string])[];
  body: Uint8Array | StreamBody | null;
  /** The connection cannot be trusted after this request: no second one is read from it. */
  closeConnection?: boolean;
}

export function isStreamBody(body: Reply["body"]): body is StreamBody {
  return body !== null && !(body instanceof Uint8Array);
}

export const JSON_CONTENT_TYPE = "application/json";

export function jsonReply(value: unknown, status = 200): Reply {
  return { status, contentType: JSON_CONTENT_TYPE, body: Buffer.from(JSON.stringify(value)) };
}

/** JSON that was serialised before. */
export function jsonBytesReply(bytes: Uint8Array): Reply {
  return { status: 200, contentType: JSON_CONTENT_TYPE, body: bytes };
}

/** A file to keep: its bytes, and its name for the client's disk (RFC 6266, the name in UTF-8 as RFC 8187 says). */
export function downloadReply(body: StreamBody, contentType: string, fileName: string): Reply {
  return { status: 200, contentType, headers: [["Content-Disposition", contentDisposition(fileName)]], body };
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
