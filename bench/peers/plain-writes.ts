import { closeSync, fdatasync, openSync, rmSync, write } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { RoundSample } from "../harness/benchmark.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";

const writeAsync = promisify(write);
const fdatasyncAsync = promisify(fdatasync);

/** The sizes of the groups that became durable together, in order. A group is what one read from the socket acknowledges. */
export type Groups = number[];

/**
 * The peer of durable messages. It writes the bytes of each group to a fresh file by one write, then calls fdatasync, both in Node's thread pool, as
 * the service does. It has no link and no state. Each size has a file of its own: first the bytes, then the records that name them.
 * `value` of the sample is messages a second; its latency is that of a group.
 *
 * @param sizesBytes size of one message in each file
 */
export async function writePlainly(
  directory: string,
  groups: Groups,
  sizesBytes: readonly number[],
): Promise<RoundSample> {
  const largest = Math.max(...groups);
  const files = sizesBytes.map((sizeBytes, nth) => {
    const path = join(directory, `plain-${nth}`);
    const bytes = new Uint8Array(largest * sizeBytes).map((_, at) => (at * 2_654_435_761) >>> 24);
    return { path, sizeBytes, bytes, descriptor: openSync(path, "wx", 0o600), position: 0 };
  });
  try {
    const latency = new LatencyHistogram();
    const startMs = performance.now();
    for (const count of groups) {
      const groupMs = performance.now();
      for (const file of files) {
        const length = count * file.sizeBytes;
        const { bytesWritten } = await writeAsync(file.descriptor, file.bytes, 0, length, file.position);
        if (bytesWritten !== length) throw new Error(`the disk took ${bytesWritten} of ${length} bytes`);
        await fdatasyncAsync(file.descriptor);
        file.position += length;
      }
      latency.record((performance.now() - groupMs) * 1e6, count);
    }
    const seconds = (performance.now() - startMs) / 1000;
    const messages = groups.reduce((sum, count) => sum + count, 0);
    const details = { "messages/commit": messages / groups.length };
    return { value: messages / seconds, seconds, latency: latency.toData(), details };
  } finally {
    for (const { path, descriptor } of files) {
      closeSync(descriptor);
      rmSync(path);
    }
  }
}
