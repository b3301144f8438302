/**
 * The frame of the cell link, version 1 (workers/cell-link/README.md). Both directions speak it; all integers are little-endian.
 *
 * | offset | size | field          |                                                                            |
 * |--------|------|----------------|----------------------------------------------------------------------------|
 * | 0      | 4    | magic          | 43 4C 4B 31 ("CLK1")                                                       |
 * | 4      | 1    | version        | 1                                                                          |
 * | 5      | 1    | kind           | 1 hello, 2 welcome, 3 message, 4 ack, 5 refuse, 6 ping, 7 pong             |
 * | 6      | 2    | reserved       | 0                                                                          |
 * | 8      | 4    | sequence       | low 32 bits                                                                |
 * | 12     | 4    | sequence       | high 32 bits; the whole is below 2^53                                      |
 * | 16     | 4    | body_length    | bytes of MessagePack, a map; at most 1 MiB; 0 for ack, ping and pong       |
 * | 20     | 4    | payload_length | at most 64 MiB; 0 for every kind but message                               |
 * | 24     | …    | body           | then zero bytes up to a multiple of 8, then the payload                    |
 *
 * Example, message 5 with the body `{type: "run.start"}` (16 bytes: no padding) and the payload `FF`:
 *
 *     43 4C 4B 31 01 03 00 00  05 00 00 00 00 00 00 00  10 00 00 00 01 00 00 00
 *     81 A4 74 79 70 65 A9 72  75 6E 2E 73 74 61 72 74  FF
 */
import { LIMITS } from "../../core/limits.js";
import type { Refusal } from "../../core/link/refusal.js";
import { encodeMessagePack } from "../../storage/records/message-pack.js";
import type { BufferPool } from "../buffer-pool.js";

export const PROTOCOL_VERSION = 1;
export const HEADER_BYTES = 24;
export const FRAME_KIND = { hello: 1, welcome: 2, message: 3, ack: 4, refuse: 5, ping: 6, pong: 7 } as const;
export type FrameKind = keyof typeof FRAME_KIND;

const KIND_OF_CODE: readonly (FrameKind | undefined)[] = (() => {
  const kinds: (FrameKind | undefined)[] = [];
  for (const [kind, code] of Object.entries(FRAME_KIND)) kinds[code] = kind as FrameKind;
  return kinds;
})();

const MAGIC = [0x43, 0x4c, 0x4b, 0x31] as const;
const NO_BYTES = new Uint8Array(0);

export interface FrameToSend {
  kind: FrameKind;
  /** Below 2^53; 0 for hello and welcome. */
  sequence: number;
  /** JSON values; a property that is undefined is left out. */
  body?: object;
  payload?: Uint8Array;
}

/** The frame as buffers to write in order: header, body and padding in one, then the payload, which is not copied. */
export function encodeFrame(frame: FrameToSend): Uint8Array[] {
  const body = frame.body === undefined ? NO_BYTES : encodeMessagePack(frame.body);
  const payload = frame.payload ?? NO_BYTES;
  const fault =
    faultOfSequence(frame.sequence) ??
    faultOfBodyLength(frame.kind, body.length) ??
    faultOfPayloadLength(frame.kind, payload.length);
  if (fault !== undefined) throw new RangeError(fault.message);

  const head = Buffer.alloc(HEADER_BYTES + padded(body.length));
  head.set(MAGIC, 0);
  head[4] = PROTOCOL_VERSION;
  head[5] = FRAME_KIND[frame.kind];
  renumberFrame(head, frame.sequence);
  head.writeUInt32LE(body.length, 16);
  head.writeUInt32LE(payload.length, 20);
  head.set(body, HEADER_BYTES);
  return payload.length === 0 ? [head] : [head, payload];
}

/** Gives an encoded frame another sequence number, below 2^53. */
export function renumberFrame(head: Uint8Array, sequence: number): void {
  const view = new DataView(head.buffer, head.byteOffset);
  view.setUint32(8, sequence % 0x1_0000_0000, true);
  view.setUint32(12, Math.floor(sequence / 0x1_0000_0000), true);
}

function padded(lengthBytes: number): number {
  return (lengthBytes + 7) & ~7;
}

