/**
 * Passes bytes on, and says how many there have been.
 *
 * @param most with more of them the stream breaks off with this error
 */
export function countedStream(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  onProgress: (readBytes: number) => void,
  most?: { bytes: number; error: Error },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let readBytes = 0;
  return body.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        readBytes += chunk.length;
        if (most !== undefined && readBytes > most.bytes) throw most.error;
        onProgress(readBytes);
        controller.enqueue(chunk);
      },
    }),
  );
}
