/**
 * The rules of the house about sizes and texts, as functions from the tracked files to the paths that break them. `test/tidy.test.ts` holds them
 * against the repository, and shows on made-up files that each of them can fail.
 */
import { posix } from "node:path";
import type { SourceFiles } from "./import-rules.js";

const MOST_LINES = 400;
const MOST_FILES = 16;
const MOST_README_LINES = 150;
const MOST_COLUMNS = 120;

/** Every file stands there as it was made or collected: nobody reads it from top to bottom. */
const DATA = [/^test\/fuzz\/corpus\//, /^http\/client\/interface-types\.ts$/, /^http\/openapi\/response-examples\.ts$/];
/** A path in somebody's home folder says nothing to others. */
const MACHINE_PATH = /(?<![\w.$}])\/(?:home|root|Users)\/\w/;
const FENCE = /^ *```[\s\S]*?^ *```$/gm;

function isData(path: string): boolean {
  return DATA.some((pattern) => pattern.test(path));
}

function lineCount(text: string): number {
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

/** Sources of more than 400 lines, but for data; and README.md, the first page, of more than 150. */
export function longFiles(files: SourceFiles): string[] {
  return [...files].flatMap(([path, text]) => {
    const most = path === "README.md" ? MOST_README_LINES : MOST_LINES;
    return /\.(tsx?|css|mjs|md)$/.test(path) && !isData(path) && lineCount(text) > most ? [path] : [];
  });
}

/** Folders of more than 16 files, but for data; files in folders below do not count. */
export function fullFolders(paths: Iterable<string>): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) {
    if (!isData(path)) counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > MOST_FILES).map(([folder]) => folder);
}

/** Markdown with lines of more than 120 characters, but for rows of tables. */
export function wideDocuments(files: SourceFiles): string[] {
  const isWide = (line: string): boolean => [...line].length > MOST_COLUMNS && !line.startsWith("|");
  return [...files]
    .filter(([path, text]) => path.endsWith(".md") && text.split("\n").some(isWide))
    .map(([path]) => path);
}

export function machinePaths(files: SourceFiles): string[] {
  return [...files].filter(([, text]) => MACHINE_PATH.test(text)).map(([path]) => path);
}

/** Links of documents to a file that is not there, or to a heading that the document does not have. */
export function brokenLinks(files: SourceFiles): string[] {
  const folders = new Set([...files.keys()].flatMap((path) => foldersOf(path)));
  return [...files].flatMap(([path, text]) => {
    if (!path.endsWith(".md")) return [];
    const targets = [...text.replaceAll(FENCE, "").matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target as string);
    return targets
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [file = "", heading] = target.split("#");
        const to = file === "" ? path : posix.join(posix.dirname(path), file).replace(/\/$/, "");
        const linked = files.get(to);
        if (linked === undefined) return !folders.has(to);
        return heading !== undefined && !headingsOf(linked).includes(heading);
      })
      .map((target) => `${path}: ${target}`);
  });
}

function foldersOf(path: string): string[] {
  const folder = posix.dirname(path);
  return folder === "." ? [] : [folder, ...foldersOf(folder)];
}

/** As GitHub names them in links. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}