export interface Frame {
  kind: FrameKind;
  sequence: number;
  /** MessagePack, not decoded yet (`decodeBody`). Valid until `onFrame` returns: the bytes may be the socket's. */
  body: Uint8Array;
  /** It belongs to the receiver, who releases it to the parser's `BufferPool` when it is no longer needed. */
  payload: Uint8Array;
}

/** A frame that breaks the table above. The rest of the stream cannot be trusted. `params`: field, value, allowed. */
export type BadFrame = Refusal<"bad_frame">;

export function badFrame(field: string, value: string | number, allowed: string): BadFrame {
  return {
    code: "bad_frame",
    message: `${field} of a frame is ${value}, but must be ${allowed}`,
    params: { field, value, allowed },
  };
}

function faultOfSequence(sequence: number): BadFrame | undefined {
  if (Number.isSafeInteger(sequence) && sequence >= 0) return undefined;
  return badFrame("sequence", sequence, "0 to 2^53 - 1");
}

function faultOfBodyLength(kind: FrameKind, length: number): BadFrame | undefined {
  const limit = kind === "ack" || kind === "ping" || kind === "pong" ? 0 : LIMITS.linkBodyBytes;
  return length <= limit ? undefined : badFrame("body_length", length, `0 to ${limit} for ${kind}`);
}

function faultOfPayloadLength(kind: FrameKind, length: number): BadFrame | undefined {
  const limit = kind === "message" ? LIMITS.linkPayloadBytes : 0;
  return length <= limit ? undefined : badFrame("payload_length", length, `0 to ${limit} for ${kind}`);
}

/** Checks the fields that are complete in the first `length` bytes of the header that begins at `at`. */
function faultOfHeader(bytes: Buffer, at: number, length: number): BadFrame | undefined {
  for (let i = 0; i < 4 && i < length; i++) {
    if (bytes[at + i] !== MAGIC[i]) {
      return badFrame("magic", bytes.toString("hex", at, at + Math.min(4, length)), "434c4b31");
    }
  }
  if (length > 4 && bytes[at + 4] !== PROTOCOL_VERSION) {
    return badFrame("version", bytes[at + 4] as number, String(PROTOCOL_VERSION));
  }
  if (length <= 5) return undefined;
  const kind = KIND_OF_CODE[bytes[at + 5] as number];
  if (kind === undefined) return badFrame("kind", bytes[at + 5] as number, "1 to 7");
  if (length >= 8 && bytes.readUInt16LE(at + 6) !== 0) return badFrame("reserved", bytes.readUInt16LE(at + 6), "0");
  if (length >= 16) {
    const sequence = sequenceAt(bytes, at);
    const fault = faultOfSequence(sequence);
    if (fault !== undefined) return fault;
    if ((kind === "hello" || kind === "welcome") && sequence !== 0) {
      return badFrame("sequence", sequence, `0 for ${kind}`);
    }
  }
  if (length >= 20) {
    const fault = faultOfBodyLength(kind, bytes.readUInt32LE(at + 16));
    if (fault !== undefined) return fault;
  }
  return length >= HEADER_BYTES ? faultOfPayloadLength(kind, bytes.readUInt32LE(at + 20)) : undefined;
}

/** The sequence number in the header that begins at `at`. */
function sequenceAt(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at + 8) + bytes.readUInt32LE(at + 12) * 0x1_0000_0000;
}

export interface FrameParserOptions {
  /** Called in order, within `push`. It may close the parser, but must not call `push`. */
  onFrame(frame: Frame): void;
  /** Gives the buffers for payloads. All connections of a thread share one. */
  buffers: Pick<BufferPool, "take" | "release">;
  /** A message announces a payload. No memory is taken for it yet. It may close the parser. */
  onPayloadAnnounced?(): void;
  /**
   * How large the buffer of a payload may be when `filledBytes` of it have come. Asked when one more byte comes and the
   * buffer is full. The answer `filledBytes` holds the stream there until `proceed`. Default: the whole length.
   */
  payloadRoom?(lengthBytes: number, filledBytes: number): number;
  /** Asked before a message with a payload is delivered. False holds the stream there until `proceed`. Default: true. */
  mayDeliverPayload?(): boolean;
}

