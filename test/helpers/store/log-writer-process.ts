/**
 * A process of its own that appends to a log until it is killed, and prints each acknowledgement before anything else happens:
 * `node log-writer-process.js <data directory> <name prefix>`.
 */
import { writeSync } from "node:fs";
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { Log } from "../../../storage/log/log.js";
import { recordOf } from "./log-harness.js";

/** All of it, also where the reader is slower: its pipe takes nothing for a moment then. */
function say(line: string): void {
  const bytes = Buffer.from(`${line}\n`);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
}

const [path = "", prefix = ""] = process.argv.slice(2);
const empty = new Uint8Array(0);
const directory = await openDataDirectory({ path, creates: true });
const log = await Log.open({
  fileSystem: nodeFileSystem,
  directory: directory.metaPath,
  quarantineDirectory: directory.quarantinePath,
  durability: "full",
  segmentBytes: 100_000,
  openingState: () => ({ index: empty, body: empty }),
  onRecords: () => {},
});
say("open");
let count = 0;
async function produce(): Promise<void> {
  for (;;) {
    const name = `${prefix}${count++}`;
    await log.whenCommitted(log.append(recordOf(name, 10 + ((count * 131) % 2_000))));
    say(name);
  }
}
await Promise.all(Array.from({ length: 16 }, produce));
