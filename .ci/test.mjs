// Runs the compiled tests with tap: all of them, or those whose path contains one of the arguments. On a terminal tap draws its
// progress; elsewhere only failures show. In both cases the figures that tests print, what was skipped, and one closing line
// `N passed, N failed, N skipped` follow; before it, the files that took longest, since the whole is to stay within ten minutes.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
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

const tapOutput = "dist/test-output.tap";
mkdirSync("dist", { recursive: true });
const reporter = process.stdout.isTTY ? [] : ["--reporter=silent"];
/** Of one test file; .taprc has the limit for the usual sizes. */
const timeout = process.env.TEST_SIZE === "full" ? ["--timeout=21600"] : [];
const result = spawnSync(
  process.execPath,
  ["node_modules/tap/dist/esm/run.mjs", ...reporter, ...timeout, `--output-file=${tapOutput}`, ...files],
  { stdio: "inherit" },
);

// Counted from the TAP itself: the lowest assertions, those without an indented block of their own before them.
const counts = { passed: 0, failed: 0, skipped: 0 };
const secondsOfFiles = [];
let previousIndent = 0;
let file = "";
let failureIndent = -1;
for (const line of readFileSync(tapOutput, "utf8").split("\n")) {
  const [, indentText, text] = /^( *)(.*)$/.exec(line) ?? ["", "", ""];
  const indent = indentText.length;
  // A failure with its diagnosis: everything indented below it.
  if (text.startsWith("not ok") && !/ # (SKIP|TODO)\b/i.test(text)) {
    failureIndent = indent;
    console.log(`${file}:`);
  } else if (indent <= failureIndent && text !== "") {
    failureIndent = -1;
  }
  if (failureIndent >= 0 && !process.stdout.isTTY) console.log(line);
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
if (result.status !== 0 && counts.failed === 0) counts.failed = 1;
const slowest = secondsOfFiles.sort(([a], [b]) => b - a).slice(0, 12);
const sumSeconds = secondsOfFiles.reduce((sum, [seconds]) => sum + seconds, 0);
console.log(
  `${secondsOfFiles.length} files, ${sumSeconds.toFixed(0)} s one after another; longest: ` +
    slowest.map(([seconds, path]) => `${path.replace(/^.*dist\/test\//, "")} ${seconds.toFixed(0)} s`).join(", "),
);
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(result.status ?? 1);