/**
 * Takes a stream in chunks of any size and gives its frames. When `push` returns, the caller may use the chunk again.
 * The bytes of a payload are copied into a buffer. It grows in the few steps that the parser's user allows; nothing
 * grows by concatenation.
 *
 * A parser holds at most a header, one body (1 MiB and padding) and one payload (64 MiB). While a payload's buffer
 * grows, the smaller one before it is held too. Memory for a payload is taken only when its header and body are good
 * and its first byte has come, and only as far as the user allows. While the parser is held, it also keeps what was
 * pushed after that place, so its user must stop reading.
 */
export class FrameParser {
  readonly #onFrame: (frame: Frame) => void;
  readonly #buffers: FrameParserOptions["buffers"];
  readonly #onPayloadAnnounced: () => void;
  readonly #payloadRoom: NonNullable<FrameParserOptions["payloadRoom"]>;
  readonly #mayDeliverPayload: NonNullable<FrameParserOptions["mayDeliverPayload"]>;
  /** Where the stream is held: at the end of a payload's buffer, or before a whole payload is delivered; null if it is not. */
  #held: "room" | "deliver" | null = null;
  /** What was pushed after the place where the stream is held. */
  #rest: Uint8Array = NO_BYTES;
  #state: "header" | "body" | "payload" | "closed" = "header";
  #fault: BadFrame | undefined;

  readonly #headerScratch = Buffer.alloc(HEADER_BYTES);
  /** Bytes of the part being read (`#state`) that have arrived. */
  #filled = 0;

  // These are fields of the frame that is being read, from its header on.
  #kind: FrameKind = "message";
  #sequence = 0;
  #bodyLength = 0;
  #payloadLength = 0;
  /** Body of a frame that is spread over several chunks, with its padding until the body is whole. */
  #bodyScratch: Uint8Array = NO_BYTES;
  /** Empty until its first byte comes. */
  #payload: Uint8Array = NO_BYTES;

  constructor(options: FrameParserOptions) {
    this.#onFrame = options.onFrame;
    this.#buffers = options.buffers;
    this.#onPayloadAnnounced = () => options.onPayloadAnnounced?.();
    this.#payloadRoom = (lengthBytes, filledBytes) => options.payloadRoom?.(lengthBytes, filledBytes) ?? lengthBytes;
    this.#mayDeliverPayload = () => options.mayDeliverPayload?.() ?? true;
  }

