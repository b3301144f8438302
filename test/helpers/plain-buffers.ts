/** Every buffer in a value that is copied when the value goes to another thread, if it is not moved: those of memory that threads share are none. */
export function plainBuffersIn(value: unknown, seen = new Set<unknown>()): ArrayBuffer[] {
  if (typeof value !== "object" || value === null || seen.has(value)) return [];
  seen.add(value);
  if (value instanceof ArrayBuffer) return [value];
  if (ArrayBuffer.isView(value)) return plainBuffersIn(value.buffer, seen);
  return Reflect.ownKeys(value).flatMap((key) => plainBuffersIn((value as Record<PropertyKey, unknown>)[key], seen));
}
