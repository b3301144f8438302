/**
 * The bytes that a Range header asks for (RFC 9110, section 14.1.2). Undefined if the whole file is to be sent: no header, another unit,
 * several ranges, a malformed range, or the end of an empty file.
 */
export function parseRange(
  header: string | undefined,
  totalBytes: number,
): { first: number; last: number } | "unsatisfiable" | undefined {
  // Any number of digits: some clients ask for the rest of a file with the largest number that they know.
  const match = /^bytes=[ \t]*(?:(\d+)-(\d*)|-(\d+))[ \t]*$/i.exec(header ?? "");
  if (match === null) return undefined;
  const [, from = "", to = "", suffix] = match;
  if (suffix !== undefined) {
    const lengthBytes = Math.min(Number(suffix), totalBytes);
    if (lengthBytes > 0) return { first: totalBytes - lengthBytes, last: totalBytes - 1 };
    // The end of an empty file is the whole file, which a 206 cannot express.
    return Number(suffix) > 0 ? undefined : "unsatisfiable";
  }
  const first = Number(from);
  const last = to === "" ? totalBytes - 1 : Math.min(Number(to), totalBytes - 1);
  if (to !== "" && BigInt(to) < BigInt(from)) return undefined;
  return first >= totalBytes ? "unsatisfiable" : { first, last };
}
