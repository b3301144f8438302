/** Takes a data directory, prints `held` or the refusal, and keeps it until killed: `node lock-holder-process.js <data directory>`. */
import { writeSync } from "node:fs";
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { StorageError } from "../../../storage/storage-error.js";

try {
  await openDataDirectory({ path: process.argv[2] ?? "", creates: true });
  writeSync(1, "held\n");
  setInterval(() => {}, 60_000);
} catch (error) {
  if (!(error instanceof StorageError)) throw error;
  writeSync(1, `${JSON.stringify(error.data)}\n`);
}
