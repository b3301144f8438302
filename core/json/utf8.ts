/** A text as UTF-8, in memory of its own. Buffer.from puts small texts into shared 8 KiB buffers, and one kept text would keep the whole buffer. */
export function ownUtf8(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}
