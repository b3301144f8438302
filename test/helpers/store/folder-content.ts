import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One hash for the names and bytes of all files in the folder. */
export function hashOfFolder(folder: string): string {
  const hash = createHash("sha256");
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort()) {
    hash.update(`${name}\n`);
    try {
      hash.update(readFileSync(join(folder, name)));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EISDIR") throw error;
    }
  }
  return hash.digest("hex");
}
