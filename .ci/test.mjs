// Runs the compiled tests: all of them, or those whose path contains one of the arguments. It names each file that fails as soon as it ends; on
// a terminal it names every file. Then it prints all failures, the figures that tests print, what was skipped, the files that took longest,
// and one closing line `N passed, N failed, N skipped`. The whole should take at most fifteen minutes.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runTestFiles } from "./run-test-files.mjs";

/** They begin first, so that none of them ends alone. Hostile clients come after the browsers: both take all of a machine. */
const LONGEST = ["browser/", "contract/plant/", "contract/start/package", "contract/package/", "faults/hostile-hour"];
const rankOf = (file) => [...LONGEST, ""].findIndex((path) => file.startsWith(join("dist/test", path)));

const words = process.argv.slice(2);
const files = readdirSync("dist/test", { recursive: true })
  .filter((path) => path.endsWith(".test.js"))
  .map((path) => join("dist/test", path))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort()
  .sort((a, b) => rankOf(a) - rankOf(b));
if (files.length === 0) {
  console.error(`no test file matches: ${words.join(" ")}`);
  process.exit(1);
}

const beginMs = performance.now();
const tapOutput = "dist/test-output.tap";
const isTerminal = process.stdout.isTTY;
const { ok, failedFiles, tap } = await runTestFiles(files, {
  // A file waits for about half of its time, so three keep the two cores busy that a shared machine has.
  jobs: Number(process.env.TEST_JOBS ?? 3),
  timeoutSeconds: process.env.TEST_SIZE === "full" ? 21_600 : 600, // of one file; the longest plays hostile clients for five minutes, then waits up to four
  onEnd(file, isOk, seconds) {
    if (isTerminal || !isOk) console.log(`${isOk ? "ok    " : "NOT OK"} ${seconds.toFixed(1).padStart(6)} s  ${file}`);
  },
});
writeFileSync(tapOutput, tap);

// Counted from the TAP itself: the lowest assertions, those without an indented block of their own before them.
const counts = { passed: 0, failed: 0, skipped: 0 };
const secondsOfFiles = [];
let previousIndent = 0;
let file = "";
let failureIndent = -1;
for (const line of tap.split("\n")) {
  const [, indentText, text] = /^( *)(.*)$/.exec(line) ?? ["", "", ""];
  const indent = indentText.length;
  // A failure with its diagnosis: everything indented below it.
  if (text.startsWith("not ok") && !/ # (SKIP|TODO)\b/i.test(text)) {
    failureIndent = indent;
    console.log(`${file}:`);
  } else if (indent <= failureIndent && text !== "") {
    failureIndent = -1;
  }
  if (failureIndent >= 0) console.log(line);
  const subtest = /^# Subtest: (.*)$/.exec(text);
  if (subtest) {
    if (indent === 0) file = subtest[1];
    continue;
  }
  if (/^# (?!time=|No coverage|\{|Subtest)/.test(text) && indent > 0) console.log(`${file}: ${text.slice(2)}`);
  const assertion = /^(not )?ok \d+(.*)$/.exec(text);
  if (!assertion) continue;
  const ended = indent === 0 && / # time=([\d.]+)(ms|s|m)\b/.exec(assertion[2]);
  if (ended) secondsOfFiles.push([Number(ended[1]) * { ms: 0.001, s: 1, m: 60 }[ended[2]], file]);
  const closesSubtest = previousIndent > indent;
  previousIndent = indent;
  if (/ # SKIP\b/i.test(assertion[2])) {
    counts.skipped++;
    console.log(`skipped: ${file}:${assertion[2]}`);
  } else if (!closesSubtest) {
    counts[assertion[1] === undefined ? "passed" : "failed"]++;
  }
}
// A file that crashed or timed out can leave no failed assertion behind.
counts.failed = Math.max(counts.failed, failedFiles);
const slowest = secondsOfFiles.sort(([a], [b]) => b - a).slice(0, 12);
const sumSeconds = secondsOfFiles.reduce((sum, [seconds]) => sum + seconds, 0);
console.log(
  `${secondsOfFiles.length} files in ${((performance.now() - beginMs) / 1000).toFixed(0)} s, ${sumSeconds.toFixed(0)} s one after another; longest: ` +
    slowest.map(([seconds, path]) => `${path.replace(/^.*dist\/test\//, "")} ${seconds.toFixed(0)} s`).join(", "),
);
const WHOLE_SUITE_SECONDS = 900;
const seconds = (performance.now() - beginMs) / 1000;
if (words.length === 0 && process.env.TEST_SIZE !== "full" && seconds > WHOLE_SUITE_SECONDS) {
  console.log(`warning: the suite took ${seconds.toFixed(0)} s, but should take at most ${WHOLE_SUITE_SECONDS}`);
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(ok ? 0 : 1);
