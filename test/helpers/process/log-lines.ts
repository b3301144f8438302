/** The JSON lines among these that have a key more than once. A last line that was cut off counts as far as it came. */
export function repeatedKeys(stderr: string): string[] {
  return stderr.split("\n").filter((line) => {
    if (!line.startsWith("{")) return false;
    const keys = topKeys(line);
    return new Set(keys).size < keys.length;
  });
}

/** Without JSON.parse, which keeps the last of two. */
function topKeys(line: string): string[] {
  const keys: string[] = [];
  let depth = 0;
  for (const [, text, colon, opening, closing] of line.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|([{[])|([}\]])/g)) {
    if (opening !== undefined) depth++;
    else if (closing !== undefined) depth--;
    else if (depth === 1 && colon !== undefined) keys.push(text as string);
  }
  return keys;
}
