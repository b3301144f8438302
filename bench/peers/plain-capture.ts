import { closeSync, fdatasync, openSync, rmSync, write } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

/** A log record that names a batch: header, index section, extent. */
const RECORD_BYTES = 256;

const writeAsync = promisify(write);
const fdatasyncAsync = promisify(fdatasync);

export interface PlainCapture {
  /** Makes `count` batches durable together. */
  writeGroup(count: number): Promise<void>;
  /** Closes the files and removes them. */
  remove(): void;
}

/**
 * The peer of the capture benchmarks: the batches of a group into one file, fdatasync, then a small record for each into another
 * file, fdatasync. That is what "bytes durable before the record that names them" costs on a disk, without link and state machine.
 */
export function openPlainCapture(directory: string, batch: Uint8Array): PlainCapture {
  const paths = [join(directory, "plain.cap"), join(directory, "plain.log")] as const;
  const [captures, records] = [openSync(paths[0], "wx", 0o600), openSync(paths[1], "wx", 0o600)];
  const append = async (descriptor: number, bytes: Uint8Array, position: number): Promise<number> => {
    const { bytesWritten } = await writeAsync(descriptor, bytes, 0, bytes.length, position);
    if (bytesWritten !== bytes.length) throw new Error(`the disk took ${bytesWritten} of ${bytes.length} bytes`);
    return position + bytesWritten;
  };
  let captured = 0;
  let recorded = 0;
  return {
    async writeGroup(count) {
      for (let i = 0; i < count; i++) captured = await append(captures, batch, captured);
      await fdatasyncAsync(captures);
      recorded = await append(records, new Uint8Array(count * RECORD_BYTES), recorded);
      await fdatasyncAsync(records);
    },
    remove() {
      closeSync(captures);
      closeSync(records);
      for (const path of paths) rmSync(path);
    },
  };
}
