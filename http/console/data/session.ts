/** The API key, where the service needs one. It stays in this tab: the session storage ends with it. */
import { signal } from "@preact/signals";
import { dropText, keepText, keptText } from "../site-data.js";

const STORED = "inspection-api-key";

/** Undefined: none was given, and perhaps none is needed. */
export const apiKey = signal<string | undefined>(keptText("sessionStorage", STORED));

/** The service has refused to answer without a (valid) key: the page asks for one. */
export const isKeyWanted = signal(false);

/** Set when the service has refused a write, because the key may only read. */
export const isReadOnly = signal(false);

export function useKey(key: string): void {
  keepText("sessionStorage", STORED, key);
  apiKey.value = key;
  isKeyWanted.value = false;
  isReadOnly.value = false;
}

/** Forgets the key. What the page has read with it must be forgotten too: see `forgetAll` in resource.ts. */
export function forgetKey(): void {
  dropText("sessionStorage", STORED);
  apiKey.value = undefined;
  isKeyWanted.value = true;
  isReadOnly.value = false;
}
