import { TIME_LIMIT_US } from "./timestamps.js";

/**
 * UUIDv7 identifiers (RFC 9562, section 5.7): 48 bits of Unix milliseconds, version 7, 12 random bits, variant 10, 62 random bits.
 * The text is canonical and in lower case, so ids sort by creation time, as text and as bytes.
 */
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A canonical UUIDv7 as a JSON Schema pattern. */
export const UUID_V7_PATTERN = UUID_V7.source;

export function isUuidV7(text: string): boolean {
  return text.length === 36 && UUID_V7.test(text);
}

// Upper-case digits are accepted but never written (RFC 9562, section 4).
const UUID_DIGITS = "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}";
const UUID = new RegExp(`^${UUID_DIGITS}$`);
const UUIDS_WITHIN = new RegExp(UUID_DIGITS, "g");

/** A JSON Schema pattern for a UUIDv7 in either case, as clients may send it. */
export const UUID_V7_INPUT_PATTERN =
  "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$";

/** The canonical, lower-case text of a UUID of any version; undefined when the text is no UUID. */
export function canonicalUuid(text: string): string | undefined {
  return text.length === 36 && UUID.test(text) ? text.toLowerCase() : undefined;
}

/** The text with all its UUIDs in lower case, so that one id has one spelling. */
export function withCanonicalUuids(text: string): string {
  return text.replace(UUIDS_WITHIN, (id) => id.toLowerCase());
}

/** The creation time that a UUIDv7 carries, in milliseconds since the Unix epoch. */
export function uuidV7TimeMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The creation time that a UUIDv7 carries, in microseconds since the Unix epoch; its resolution is a millisecond. */
export function uuidV7TimeUs(id: string): number {
  return uuidV7TimeMs(id) * 1000;
}

/** Character codes of the lower-case hex digits. */
const DIGITS = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));

const CHARACTER_OF_BYTE = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;

function hexDigit(code: number): number {
  return code <= 0x39 ? code - 0x30 : code - 0x57;
}

/** Writes the 16 bytes of a canonical lower-case UUID; the caller has checked the text. */
export function writeUuid(id: string, target: Uint8Array, offset: number): void {
  for (let i = 0; i < 16; i++) {
    const character = CHARACTER_OF_BYTE[i] as number;
    target[offset + i] = (hexDigit(id.charCodeAt(character)) << 4) | hexDigit(id.charCodeAt(character + 1));
  }
}

export function uuidToBytes(id: string): Uint8Array {
  const bytes = new Uint8Array(16);
  writeUuid(id, bytes, 0);
  return bytes;
}

export function readUuid(bytes: Uint8Array, offset = 0): string {
  const word = (at: number): number =>
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number);
  return formatUuidWords(word(offset), word(offset + 4), word(offset + 8), word(offset + 12));
}

/** Where the text of an id is written, with its dashes. */
const scratch = Buffer.alloc(36, "-");

/**
 * The UUID of four 32-bit words, most significant first. The text is made at once, because a store names millions of ids: a string joined from
 * pieces would be a tree of twenty strings inside V8, and three times as slow to make and to use.
 */
export function formatUuidWords(...words: [number, number, number, number]): string {
  for (let nth = 0; nth < 32; nth++) {
    const character = (CHARACTER_OF_BYTE[nth >> 1] as number) + (nth & 1);
    scratch[character] = DIGITS[((words[nth >> 3] as number) >>> (28 - 4 * (nth & 7))) & 15] as number;
  }
  return scratch.toString("latin1");
}

/**
 * Makes a UUIDv7 for `timeMs` from ten random bytes. With `after`, the result is above `after`: if the clock has not
 * passed the time of `after`, the result is `after` plus one (RFC 9562, section 6.2, method 2). So ids keep ascending
 * when the clock steps back. A time before 1970, or at or above `TIME_LIMIT_US`, comes from a wrong clock and counts as
 * 1970. Otherwise all later ids would go on from that time, also when the clock is right again.
 */
export function generateUuidV7(timeMs: number, random: Uint8Array, after?: string | null): string {
  const bytes = new Uint8Array(16);
  bytes.set(random.subarray(0, 10), 6);
  const isTime = timeMs >= 0 && timeMs * 1000 < TIME_LIMIT_US;
  for (let i = 0, rest = isTime ? Math.floor(timeMs) : 0; i < 6; i++) {
    bytes[5 - i] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  bytes[6] = 0x70 | ((bytes[6] as number) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f);
  const id = readUuid(bytes);
  return after === undefined || after === null || id > after ? id : successor(after);
}

/** The next UUIDv7 above `id`: its 74 random bits plus one, with the carry going into the milliseconds. */
function successor(id: string): string {
  const bytes = uuidToBytes(id);
  for (let i = 15; i >= 0; i--) {
    const byte = bytes[i] as number;
    if (i === 8) {
      bytes[i] = 0x80 | ((byte + 1) & 0x3f);
      if ((byte & 0x3f) !== 0x3f) break;
    } else if (i === 6) {
      bytes[i] = 0x70 | ((byte + 1) & 0x0f);
      if ((byte & 0x0f) !== 0x0f) break;
    } else {
      bytes[i] = (byte + 1) & 0xff;
      if (byte !== 0xff) break;
    }
  }
  return readUuid(bytes);
}
