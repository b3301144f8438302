// Prints how large the code is: lines by part, and the files, functions and folders that are larger than CONTRIBUTING allows. It fails
// where a line of .ci/size-bounds.json is exceeded. `lower` writes the bounds down to what is reached; nothing here raises one.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const BOUNDS_FILE = new URL("./size-bounds.json", import.meta.url);
const MOST_LINES = 400;
const MOST_FUNCTION_LINES = 70;
const MOST_FILES = 16;
const CODE = /\.(tsx?|mjs|css)$/;
/** Collected inputs, and the table of seeded faults: nobody reads these from top to bottom. */
const DATA = /^test\/(fuzz\/corpus\/|helpers\/mutants\/store-mutants\.ts$)/;

/** The first that fits. */
const PARTS = [
  ["console", /^http\/console\//],
  ["product", /^(core|storage|workers|http)\//],
  ["bench", /^bench\//],
  ["test", /^test\//],
  ["rest", /^/],
];

function partOf(path) {
  return PARTS.find(([, pattern]) => pattern.test(path))[0];
}

function lineCount(text) {
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

/** Sums by part. @param items each with its path and its count */
function byPart(items) {
  const sums = {};
  for (const { path, count } of items) sums[partOf(path)] = (sums[partOf(path)] ?? 0) + count;
  return sums;
}

function codeLines(files) {
  return [...files].filter(([path]) => CODE.test(path)).map(([path, text]) => ({ path, count: lineCount(text) }));
}

/** Code and Markdown, but not data, of over 400 lines. */
export function longFiles(files) {
  return [...files]
    .filter(([path]) => (CODE.test(path) || path.endsWith(".md")) && !DATA.test(path))
    .map(([path, text]) => ({ path, count: lineCount(text) }))
    .filter(({ count }) => count > MOST_LINES);
}

function functionsOf(path, text) {
  const found = [];
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true);
  const lineOf = (place) => source.getLineAndCharacterOfPosition(place).line + 1;
  const visit = (node) => {
    if (ts.isFunctionLike(node) && node.body !== undefined) {
      const line = lineOf(node.getStart());
      found.push({ path: `${path}:${line}`, count: lineOf(node.end) - line + 1 });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Functions of over 70 lines, each by its file and first line. */
export function longFunctions(files) {
  return [...files]
    .filter(([path]) => /\.(tsx?|mjs)$/.test(path))
    .flatMap(([path, text]) => functionsOf(path, text))
    .filter(({ count }) => count > MOST_FUNCTION_LINES);
}

/** Folders of over 16 files that are not data; files in folders below do not count. */
export function fullFolders(paths) {
  const counts = new Map();
  for (const path of paths) {
    const folder = posix.dirname(path);
    if (!DATA.test(path)) counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .map(([folder, count]) => ({ path: `${folder}/`, count }))
    .filter(({ count }) => count > MOST_FILES);
}

/** What is too large, with the sums that have a bound: lines by part, and what is beyond 400 lines, 70 lines or 16 files. */
export function sizeOf(files) {
  const tooLarge = {
    "lines beyond 400 of files": [longFiles(files), MOST_LINES],
    "lines beyond 70 of functions": [longFunctions(files), MOST_FUNCTION_LINES],
    "files beyond 16 of folders": [fullFolders(files.keys()), MOST_FILES],
  };
  const sums = { "lines of code": byPart(codeLines(files)) };
  for (const [what, [items, most]] of Object.entries(tooLarge)) {
    sums[what] = byPart(items.map(({ path, count }) => ({ path, count: count - most })));
  }
  const places = Object.fromEntries(Object.entries(tooLarge).map(([what, [items]]) => [what, items]));
  return { sums, places };
}

/** A line for each sum that exceeds its bound; a sum without one has the bound 0. */
export function excesses(sums, bounds) {
  return Object.entries(sums).flatMap(([what, parts]) =>
    Object.entries(parts)
      .filter(([part, count]) => count > (bounds[what]?.[part] ?? 0))
      .map(([part, count]) => `${part}: ${count} ${what}, and at most ${bounds[what]?.[part] ?? 0} are allowed`),
  );
}

/** The bounds, none above what is reached. */
export function lowered(sums, bounds) {
  const lower = ([what, parts]) => {
    const kept = Object.entries(parts).filter(([part]) => part in sums[what]);
    return [what, Object.fromEntries(kept.map(([part, bound]) => [part, Math.min(bound, sums[what][part])]))];
  };
  return Object.fromEntries(Object.entries(bounds).map(lower));
}

function trackedFiles() {
  const listed = execFileSync("git", ["ls-files", "-z"], { encoding: "utf8", maxBuffer: 1 << 24 });
  const paths = listed.split("\0").filter((path) => path !== "" && existsSync(path));
  return new Map(paths.map((path) => [path, readFileSync(path, "utf8")]));
}

function main() {
  const { sums, places } = sizeOf(trackedFiles());
  const bounds = JSON.parse(readFileSync(BOUNDS_FILE, "utf8"));
  const print = (count, what) => console.log(`${String(count).padStart(7)}  ${what}`);
  for (const [what, parts] of Object.entries(sums)) {
    console.log(`${what}:`);
    for (const [part, count] of Object.entries(parts)) print(count, `${part}, of at most ${bounds[what]?.[part] ?? 0}`);
    for (const { path, count } of places[what] ?? []) print(count, `  ${path}`);
  }
  if (process.argv[2] === "lower") {
    writeFileSync(BOUNDS_FILE, `${JSON.stringify(lowered(sums, bounds), undefined, 2)}\n`);
  }
  const lines = excesses(sums, bounds);
  for (const line of lines) console.error(line);
  process.exitCode = lines.length === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
