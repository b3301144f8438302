/** Bytes of a WebSocket's client, for tests that send what no client library would. In Latin-1. */

export const HANDSHAKE = {
  Connection: "Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
};

/** @param lines other or further header lines; undefined leaves one out */
export function handshakeRequest(runId: string, lines: Record<string, string | undefined> = {}): string {
  const head = Object.entries({ Host: "x", ...HANDSHAKE, ...lines })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET /runs/${runId}/live HTTP/1.1\r\n${head.join("")}\r\n`;
}

/** A masked frame of at most 65,535 bytes; the mask is zero. `first` holds FIN, the reserved bits and the opcode. */
export function frame(first: number, payload: string | Uint8Array = ""): string {
  const bytes = Buffer.from(payload);
  const { length } = bytes;
  const head = length < 126 ? [0x80 | length] : [0x80 | 126, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([first, ...head, 0, 0, 0, 0]), bytes]).toString("latin1");
}

/** What a close frame holds: a code, and a reason. */
export function closePayload(code: number, reason: string | Uint8Array = ""): Uint8Array {
  return Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]);
}
