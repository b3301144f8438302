/** MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md) of JSON values: bodies of records and of the cell link's frames. */
import { decode, decodeMulti, Encoder } from "@msgpack/msgpack";
import { isPlainObject } from "../../core/json/json.js";
import { RecordDecodeError } from "./record-decode-error.js";

const ENCODER_OPTIONS = { ignoreUndefined: true };
/** The encoder keeps its buffer. One that a large value has grown beyond this is given up: a run's end may take 16 MiB. */
const KEPT_BYTES = 1024 * 1024;
const BYTE_ORDER_MARK = Buffer.from("\ufeff");

let encoder = new Encoder(ENCODER_OPTIONS);
const textDecoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Encodes each value in its shortest form. A property that is undefined is left out.
 *
 * @param value holds what JSON has
 */
export function encodeMessagePack(value: unknown): Uint8Array<ArrayBuffer> {
  const bytes = encoder.encode(value);
  if (bytes.length > KEPT_BYTES) encoder = new Encoder(ENCODER_OPTIONS);
  return bytes;
}

/** @throws {Error} The bytes are not one MessagePack value. */
export function decodeMessagePack(bytes: Uint8Array): unknown {
  const options = decoderOptions(bytes);
  const value = decode(bytes, options);
  return options.rawStrings ? withTexts(value) : value;
}

/** Decodes values that follow each other, one at a time. @throws {Error} The bytes are not MessagePack. */
export function* decodeMessagePackValues(bytes: Uint8Array): Generator<unknown, void> {
  const options = decoderOptions(bytes);
  for (const value of decodeMulti(bytes, options)) yield options.rawStrings ? withTexts(value) : value;
}

/** @throws RecordDecodeError when the bytes are not one MessagePack map */
export function decodeMap(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = decodeMessagePack(bytes);
  } catch (error) {
    throw new RecordDecodeError(`the body is not MessagePack: ${String(error)}`);
  }
  if (!isPlainObject(value)) throw new RecordDecodeError("the body is not a map");
  return value;
}

/**
 * The decoder takes memory for a list when it has read the list's head, so a list may not claim more items than there are bytes. It also drops
 * a byte order mark at the start of a long text. Where there may be one, texts are read as bytes and decoded here.
 */
function decoderOptions(bytes: Uint8Array) {
  const rawStrings = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(BYTE_ORDER_MARK);
  return { maxArrayLength: bytes.length, rawStrings, ...(rawStrings && { keyDecoder: EXACT_KEYS }) };
}

const EXACT_KEYS = {
  canBeCached: () => true,
  decode: (bytes: Uint8Array, start: number, length: number) =>
    textDecoder.decode(bytes.subarray(start, start + length)),
};

function withTexts(value: unknown): unknown {
  if (value instanceof Uint8Array) return textDecoder.decode(value);
  if (Array.isArray(value)) return value.map(withTexts);
  if (!isPlainObject(value)) return value;
  for (const key of Object.keys(value)) value[key] = withTexts(value[key]);
  return value;
}
