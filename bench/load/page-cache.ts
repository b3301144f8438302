import { readdirSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";

const READ_BYTES = 1024 * 1024;

/**
 * Reads what lies at a path once, so that the system's page cache holds it: some machines take back cached pages minutes after their
 * last use, and what says that it is about a warm cache must not measure the disk.
 *
 * @param path of a file, or of a folder, whose files are read, not those of folders in it
 */
export async function warmPageCache(path: string): Promise<void> {
  const paths = statSync(path).isDirectory()
    ? readdirSync(path, { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => join(path, name))
    : [path];
  // One piece of memory for all: garbage of this would be collected within what is measured.
  const piece = Buffer.allocUnsafeSlow(READ_BYTES);
  for (const one of paths) {
    const file = await open(one, "r");
    try {
      while ((await file.read(piece, 0, READ_BYTES)).bytesRead > 0);
    } finally {
      await file.close();
    }
  }
}
