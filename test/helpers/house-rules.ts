/**
 * The rules of the house about texts, as functions from the tracked files to the paths that break them. `test/tidy.test.ts` holds them
 * against the repository, and shows on made-up files that each of them can fail.
 */
import { posix } from "node:path";
import type { SourceFiles } from "./import-rules.js";

const MOST_COLUMNS = 120;

/** A path in somebody's home folder says nothing to others. */
const MACHINE_PATH = /(?<![\w.$}])\/(?:home|root|Users)\/\w/;
const FENCE = /^ *```[\s\S]*?^ *```$/gm;

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

/** A seed that another run does not have: what such a test finds, nobody finds again, and what it counts depends on chance. */
const SEED_BY_CHANCE = /seed\b[^,;]*(?:Date\.now|performance\.now|Math\.random|random(?:Int|Bytes|UUID))/i;

export function seedsByChance(files: SourceFiles): string[] {
  return [...files]
    .filter(([, text]) => text.split("\n").some((line) => SEED_BY_CHANCE.test(line)))
    .map(([path]) => path);
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

/**
 * Folders that do not say what they are for: without a README. A folder of tests has the name of what it tests, or a row
 * in test/README.md for itself or for the room it is in.
 */
export function roomsWithoutText(files: SourceFiles): string[] {
  const rooms = new Set([...files.keys()].flatMap((path) => foldersOf(path)));
  const rows = files.get("test/README.md") ?? "";
  const hasRow = (room: string): boolean => rows.includes(`\`${room}\``);
  const isTold = (room: string): boolean => {
    if (!room.startsWith("test/")) return room.startsWith(".") || files.has(`${room}/README.md`);
    const tested = room.slice("test/".length);
    // A store of a release is kept as it was: no text goes into it.
    if (tested.startsWith("golden")) return hasRow("golden");
    const above = posix.dirname(tested);
    return rooms.has(tested) || hasRow(tested) || (above.includes("/") && hasRow(above));
  };
  return [...rooms].filter((room) => !isTold(room)).sort();
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
