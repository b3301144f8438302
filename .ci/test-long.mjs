// Runs in full size the tests that have one, those that ask test/helpers/test-size.ts, and with them all other tests of faults and by fuzzing. Arguments
// are words of their paths, as for test.mjs.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const words = process.argv.slice(2);
const files = readdirSync("dist/test", { recursive: true })
  .filter((path) => path.endsWith(".test.js"))
  .map((path) => join("dist/test", path))
  .filter((path) => /\/(faults|fuzz)\//.test(path) || /\/test-size\.js"/.test(readFileSync(path, "utf8")))
  .filter((path) => words.length === 0 || words.some((word) => path.includes(word)));
if (files.length === 0) {
  console.error(`no test with a full size, of faults or by fuzzing matches: ${words.join(" ")}`);
  process.exit(1);
}
const result = spawnSync(process.execPath, [".ci/test.mjs", ...files], {
  stdio: "inherit",
  env: { ...process.env, TEST_SIZE: "full" },
});
process.exit(result.status ?? 1);
