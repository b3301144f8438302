// Installs the locked dependencies when, and only when, node_modules does not already hold them: `npm start` and
// `npm test` call this first, so that a fresh clone needs nothing else, and a warm one starts at once.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const stamp = "node_modules/.installed-lock-sha256";
const lockSha256 = createHash("sha256").update(readFileSync("package-lock.json")).update(process.version).digest("hex");

function isInstalled() {
  try {
    return readFileSync(stamp, "utf8") === lockSha256;
  } catch {
    return false;
  }
}

if (!isInstalled()) {
  console.error("installing the locked dependencies …");
  // npm calls itself here: without the outer run's settings, which can differ (npm start -- --data X).
  const result = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { stdio: ["ignore", 2, 2] });
  if (result.status !== 0) {
    console.error("npm ci failed: see above");
    process.exit(1);
  }
  writeFileSync(stamp, lockSha256);
}
