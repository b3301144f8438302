/**
 * Reads the body of a cell-link frame: MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md) that holds a map of
 * JSON values, and nothing else.
 *
 * The library's decoder is made for trusted input. It allocates what an array's head claims (5 bytes ask for 8 MB, and can nest), turns
 * number keys into text, keeps one of two equal keys, rounds 64-bit integers and repairs broken UTF-8. Each of these would store
 * something else than the producer sent, so here each is a fault that names its place.
 */
import { isUtf8 } from "node:buffer";
import type { JsonObject, JsonValue } from "../../core/json/json.js";
import { LIMITS } from "../../core/limits.js";
import { MessagePackReader } from "../../storage/records/message-pack-reader.js";

/** A free-form value may be some levels deep in its message (`check.metadata.x`). */
const DEPTH_LIMIT = LIMITS.jsonDepth + 8;

export interface BodyFault {
  message: string;
  /** `path` is a JSON Pointer, empty for the body itself. */
  params: { path: string; value: JsonValue; allowed: string };
}

/** `depth` is the level of the deepest map or list. The body itself is at 0. */
export type DecodedBody = { ok: true; body: JsonObject; depth: number } | { ok: false; fault: BodyFault };

/** Decodes a whole body. Bytes after the map are a fault too. Never throws for what the bytes contain. */
export function decodeBody(bytes: Uint8Array): DecodedBody {
  const reader = new Reader(bytes);
  try {
    const body = reader.readBody();
    return { ok: true, body, depth: reader.depth };
  } catch (error) {
    if (!(error instanceof BodyFaultError)) throw error;
    return { ok: false, fault: error.fault };
  }
}

class BodyFaultError extends Error {
  readonly fault: BodyFault;

  constructor(fault: BodyFault) {
    super(fault.message);
    this.fault = fault;
  }
}

class Reader extends MessagePackReader {
  /** Keys and indexes that lead to the value being read. A fault names them as its path. */
  readonly #path: (string | number)[] = [];
  #depth = 0;

  constructor(bytes: Uint8Array) {
    super();
    this.begin(bytes);
  }

  get depth(): number {
    return this.#depth;
  }

  readBody(): JsonObject {
    const head = this.bytes[0];
    if (head === undefined) this.#fail("an empty body", null, "a MessagePack map");
    if (!((head >= 0x80 && head <= 0x8f) || head === 0xde || head === 0xdf)) {
      this.#fail("a body that is not a map", head, "a MessagePack map");
    }
    const body = this.readValue() as JsonObject;
    if (this.at !== this.bytes.length) {
      this.#fail("bytes after the map", this.bytes.length - this.at, "nothing after the map");
    }
    return body;
  }

  #fail(what: string, value: JsonValue, allowed: string): never {
    let path = "";
    for (const part of this.#path) path += `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const params = { path, value, allowed };
    throw new BodyFaultError({ message: `${what}${path === "" ? "" : ` at ${path}`}: allowed is ${allowed}`, params });
  }

  protected override failAtEnd(length: number): never {
    const left = this.bytes.length - this.at;
    return this.#fail("a value that goes beyond the body", length, `at most the ${left} bytes left`);
  }

  protected override failOfType(head: number): never {
    return this.#fail("a MessagePack type that JSON does not have", head, "JSON values only, no bin or ext");
  }

  protected override failOfKey(head: number): never {
    return this.#fail("a key that is not a string", head, "string keys");
  }

  protected override float(value: number): number {
    if (!Number.isFinite(value)) this.#fail("a number that is not finite", String(value), "a finite number");
    return value;
  }

  protected override wideInteger(value: number, isSigned: boolean): number {
    if (Number.isSafeInteger(value)) return value;
    const at = this.at - 8;
    const exact = isSigned ? this.bytes.readBigInt64BE(at) : this.bytes.readBigUInt64BE(at);
    return this.#fail(
      "an integer that no JSON number holds exactly",
      String(exact),
      "an integer between -2^53 and 2^53",
    );
  }

  protected override textFrom(start: number): string {
    const text = this.bytes.toString("utf8", start, this.at);
    // As many characters as bytes, and no replacement character: the text is ASCII.
    if (text.length === this.at - start && !text.includes("\ufffd")) return text;
    const slice = this.bytes.subarray(start, this.at);
    if (!isUtf8(slice)) this.#fail("text that is not UTF-8", slice.toString("latin1").slice(0, 64), "UTF-8");
    return text;
  }

  protected override readList(count: number): JsonValue[] {
    this.#enter(count, 1);
    const items: JsonValue[] = [];
    const depth = this.#path.length;
    for (let i = 0; i < count; i++) {
      this.#path[depth] = i;
      items.push(this.readValue());
    }
    this.#path.length = depth;
    return items;
  }

  protected override readMap(count: number): JsonObject {
    this.#enter(count, 2);
    const map: JsonObject = {};
    const depth = this.#path.length;
    for (let i = 0; i < count; i++) {
      const key = this.readKey();
      if (key === "__proto__") this.#fail("the key __proto__", key, "any other key");
      if (Object.hasOwn(map, key)) this.#fail("a key that occurs twice", key, "each key once");
      this.#path[depth] = key;
      map[key] = this.readValue();
      this.#path.length = depth;
    }
    return map;
  }

  #enter(count: number, bytesPerItem: number): void {
    const depth = this.#path.length;
    if (depth >= DEPTH_LIMIT) this.#fail("a value nested too deeply", depth, `at most ${DEPTH_LIMIT} levels`);
    if (depth > this.#depth) this.#depth = depth;
    const left = this.bytes.length - this.at;
    if (count * bytesPerItem > left) {
      this.#fail("a count that goes beyond the body", count, `at most what the ${left} bytes left can hold`);
    }
  }
}
