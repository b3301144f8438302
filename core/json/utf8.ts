/** A text's UTF-8 in memory of its own: Buffer.from puts small ones into shared pieces of 8 KiB, all of which would be kept with what is kept of one. */
export function ownUtf8(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