  /**
   * Takes the next chunk.
   *
   * @returns the first fault of the stream, and again for every later chunk. No frame is delivered after it.
   * @throws {RangeError} There is no memory for a body or a payload. The stream cannot go on and must be closed.
   */
  push(chunk: Uint8Array): BadFrame | undefined {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let offset = 0;
    while (offset < bytes.length && this.#state !== "closed" && this.#held === null) {
      if (this.#state === "header") offset = this.#readHeader(bytes, offset);
      else if (this.#state === "body") offset = this.#readBody(bytes, offset);
      else offset = this.#readPayload(bytes, offset);
    }
    if (this.#held !== null && offset < bytes.length) this.#rest = Buffer.concat([this.#rest, bytes.subarray(offset)]);
    return this.#fault;
  }

  /** True while the stream is held at a payload that may not be taken now. */
  get isHeld(): boolean {
    return this.#held !== null;
  }

  /** How many bytes have arrived of the payload that is being read. */
  get payloadFilledBytes(): number {
    return this.#state === "payload" ? this.#filled : 0;
  }

  /** Goes on where the stream was held, if it may now. @returns as `push` */
  proceed(): BadFrame | undefined {
    const held = this.#held;
    if (held === null || !(held === "room" ? this.#growPayload() : this.#mayDeliverPayload())) return this.#fault;
    const rest = this.#rest;
    this.#held = null;
    this.#rest = NO_BYTES;
    if (held === "deliver") this.#endPayload();
    return rest.length === 0 ? this.#fault : this.push(rest);
  }

  /** Ends reading, and releases the buffer of a payload that is not whole. */
  close(): void {
    if (this.#payload.length > 0) this.#buffers.release(this.#payload);
    this.#state = "closed";
    this.#held = null;
    this.#rest = NO_BYTES;
    this.#payload = NO_BYTES;
    this.#bodyScratch = NO_BYTES;
  }

  #fail(fault: BadFrame): void {
    this.close();
    this.#fault = fault;
  }

  #readHeader(bytes: Buffer, offset: number): number {
    if (this.#filled === 0 && bytes.length - offset >= HEADER_BYTES) {
      this.#headerRead(bytes, offset);
      return offset + HEADER_BYTES;
    }
    const header = this.#headerScratch;
    const end = Math.min(bytes.length, offset + HEADER_BYTES - this.#filled);
    bytes.copy(header, this.#filled, offset, end);
    this.#filled += end - offset;
    if (this.#filled === HEADER_BYTES) {
      this.#headerRead(header, 0);
    } else {
      const fault = faultOfHeader(header, 0, this.#filled);
      if (fault !== undefined) this.#fail(fault);
    }
    return end;
  }

  /** A whole header begins at `at`. */
  #headerRead(bytes: Buffer, at: number): void {
    const fault = faultOfHeader(bytes, at, HEADER_BYTES);
    if (fault !== undefined) {
      this.#fail(fault);
      return;
    }
    this.#kind = KIND_OF_CODE[bytes[at + 5] as number] as FrameKind;
    this.#sequence = sequenceAt(bytes, at);
    this.#bodyLength = bytes.readUInt32LE(at + 16);
    this.#payloadLength = bytes.readUInt32LE(at + 20);
    this.#filled = 0;
    if (this.#bodyLength > 0) this.#state = "body";
    else this.#bodyRead(NO_BYTES, 0, false);
  }

  #readBody(bytes: Buffer, offset: number): number {
    const length = padded(this.#bodyLength);
    if (this.#filled === 0 && bytes.length - offset >= length) {
      this.#bodyRead(bytes, offset, false);
      return offset + length;
    }
    if (this.#filled === 0) this.#bodyScratch = Buffer.allocUnsafeSlow(length);
    const end = Math.min(bytes.length, offset + length - this.#filled);
    this.#bodyScratch.set(bytes.subarray(offset, end), this.#filled);
    this.#filled += end - offset;
    if (this.#filled === length) {
      this.#filled = 0;
      this.#bodyRead(this.#bodyScratch, 0, true);
    }
    return end;
  }

  /** Body and padding begin at `start`. The bytes belong to the chunk unless `owned`. */
  #bodyRead(bytes: Uint8Array, start: number, owned: boolean): void {
    const end = start + this.#bodyLength;
    for (let i = end; i < start + padded(this.#bodyLength); i++) {
      const byte = bytes[i] as number;
      if (byte !== 0) {
        this.#fail(badFrame("padding", byte, "0"));
        return;
      }
    }
    const body = bytes.subarray(start, end);
    if (this.#payloadLength === 0) {
      this.#deliver(body, NO_BYTES);
      return;
    }
    this.#bodyScratch = owned ? body : Uint8Array.prototype.slice.call(body);
    this.#state = "payload";
    this.#onPayloadAnnounced();
  }

  /** @returns whether there is room for more */
  #growPayload(): boolean {
    const room = this.#payloadRoom(this.#payloadLength, this.#filled);
    if (room <= this.#filled) return false;
    const smaller = this.#payload;
    this.#payload = this.#buffers.take(room);
    this.#payload.set(smaller);
    if (smaller.length > 0) this.#buffers.release(smaller);
    return true;
  }

  #readPayload(bytes: Buffer, offset: number): number {
    if (this.#filled === this.#payload.length && !this.#growPayload()) {
      this.#held = "room";
      return offset;
    }
    const end = Math.min(bytes.length, offset + this.#payload.length - this.#filled);
    this.#payload.set(bytes.subarray(offset, end), this.#filled);
    this.#filled += end - offset;
    if (this.#filled === this.#payloadLength) {
      this.#filled = 0;
      if (this.#mayDeliverPayload()) this.#endPayload();
      else this.#held = "deliver";
    }
    return end;
  }

  #endPayload(): void {
    const payload = this.#payload;
    this.#payload = NO_BYTES;
    this.#deliver(this.#bodyScratch, payload);
  }

  #deliver(body: Uint8Array, payload: Uint8Array): void {
    this.#state = "header";
    this.#bodyScratch = NO_BYTES;
    this.#onFrame({ kind: this.#kind, sequence: this.#sequence, body, payload });
  }
}
