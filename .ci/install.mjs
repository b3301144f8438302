import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { runQuietly, stage } from "./stage.mjs";

const stamp = "node_modules/.installed-lock-sha256";

/** @param {"product" | "all"} scope */
export async function install(scope) {
  const lockSha256 = createHash("sha256")
    .update(readFileSync("package-lock.json"))
    .update(process.version)
    .digest("hex");
  const installed = existsSync(stamp) ? readFileSync(stamp, "utf8") : "";
  if (installed === `${lockSha256} all` || installed === `${lockSha256} ${scope}`) return;
  // `--omit=dev` would remove the tools of tests that an earlier install brought.
  const what = existsSync("node_modules/tap") ? "all" : scope;
  // Not `npm ci`: it refuses the lock file where the registry at hand lacks a package of another platform, which is optional
  // and left out of the lock then. `npm install` takes the locked versions all the same; --no-save leaves the lock file alone.
  // --ignore-scripts: no dependency needs its own, and our `prepare` would build within the install.
  const args = ["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  if (what === "product") args.push("--omit=dev");
  const { ok, output } = await stage("installing (locked versions)", () => runQuietly("npm", args));
  if (!ok) {
    process.stderr.write(`${output}npm install failed: see above\n`);
    process.exit(1);
  }
  writeFileSync(stamp, `${lockSha256} ${what}`);
}
