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
  // Not `npm ci`: it refuses the lock file where the registry at hand lacks a package of another platform, which is optional
  // and left out of the lock then. `npm install` takes the locked versions all the same; --no-save leaves the lock file alone.
  const options = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"];
  const result = spawnSync("npm", options, { stdio: ["ignore", 2, 2] });
  if (result.status !== 0) {
    console.error("npm install failed: see above");
    process.exit(1);
  }
  writeFileSync(stamp, lockSha256);
}
