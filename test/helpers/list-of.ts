/** For patterns of `t.match`: a list of just these items. A list in a pattern holds of every longer one that begins like it, too. */
export function listOf(...items: readonly unknown[]): object {
  return { ...items, length: items.length };
}
