import { LIMITS } from "../limits.js";
import { isPlainObject } from "./json.js";

export interface NonJson {
  /** JSON Pointer (RFC 6901); empty for the whole value. */
  path: string;
  value: unknown;
  allowed: string;
}

/** A key, escaped as a part of a JSON Pointer (RFC 6901). */
export function pointerPart(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/**
 * Finds the first value that JSON cannot hold: NaN, an infinity, binary, an extension type, ill-formed Unicode, or one nested too deep. The key
 * `__proto__` counts too: a record with it could not be decoded again, and many JSON readers drop it.
 * The path is built on the way back up, so a valid message costs nothing for it.
 */
export function findNonJson(value: unknown, depth: number): NonJson | undefined {
  if (value === null || typeof value === "boolean") return undefined;
  if (typeof value === "number") {
    return Number.isFinite(value) ? undefined : { path: "", value, allowed: "a finite number" };
  }
  if (typeof value === "string") {
    return value.isWellFormed() ? undefined : { path: "", value, allowed: "well-formed Unicode text" };
  }
  if (depth >= LIMITS.jsonDepth) return { path: "", value: "…", allowed: `at most ${LIMITS.jsonDepth} levels deep` };
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const fault = findNonJson(value[i], depth + 1);
      if (fault !== undefined) return within(String(i), fault);
    }
    return undefined;
  }
  if (!isPlainObject(value)) {
    return { path: "", value: typeof value, allowed: "a JSON value (no binary, no extension type)" };
  }
  for (const key in value) {
    if (key === "__proto__")
      return { path: "/__proto__", value: null, allowed: "absent: the key __proto__ is not allowed" };
    if (!key.isWellFormed()) return { path: "", value: key, allowed: "keys of well-formed Unicode text" };
    const fault = findNonJson(value[key], depth + 1);
    if (fault !== undefined) return within(key, fault);
  }
  return undefined;
}

function within(key: string, fault: NonJson): NonJson {
  return { ...fault, path: `/${pointerPart(key)}${fault.path}` };
}
