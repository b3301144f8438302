// Runs the compiled tests with tap: all of them, or those whose path contains one of the arguments.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

function testFiles(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return testFiles(path);
    return entry.name.endsWith(".test.js") ? [path] : [];
  });
}

const words = process.argv.slice(2);
const files = testFiles("dist/test")
  .sort()
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)));
if (files.length === 0) {
  console.error(`no test file matches: ${words.join(" ")}`);
  process.exit(1);
}
const result = spawnSync(process.execPath, ["node_modules/tap/dist/esm/run.mjs", ...files], { stdio: "inherit" });
process.exit(result.status ?? 1);
