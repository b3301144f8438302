import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../../core/service-errors.js";

/** What a key allows: reading, or also managing webhooks. */
export const KEY_SCOPES = ["read", "manage"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/** A key as the file stores it, without the secret itself. */
export interface StoredKey {
  id: string;
  /** Who or what the key is for, from `keys add --name`; null if not given. */
  name: string | null;
  scope: KeyScope;
  /** SHA-256 of the whole key, hex. The key has 256 random bits: a slow hash would add nothing. */
  sha256: string;
  created_at: string;
}

// The prefix makes a leaked key recognisable; the id says which entry it belongs to.
const KEY = /^isk_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;

/** 1 to 100 characters in one line, so that `keys list` shows one key a line. */
export function isKeyName(text: string): boolean {
  return text.length >= 1 && text.length <= 100 && !/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(text);
}

export class ApiKeysError extends Error {
  override name = "ApiKeysError";
}

/** A new key, to be shown once, and the entry to store for it. */
export function createKey(
  scope: KeyScope,
  createdAt: string,
  name: string | null = null,
): { key: string; stored: StoredKey } {
  const id = randomBytes(6).toString("hex");
  const key = `isk_${id}_${randomBytes(32).toString("base64url")}`;
  return { key, stored: { id, name, scope, sha256: hash("sha256", key), created_at: createdAt } };
}

/** @throws ApiKeysError that says what is wrong; it quotes nothing of the text but the names of fields */
export function parseKeys(text: string): StoredKey[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ApiKeysError("is not JSON");
  }
  const keys = (value as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) throw new ApiKeysError('must be a JSON object with a list "keys"');
  return keys.map((one: unknown, at) => {
    // Files of earlier releases have no names.
    const { id, name = null, scope, sha256, created_at } = (one ?? {}) as Record<string, unknown>;
    const wrong = (field: string) =>
      new ApiKeysError(`has a wrong keys[${at}].${field}, which \`keys add\` did not write`);
    if (typeof id !== "string" || !/^[0-9a-f]{12}$/.test(id)) throw wrong("id");
    if (name !== null && (typeof name !== "string" || !isKeyName(name))) throw wrong("name");
    if (scope !== "read" && scope !== "manage") throw wrong("scope");
    if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) throw wrong("sha256");
    if (typeof created_at !== "string") throw wrong("created_at");
    return { id, name, scope, sha256, created_at };
  });
}

export function formatKeys(keys: readonly StoredKey[]): string {
  return `${JSON.stringify({ keys }, undefined, 2)}\n`;
}

const KEY_WITHIN = /isk_([0-9a-f]{12})_[\w%-]+/g;

/**
 * The text for a log line: of a key in the wrong place, such as a query, only the id is shown. A text whose key is percent-encoded is shown
 * decoded.
 */
export function withoutKeys(text: string): string {
  const decoded = wholeDecoded(text);
  const hidden = decoded.replace(KEY_WITHIN, "isk_$1_…");
  return hidden === decoded ? text : hidden;
}

// Visible ASCII only, because keys have nothing else. Any other percent sign stays as it is.
const ENCODED = /^%(?:[2-6][0-9a-f]|7[0-9a-e])$/i;

/** Decodes text that was percent-encoded any number of times, in a single pass, so that no client can make it slow. */
function wholeDecoded(text: string): string {
  if (!text.includes("%")) return text;
  const decoded: string[] = [];
  for (let at = 0; at < text.length; at++) {
    decoded.push(text[at] as string);
    // A decoded character may complete an encoding that began before it: %25 in %2569, and the 5 of %2%35.
    while (decoded.at(-3) === "%") {
      const last = decoded.slice(-3).join("");
      if (!ENCODED.test(last)) break;
      decoded.splice(-3, 3, String.fromCharCode(Number.parseInt(last.slice(1), 16)));
    }
  }
  return decoded.join("");
}

/** Compared with if no entry has the key's id, so that an unknown id takes as long as a known one. */
const NOBODY = Buffer.alloc(32);

/** The keys that are accepted now. */
export class ApiKeys {
  #keys = new Map<string, { scope: KeyScope; sha256: Buffer }>();
  #fault: string | null = null;
  /** Called when a key that was accepted is so no longer: what it has opened must end. */
  onRemoved = (): void => {};

  constructor(keys: readonly StoredKey[]) {
    this.replace(keys);
  }

  /** Why no key is accepted at the moment, for people; null while keys are accepted. */
  get fault(): string | null {
    return this.#fault;
  }

  replace(keys: readonly StoredKey[]): void {
    const before = this.#keys;
    this.#keys = new Map(keys.map(({ id, scope, sha256 }) => [id, { scope, sha256: Buffer.from(sha256, "hex") }]));
    this.#fault = null;
    const isRemoved = ([id, { sha256 }]: [string, { sha256: Buffer }]) => !this.#keys.get(id)?.sha256.equals(sha256);
    if ([...before].some(isRemoved)) this.onRemoved();
  }

  /** Refuses every key until `replace`, as nobody knows which keys are still valid. @param fault why, for people */
  suspend(fault: string): void {
    this.#fault = fault;
    this.onRemoved();
  }

  /**
   * @param authorization the request's header
   * @param evenSuspended accept keys that were valid before `suspend`: only for /health, so that a monitor sees what is wrong
   * @throws ServiceError unauthorized without a valid key; forbidden if its scope is too small. Neither shows what was sent
   */
  check(authorization: string | undefined, needed: KeyScope, evenSuspended = false): void {
    const shown = { field: "authorization", in: "header", value: null, allowed: "Bearer, a space and an API key" };
    if (authorization === undefined) throw new ServiceError("unauthorized", "an API key is needed", shown);
    if (this.#fault !== null && !evenSuspended) {
      throw new ServiceError(
        "unauthorized",
        "no API key is accepted at the moment, because the service cannot use its key file",
        shown,
      );
    }
    const key = /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "";
    const entry = this.#keys.get(KEY.exec(key)?.[1] ?? "");
    const isSame = timingSafeEqual(Buffer.from(hash("sha256", key), "hex"), entry?.sha256 ?? NOBODY);
    if (entry === undefined || !isSame) throw new ServiceError("unauthorized", "the API key is not valid", shown);
    if (needed === "manage" && entry.scope !== "manage") {
      throw new ServiceError("forbidden", "the API key may only read: this needs a key with the scope manage", {
        scope: entry.scope,
        needed,
      });
    }
  }
}
