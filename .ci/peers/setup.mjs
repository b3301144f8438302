// Installs what benchmarks stand beside (.ci/peers/package.json), where that is possible: a native module whose binary is
// fetched, or built where a compiler is. Without it everything works, and the benchmarks say which peer is missing. An attempt
// that failed is not repeated until .ci/peers/node_modules is removed, or the lock file or Node changes.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const directory = ".ci/peers";
const stamp = `${directory}/node_modules/.attempted-lock-sha256`;
const lockSha256 = createHash("sha256")
  .update(readFileSync(`${directory}/package-lock.json`))
  .update(process.version)
  .digest("hex");

function wasAttempted() {
  try {
    return readFileSync(stamp, "utf8") === lockSha256;
  } catch {
    return false;
  }
}

if (!wasAttempted()) {
  console.error("installing the peers of the benchmarks …");
  const options = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"];
  const result = spawnSync("npm", options, { cwd: directory, stdio: ["ignore", "ignore", "ignore"], timeout: 300_000 });
  if (result.status !== 0) console.error("a peer could not be installed: benchmarks that need it say so");
  mkdirSync(`${directory}/node_modules`, { recursive: true });
  writeFileSync(stamp, lockSha256);
}
